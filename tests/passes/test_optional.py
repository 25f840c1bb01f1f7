"""Every optimization can be left out: the file is another, and computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.formats.onnx.from_ir import STEPS
from serde.passes import DEFAULT
from serde.passes.optional import OPTIONAL
from testing.onnx_live import PLAIN, model_of, run_at

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "change-an-onnx-model.md"
IMAGE = "g (float[1,2,6,6] x, float[2,2,3,3] w) => (float[1,2,a,b] y)"
NEEDED = {"stack_lists", "drop_dead"}  # of targets without sequences, and of all
CASES = {
    "share_constants": "g (float[4] x) => (float[4] y) { k = Constant<value = float[4] {1, 2, 3, 4}>()\n l = Constant<value = float[4] {1, 2, 3, 4}>()\n a = Add(x, k)\n b = Exp(a)\n y = Mul(b, l) }",
    "merge_repeats": "g (float[4] x) => (float[4] y) { a = Exp(x)\n b = Exp(x)\n y = Add(a, b) }",
    "flatten_concats": "g (float[4] x) => (float[12] y) { a = Concat<axis = 0>(x, x)\n y = Concat<axis = 0>(a, x) }",
    "drop_neutral": "g (float[4] x) => (float[4] y) <float z = {0}> { a = Add(x, z)\n y = Exp(a) }",
    "sink_reversals": "g (float[1,2,3,4] x) => (float[1,2,3,4] y) <int64[2] b = {-1, -1}, int64[2] e = {-9223372036854775807, -9223372036854775807}, int64[2] a = {2, 3}> { r = Slice(x, b, e, a, b)\n t = Exp(r)\n y = Slice(t, b, e, a, b) }",
    "fold_bias": f"{IMAGE} <float[1,2,1,1] k = {{1, 2}}> {{ a = Conv(x, w)\n y = Add(a, k) }}",
    "fold_pads": f"{IMAGE} <int64[8] p = {{0, 0, 1, 1, 0, 0, 1, 1}}> {{ a = Pad(x, p)\n y = Conv(a, w) }}",
    "narrow_operands": "g (float[1,4] x, float[3,4] z) => (float[3,4] y) <int64[2] s = {3, 4}> { a = Expand(x, s)\n y = Add(a, z) }",
    "merge_slices": "g (float[4,4] x) => (float[2,2] y) <int64[1] o = {1}, int64[1] t = {3}, int64[1] a0 = {0}, int64[1] a1 = {1}> { a = Slice(x, o, t, a0)\n y = Slice(a, o, t, a1) }",
    "merge_reshapes": "g (float[4,4] x) => (float[16,1] y) <int64[1] a = {0}, int64[1] f = {16}, int64[1] o = {1}> { u = Unsqueeze(x, a)\n v = Reshape(u, f)\n y = Unsqueeze(v, o) }",
    "merge_reductions": "g (float[4,4] x) => (float y) <int64[1] a = {0}> { u = ReduceSum<keepdims = 0>(x, a)\n y = ReduceSum<keepdims = 0>(u, a) }",
    "make_gemms": "g (float[4,4] x, float[4,4] w) => (float[4,4] y) <float[4] b = {1, 2, 3, 4}> { a = MatMul(x, w)\n y = Add(a, b) }",
    "join_parallel_products": "g (float[4,2] x) => (float[4,2] y) <float[2,2] u = {1, 2, 3, 4}, float[2,2] v = {2, 3, 4, 5}, float[2,2] w = {3, 4, 5, 6}> { a = MatMul(x, u)\n b = MatMul(x, v)\n c = MatMul(x, w)\n d = Mul(a, b)\n y = Sub(d, c) }",
    "expand_constants": "g (float[3000,3] x) => (float[3000,6] y) <float[1,3] k = {1, 2, 3}, int64[2] s = {3000, 3}> { a = Expand(k, s)\n y = Concat<axis = 1>(x, a) }",
}  # fmt: skip


def test_every_optimization_can_be_left_out():
    assert {p.__name__ for p in (*DEFAULT, *STEPS)} - NEEDED == OPTIONAL.keys() == CASES.keys()
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert [r for r in rows if r.split("`")[1] in OPTIONAL] == [
        f"| `{name}` | {what} |" for name, what in OPTIONAL.items()
    ]


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_model_without_an_optimization(tmp_path, name):
    model = model_of(CASES[name], 17)
    onnx.save(model, tmp_path / "m.onnx")
    serde.convert(tmp_path / "m.onnx", tmp_path / "all.onnx")
    serde.convert(tmp_path / "m.onnx", tmp_path / "part.onnx", skip=[name])
    whole, part = (onnx.load(tmp_path / f"{n}.onnx") for n in ("all", "part"))
    assert whole != part
    rng = np.random.default_rng(0)
    feeds = {
        v.name: rng.standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim]).astype("f")
        for v in model.graph.input
    }
    (expected,), (got,) = run_at(PLAIN, model, feeds), run_at(PLAIN, part, feeds)
    np.testing.assert_allclose(got, expected, 1e-5, 1e-6)


def test_what_is_no_optimization_is_refused_with_the_list():
    with pytest.raises(serde.UsageError, match=r"skip='make_gem' is not one of share_constants, .*"
                                               r"did you mean make_gemms\?"):  # fmt: skip
        serde.load("none.onnx", skip=["make_gem"])
    result = CliRunner().invoke(main, ["convert", "none.onnx", "-o", "o.onnx", "--skip", "gemm"])
    assert result.exit_code == 2 and "--skip='gemm' is not one of" in result.output


def test_a_graph_is_saved_without_an_optimization(tmp_path):
    onnx.save(model_of(CASES["make_gemms"], 17), tmp_path / "m.onnx")
    serde.save(serde.load(tmp_path / "m.onnx"), tmp_path / "o.onnx", skip=["make_gemms"])
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == ["MatMul", "Add"]
    serde.convert(tmp_path / "m.onnx", tmp_path / "o.onnx")  # nothing of the call before stays
    assert [n.op_type for n in onnx.load(tmp_path / "o.onnx").graph.node] == ["Gemm"]
