"""Operators that are read and written again are the same, with the same numbers in LiteRT."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.formats.tflite.decode import decode
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_graph
from testing.tflite.cases import b, case, f, i, list_cases, q, r
from testing.tflite.models import build, write
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
SAME = (
    "DEPTH_TO_SPACE", "LOCAL_RESPONSE_NORMALIZATION", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR",
    "RSQRT", "SPACE_TO_DEPTH",
)  # fmt: skip
CASES = [v for v in list_cases() if v.op in SAME and v.results[0].dtype == "float32"] + [
    case("SPACE_TO_DEPTH", i(1, 4, 6, 3), to="int32", block_size=2),
    case("SPACE_TO_DEPTH", q(1, 4, 6, 3), to=r("int8", 0.05, 3), block_size=2, version=2),
    case("DEPTH_TO_SPACE", i(2, 2, 3, 8), to="int32", block_size=2),
    case("PRELU", q(1, 3, 4, 5), q(1, 1, 5, scale=0.02, zero=0, constant=True),
         to=r("int8", 0.04, -9)),
    case("NOT_EQUAL", f(2, 3), f(3), to="bool"), case("NOT_EQUAL", b(2, 3), b(2, 1), to="bool"),
    case("BATCH_MATMUL", f(2, 3, 4), f(2, 5, 4), adj_y=True),
    case("BATCH_MATMUL", q(2, 4, 3), q(2, 5, 4, zero=-4), to=r("int8", 0.3, 2), adj_x=True,
         adj_y=True, version=2),
    # products near 10**8, of which float32 has every eighth
    case("QUANTIZE", q(3, 40, scale=5e-2, zero=0, dtype="int16"), to=r("int32", 1.5e-7, 0)),
]  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("case", CASES, ids=[f"{k}-{v.op}" for k, v in enumerate(CASES)])
def test_an_operator_stays_one(case, worker, tmp_path: Path) -> None:
    before, after = tmp_path / "a.tflite", tmp_path / "b.tflite"
    before.write_bytes(write(build(case)))
    serde.save(serde.load(before), after)
    assert [node.op for node in decode(after).nodes] == [case.op]
    runs = [run_both(worker, path, case.feeds()) for path in (before, after)]
    for expected, got in zip(*runs, strict=True):  # XNNPACK leaves alone what tells no shapes
        bound = 1e-5 if got[0].dtype.kind == "f" else 0
        np.testing.assert_allclose(got[0], expected[0], bound, bound)


# Forms of Resize that a kernel looks at the same places for, and others.
RESIZES = {
    "mode='linear', coordinate_transformation_mode='half_pixel'": ([1, 1, 2, 1.5], "RESIZE_BILINEAR"),
    "mode='linear', coordinate_transformation_mode='align_corners'": (
        [1, 1, 2, 3], "RESIZE_BILINEAR",
    ),
    "mode='linear', coordinate_transformation_mode='pytorch_half_pixel'": (
        [1, 1, 2, 0.5], "RESIZE_BILINEAR",
    ),
    "mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor'": (
        [1, 1, 2, 3], "RESIZE_NEAREST_NEIGHBOR",
    ),
    "mode='nearest', nearest_mode='round_prefer_floor'": ([1, 1, 2, 2], "RESIZE_NEAREST_NEIGHBOR"),
    "mode='linear', antialias=1": ([1, 1, 0.5, 0.5], None),
    "mode='cubic'": ([1, 1, 2, 2], None),
    "mode='linear', coordinate_transformation_mode='half_pixel', axes=[2, 3]": (
        [1.1, 1.3], None,  # of which a runtime knows 4.4 and 7.8 elements
    ),
}  # fmt: skip


@needs_litert
@pytest.mark.parametrize("form", RESIZES)
def test_a_resize_is_a_kernel_where_it_looks_at_the_same_places(form, worker, tmp_path) -> None:
    scales, op = RESIZES[form]
    text = form.replace("'", '"')
    graph = ir_of(f"""g (float[1,3,4,6] x) => (float[] y) <float[{len(scales)}] s = {{
        {", ".join(map(str, scales))}}}> {{ y = Resize<{text}>(x, "", s) }}""", 22)  # fmt: skip
    x = np.random.default_rng(3).standard_normal((1, 3, 4, 6)).astype(np.float32)
    serde.save(graph, tmp_path / "m.tflite")
    counts = Counter(node.op for node in decode(tmp_path / "m.tflite").nodes)
    assert {k for k in counts if k.startswith("RESIZE")} == ({op} if op else set())
    (expected,) = run_graph(graph, {"x": x}, 22)
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_allclose(got, expected, 1e-5, 1e-5)


@needs_litert
@pytest.mark.parametrize(("fill", "pad"), [("z", "PAD"), ("f", "PADV2")])
def test_what_moves_integers_keeps_their_scale(fill, pad, worker, tmp_path: Path) -> None:
    weights = ", ".join(map(str, np.random.default_rng(4).integers(-90, 90, 18)))
    graph = ir_of(f"""g (float[2,5,4] x) => (float[] y) <float s = {{0.03}}, int8 z = {{4}}, float t = {{0.1}},
        int8 o = {{0}}, int8 f = {{7}}, int64[6] p = {{0, 1, 0, 0, 0, 1}}, int8[6,3] w = {{{weights}}}> {{
        a = QuantizeLinear(x, s, z) b = Transpose<perm=[0,2,1]>(a) c = Pad(b, p, {fill})
        d = DequantizeLinear(c, s, z) v = DequantizeLinear(w, s, o) m = MatMul(d, v)
        q = QuantizeLinear(m, t, o) y = DequantizeLinear(q, t, o) }}""", 22)  # fmt: skip
    x = np.random.default_rng(3).standard_normal((2, 5, 4)).astype(np.float32)
    serde.save(graph, tmp_path / "m.tflite")
    ops = [node.op for node in decode(tmp_path / "m.tflite").nodes]
    assert ops == ["QUANTIZE", "TRANSPOSE", pad, "FULLY_CONNECTED", "DEQUANTIZE"]
    (expected,) = run_graph(graph, {"x": x}, 22)
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_allclose(got, expected, 0, 0.101)
