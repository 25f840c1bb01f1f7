"""Dynamic sizes, written to MXNet, whose attributes are numbers."""

from __future__ import annotations

import numpy as np
import pytest

import serde
from serde.bridges.mxnet import run
from serde.errors import Unconvertible
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet_live import live_mxnet, run_symbol
from testing.onnx_live import model_of, run_model

DRAW = np.random.default_rng(5).standard_normal
A, B, C = "float[n,3] a", "float[m,3] b", "float[n,1] c"
SPLIT = "s = Shape(a) zero = Constant<value_ints=[0]>() n = Gather(s, zero)\n"
PLAIN = "i = Constant<value_int=0>() k = Gather(s, i)\n"
CASES = {
    "expand to another's": f"{A}, {C} | s = Shape(a) y = Expand(c, s)",
    "expand, either way": f"{A}, {B} | s = Shape(b) y = Expand(a, s)",
    "expand of a product": f"{A} | {SPLIT} three = Constant<value_ints=[3]>() t = Mul(n, three)"
    " x = Constant<value_float=2.5>() y = Expand(x, t)",
    "expand of a sum": f"{A} | {SPLIT} three = Constant<value_ints=[3]>() t = Add(n, three)"
    " x = Constant<value_float=2.5>() y = Expand(x, t)",
    "expand of a difference": f"{A} | {SPLIT} one = Constant<value_ints=[1]>() t = Sub(n, one)"
    " x = Constant<value_float=2.5>() y = Expand(x, t)",
    "expand of a quotient": f"{A} | {SPLIT} two = Constant<value_ints=[2]>() t = Div(n, two)"
    " x = Constant<value_float=2.5>() y = Expand(x, t)",
    "expand of two names": f"{A}, {B} | {SPLIT} r = Shape(b) m = Gather(r, zero) t = Mul(n, m)"
    " x = Constant<value_float=2.5>() y = Expand(x, t)",
    "where of two names": f"{A}, {B} | o = Constant<value_float=0.0>() c = Greater(a, o)"
    " y = Where(c, a, b)",
    "where, one in front": f"{A}, {B} | o = Constant<value_float=0.0>() c = Greater(a, o)"
    " v = Constant<value_ints=[1]>() u = Unsqueeze(b, v) y = Where(c, u, o)",
    "products of stacks": f"{A}, {B} | v = Constant<value_ints=[2]>() u = Unsqueeze(a, v)"
    " w = Constant<value_ints=[1]>() z = Unsqueeze(b, w) y = MatMul(u, z)",
    "range": f"{A} | {SPLIT}{PLAIN} one = Constant<value_int=1>() y = Range(i, k, one)",
    "range in steps": f"{A} | {SPLIT}{PLAIN} two = Constant<value_int=2>()"
    " one = Constant<value_int=1>() y = Range(one, k, two)",
    "range of a product": f"{A} | {SPLIT}{PLAIN} five = Constant<value_int=5>() t = Mul(k, five)"
    " one = Constant<value_int=1>() y = Range(i, t, one)",
    "slice up to another's size": f"{A}, {B} | {SPLIT} r = Shape(b) m = Gather(r, zero)"
    " y = Slice(a, zero, m, zero)",
    "slice from the second on": f"{A}, {B} | {SPLIT} one = Constant<value_ints=[1]>()"
    " y = Slice(a, one, n, zero)",
    "reshape with one size unknown": f"{A}, {B} | o = Constant<value_float=0.0>()"
    " v = Constant<value_ints=[1]>() p = Unsqueeze(a, v) q = Unsqueeze(b, v) pq = Add(p, q)"
    " s = Shape(pq) zero = Constant<value_ints=[0]>() k = Gather(s, zero)"
    " three = Constant<value_ints=[3,1]>() t = Concat<axis=0>(k, three) y = Reshape(pq, t)",
    "reshape that joins axes": f"{A}, {C} | v = Constant<value_ints=[1]>() u = Unsqueeze(a, v)"
    " w = Transpose<perm=[0,2,1]>(u) x = Concat<axis=2>(w, w) r = Shape(a)"
    " some = Constant<value_ints=[-1,2]>() y = Reshape(x, some)",
    "reshape that parts a product": f"{A}, {B} | v = Constant<value_ints=[1]>() p = Unsqueeze(a, v)"
    " z = Constant<value_ints=[0]>() q = Unsqueeze(b, z) pq = Add(p, q)"
    " some = Constant<value_ints=[-1,3]>() f = Reshape(pq, some) r = Relu(f) s = Shape(pq)"
    " y = Reshape(r, s)",
    "halves": f"{A} | h, k = Split<axis=0, num_outputs=2>(a) y = Concat<axis=1>(k, k)",
    "a part of a split": f"{A} | {SPLIT} two = Constant<value_ints=[2]>() one = Constant"
    "<value_ints=[1]>() o = Sub(n, two) o2 = Sub(o, one) s3 = Concat<axis=0>(two, o2, one)"
    " h, y, e = Split<axis=0>(a, s3)",
    "what is behind a part of a split": f"{A} | {SPLIT} one = Constant<value_ints=[1]>()"
    " o = Sub(n, one) s2 = Concat<axis=0>(o, one) h, y = Split<axis=0>(a, s2)",
    "reflections": f"{A} | p = Constant<value_ints=[0,2,0,1]>() y = Pad<mode=\"reflect\">(a, p)",
    "edges": f"{A} | p = Constant<value_ints=[2,1,3,0]>() y = Pad<mode=\"edge\">(a, p)",
    "frames of a signal": f"{A} | t = Transpose(a) k = Constant<value_int=1>()"
    " w = Constant<value_floats=[1.0]>() y = STFT(t, k, w)",
    "reshape of what is joined": f"{A}, {B} | ab = Concat<axis=0>(a, b) s = Shape(ab)"
    " rest = Constant<value_ints=[-1]>() f = Reshape(ab, rest) r = Relu(f) y = Reshape(r, s)",
}  # fmt: skip
SIZES = [(4, 4), (5, 1), (1, 1)]
TIGHT = {  # what has no elements is not MXNet's
    "expand of a difference": [(4, 4), (5, 1)], "expand of a quotient": [(4, 4), (5, 1)],
    "range in steps": [(4, 4), (5, 1)], "slice from the second on": [(4, 4), (5, 1)],
    "halves": [(4, 4), (5, 1)], "a part of a split": [(4, 4), (5, 1)],
    "what is behind a part of a split": [(4, 4), (5, 1)],
}  # fmt: skip


@pytest.mark.parametrize(
    "kind, dtype", [("float", "float32"), ("bool", "bool"), ("int64", "int64")]
)
@pytest.mark.parametrize("sizes", [[3, 2, 4], [2, 1], [1, 4, 1, 1]])
def test_a_shape_that_is_computed(sizes, kind, dtype):
    model = model_of(
        f"g ({kind}[2,1] x, int64[{len(sizes)}] s) => ({kind} y) {{ y = Expand(x, s) }}"
    )
    feeds = {"x": DRAW((2, 1)).astype(dtype), "s": np.array(sizes)}
    text, _ = encode_live(from_ir(raise_to_ir(decode(model))))
    (got,), (expected,) = run_symbol(text, {}, feeds), run_model(model, feeds)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("case", CASES)
def test_sizes_come_from_tensors(case, tmp_path):
    live_mxnet()
    inputs, _, body = CASES[case].partition(" | ")
    kind = "int64" if case.startswith("range") else "float"
    model = model_of(f"g ({inputs}) => ({kind} y) {{ {body} }}", 18)
    serde.convert(model, tmp_path / "m-symbol.json")
    for n, m in TIGHT.get(case, SIZES):
        feeds = {"a": DRAW((n, 3), np.float32), "b": DRAW((m, 3), np.float32),
                 "c": DRAW((n, 1), np.float32)}  # fmt: skip
        arrays = {i.name: feeds[i.name] for i in model.graph.input}
        (expected,) = run_model(model, arrays)
        (got,) = run(str(tmp_path / "m"), {k: v for k, v in arrays.items() if k in read(tmp_path)})
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def read(folder):
    """The inputs the symbol has."""
    return live_mxnet().sym.load(str(folder / "m-symbol.json")).list_arguments()


def test_a_slice_from_its_end_is_refused(tmp_path):
    body = f"{SPLIT} from = Constant<value_ints=[-2]>() r = Shape(b) m = Gather(r, zero)"
    model = model_of(f"g ({A}, {B}) => (float y) {{ {body} y = Slice(a, from, m, zero) }}")
    with pytest.raises(Unconvertible, match="from its end"):
        serde.convert(model, tmp_path / "m-symbol.json")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y, z, w = Split<axis=0, num_outputs=3>(a)", "a split of n into 3 parts, of which the last"),
        ("y, z, w = Split<axis=0>(a, s)", "a split into parts of sizes that are computed"),
        (f"{SPLIT} m = Gather(r, zero) t = Concat<axis=0>(m, m) y, z = Split<axis=0>(a, t)",
         "a split of n into parts of "),
    ],
)  # fmt: skip
def test_splits_of_dynamic_sizes_are_refused(body, why, tmp_path):
    given = f"{A}, {B}, int64[3] s" if "(a, s)" in body else f"{A}, {B}"
    shape = "r = Shape(b)" if "Gather(r" in body else ""
    model = model_of(f"g ({given}) => (float y) {{ {shape} {body} }}", 18)
    with pytest.raises(Unconvertible, match=why):
        serde.convert(model, tmp_path / "m-symbol.json")


@pytest.mark.parametrize("batch", [3, "n"])
def test_parts_of_tensors_of_six_axes(batch, tmp_path):
    """MXNet's ``slice`` takes five."""
    shape = (batch, 3, 2, 2, 2, 2)
    sizes = ",".join(map(str, shape))
    body = "y, z, w = Split<axis=1, num_outputs=3>(a)"
    model = model_of(f"g (float[{sizes}] a) => (float y, float z, float w) {{ {body} }}", 18)
    serde.convert(model, tmp_path / "m-symbol.json")
    feeds = {"a": DRAW((3, *shape[1:]), np.float32)}
    for got, expected in zip(run(str(tmp_path / "m"), feeds), run_model(model, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)
    backwards = (
        "i = Constant<value_ints=[-1]>() e = Constant<value_ints=[-9]>() y = Slice(a, i, e, x, i)"
    )
    body = f"x = Constant<value_ints=[1]>() {backwards}"
    stepped = model_of(f"g (float[{sizes}] a) => (float y) {{ {body} }}", 18)
    with pytest.raises(Unconvertible, match="of 6 axes: MXNet takes steps along tensors of 5"):
        serde.convert(stepped, tmp_path / "m-symbol.json")
