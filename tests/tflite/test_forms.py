"""Forms that kernels lack compute what ONNX Runtime does, with both sets of kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_graph
from tests.tflite.comparisons import compare
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
BODIES = {
    "six axes repeated": "g (float[2,1,3,1,2,1] x, float[4,1,2,1,5] y) => (float[] z) { z = Add(x, y) }",
    "six axes chosen": """g (float[2,1,3,1,2,1] x, float[4,1,2,1,5] y) => (float[] z)
        { c = Less(x, y) z = Where(c, x, y) }""",
    "matrices of six axes": """g (float[2,1,3,1,2,3] x, float[3,4,3,2] y, float[1,2] m) => (float[] z)
        { p = MatMul(x, y) z = Mul(p, m) }""",
    "rows of six axes": "g (float[2,1,3,1,2,3] x, float[3,2] y) => (float[] z) { z = MatMul(x, y) }",
    "volume": """g (float[1,2,4,5,6] x) => (float[] y) {
        a = MaxPool<kernel_shape=[2,3,2], pads=[1,0,1,0,1,0], strides=[1,2,1]>(x)
        y = AveragePool<kernel_shape=[2,1,2], strides=[2,1,1]>(a) }""",
    "crop": """g (float[3,5] x) => (float[] y) <int64[4] p = {-1, 2, 1, -2}> { y = Pad(x, p) }""",
    "crop and fill": """g (float[3,5] x) => (float[] y) <int64[2] p = {-1, 2}, float f = {3},
        int64[1] a = {1}> { y = Pad(x, p, f, a) }""",
    "edge": """g (float[3,5] x) => (float[] y) <int64[4] p = {1, 2, 0, 3}>
        { y = Pad<mode="edge">(x, p) }""",
    "edge crop": """g (float[3,5] x) => (float[] y) <int64[4] p = {1, -2, -1, 3}>
        { y = Pad<mode="edge">(x, p) }""",
    "edge far away": """g (float[3,5] x) => (float[] y) <int64[4] p = {20, 0, 0, 30}>
        { y = Pad<mode="edge">(x, p) }""",
    "mirror crop": """g (float[3,5] x) => (float[] y) <int64[4] p = {-1, 2, 1, -2}>
        { y = Pad<mode="reflect">(x, p) }""",
    "wrap crop": """g (float[3,5] x) => (float[] y) <int64[4] p = {-1, 7, 4, -2}>
        { y = Pad<mode="wrap">(x, p) }""",
    "infinite mask": """g (float[2,3] x, bool[2,3] m) => (float[] y, bool[] z)
        <float i = {-inf}, float o = {0}, int64[1] a = {1}> {
        b = Where(m, o, i) c = Add(x, b) d = ReduceMax<keepdims=1>(c, a) z = Equal(d, i)
        e = Softmax<axis=1>(c) y = Where(z, o, e) }""",
    "infinite mask and integers": """g (float[2,3] x, bool[2,3] m, int32[3] n) => (bool[] y, bool[] z)
        <float i = {-inf}, float o = {0}, int64[1] a = {1}> { b = Where(m, o, i) k = Cast<to=1>(n)
        c = Add(x, b) d = Add(c, k) y = Equal(d, i) e = ReduceMax(d, a) z = Equal(e, i) }""",
    "infinite inputs": """g (float[2,3] x, bool[2,3] m) => (bool[] y, bool[] z)
        <float i = {-inf}, float j = {inf}> {
        b = Where(m, x, i) y = Greater(b, i) c = Where(m, x, j) z = Less(c, j) }""",
    "logarithm of a sum": """g (float[2,3] x) => (float[] y) <float n = {100}, int64[1] a = {1}>
        { b = Mul(x, n) y = ReduceLogSumExp(b, a) }""",
    # of which kernels of int16 have none
    "int16 with a zero point": """g (int16[2,3] x) => (float[] y, int16[] z)
        <float s = {0.01}, int16 n = {-100}> {
        y = DequantizeLinear(x, s, n) r = Relu(y) z = QuantizeLinear(r, s, n) }""",
    # each sum is of one value twice: what is found of it is found once
    "infinities that are doubled": "g (float[2,3] x, bool[2,3] m) => (bool[] y)\n"
        "<float i = {-inf}> { a0 = Where(m, x, i)\n"
        + "\n".join(f"a{n + 1} = Add(a{n}, a{n})" for n in range(40)) + "\ny = Equal(a40, i) }",
    "CRD": """g (float[1,8,2,3] x) => (float[] z)
        { z = DepthToSpace<blocksize=2, mode="CRD">(x) }""",
    "inverse functions": """g (float[2,3] x) => (float[] y, float[] z, float[] s, float[] c, float[] t)
        <float n = {20}> {
        y = Asinh(x) a = Abs(x) o = Cosh(a) z = Acosh(o) s = Sinh(x) b = Div(x, n) c = Atanh(b) t = Tan(x) }""",
    "bits": """g (int32[2,3] x, int32[2,3] y) => (int32[] a, int32[] b, int32[] c) {
        a = BitwiseAnd(x, y) b = BitwiseOr(x, y) c = BitwiseXor(x, y) }""",
    "dequantized fill": """g (float[2,3] x) => (float[] y) <int64[4] p = {1, 0, 2, 1}, uint8 q = {7},
        float s = {0.5}, uint8 z = {3}> { f = DequantizeLinear(q, s, z) y = Pad(x, p, f) }""",
    "dequantized kernel": """g (float[1,2,3,3] x) => (float[] y) <uint8[2,1,2,2] w = {9,3,7,4, 0,8,1,6},
        float s = {0.5}, uint8 z = {3}> {
        v = DequantizeLinear(w, s, z) y = ConvTranspose<dilations=[2,2]>(x, v) }""",
    "rest": "g (int32[2,3] x, int32[2,3] y) => (int32[] a) { a = Mod<fmod=1>(x, y) }",
    "power of an integer": """g (int32[2,3] x) => (int32[] a) <float p = {1.5}>
        { b = Abs(x) a = Pow(b, p) }""",
    "nothing joined": """g (float[2,3] x) => (float[] y) <int64[2] s = {3, 0}>
        { a, b = Split<axis=1>(x, s) y = Concat<axis=1>(b, a, b) }""",
    "sums": "g (float[2,3] x) => (float[] y) <int64 a = {1}> { y = CumSum<exclusive=1, reverse=1>(x, a) }",
    "any": "g (bool[2,3] x) => (bool[] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }",
    "computed places": "g (float[4,3] x, int64[2,1] i) => (float[] y) { y = GatherND(x, i) }",
    "window of all channels": """g (float[2,6,2,3] x) => (float[] y)
        { y = LRN<size=25, alpha=0.3, beta=0.5, bias=1.5>(x) }""",
    "half": "g (float16[2,3] x) => (float16[] y) { a = Sigmoid(x) y = Mul(a, x) }",
    "unsigned": "g (uint16[2,3] x, uint16[2,3] y) => (bool[] z) { z = Less(x, y) }",
    "slope of each sample": """g (float[2,3] x) => (float[] z) <float[2,1] y = {0.5, 2}>
        { z = PRelu(x, y) }""",
    "backwards from before the front": """g (float[1,3] x) => (float[] z)
        <int64[2] b = {-9, -9}, int64[2] e = {-9, -9}, int64[2] a = {0, 1}, int64[2] s = {-2, -1}>
        { z = Slice(x, b, e, a, s) }""",
    "slope": "g (float[2,3] x, float[3] y) => (float[] z) { z = PRelu(x, y) }",
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
def test_quotients_of_large_integers_are_exact(worker, tmp_path: Path) -> None:
    least, largest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    rng, count = np.random.default_rng(5), 2000
    x, y = (rng.integers(-(1 << 62), 1 << 62, count) >> rng.integers(0, 62, count) for _ in "xy")
    y[y == 0] = 7
    x[:6], y[:6] = (largest, least, largest, least, 5, -5), (1, 1, -1, 3, 3, 3)
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    expected = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    graph = ir_of(
        f"g (int64[{count}] x, int64[{count}] y) => (int64[{count}] z) {{ z = Div(x, y) }}"
    )
    serde.save(graph, tmp_path / "m.tflite")
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x, y]):
        assert got.tolist() == expected


def test_inverse_functions_to_their_ends(tmp_path: Path) -> None:
    """Read again, so that what is written is computed by kernels that keep infinities."""
    near = np.float32(1) - np.finfo(np.float32).eps
    inside = np.asarray([1, -1, near, 1e-7, -1e-20, 0.5, np.nan, 0], np.float32)
    large = np.asarray([1, 1.0000001, 3, 9999, 1e20, 3e38, np.inf, np.nan], np.float32)
    graph = ir_of("g (float[8] x, float[8] u) => (float[8] y, float[8] z, float[8] a) "
                  "{ y = Atanh(x) z = Acosh(u) a = Asinh(u) }")  # fmt: skip
    serde.save(graph, tmp_path / "m.tflite")
    got = run_graph(serde.load(tmp_path / "m.tflite"), {"x": inside, "u": large}, 21)
    with np.errstate(divide="ignore"):
        expected = np.arctanh(inside), np.arccosh(large), np.arcsinh(large)
    for actual, right in zip(got, expected, strict=True):
        np.testing.assert_allclose(actual, right, 2e-6, 1e-37)


@needs_litert
def test_slopes_of_integers(worker, tmp_path: Path) -> None:
    """ONNX Runtime has no kernel of these, and LiteRT none either."""
    x = np.random.default_rng(4).integers(-50, 50, (2, 3, 2))
    slopes = np.asarray([[-2], [3], [4]])
    graph = ir_of("""g (int64[2,3,2] x) => (int64[2,3,2] z) <int64[3,1] y = {-2, 3, 4}>
        { z = PRelu(x, y) }""")
    serde.save(graph, tmp_path / "m.tflite")
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_array_equal(got, np.where(x < 0, x * slopes, x))


@needs_litert
@pytest.mark.parametrize("name", BODIES)
def test_forms_compute_what_the_operator_does(name: str, worker, tmp_path: Path) -> None:
    compare(worker, BODIES[name], tmp_path)
