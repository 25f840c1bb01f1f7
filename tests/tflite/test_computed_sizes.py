"""Places, sizes and axes that are computed in a run: what LiteRT and ONNX Runtime make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_graph
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
FAR = np.iinfo(np.int64)
PLACES = [([0, 0], [3, 4]), ([1, -3], [-1, FAR.max]), ([-9, 2], [9, 2]), ([2, 1], [1, 3])]
# Bodies, and for each of several runs the operands beside ``x``.
CASES = {
    "slice of all axes": ("""g (float[3,4] x, int64[2] a, int64[2] b) => (float[] y)
        { y = Slice(x, a, b) }""", PLACES),
    "slice of two axes": ("""g (float[2,3,5,4] x, int64[2] a, int64[2] b) => (float[] y)
        <int64[2] axes = {3, -3}> { y = Slice(x, a, b, axes) }""", PLACES),
    "slice from a place": ("""g (float[2,7] x, int64[1] a) => (float[] y)
        <int64[1] one = {1}, int64[1] n = {3}> { b = Add(a, n) y = Slice(x, a, b, one) }""",
        [([0],), ([4],), ([6],), ([9],)]),
    "slice in steps": ("""g (float[9,2] x, int32[1] a, int32[1] b) => (float[] y)
        <int32[1] zero = {0}, int32[1] two = {2}> { y = Slice(x, a, b, zero, two) }""",
        [([0], [9]), ([1], [-1]), ([-4], [20])]),
    "slice in reverse": ("""g (float[9,2] x, int64[1] a, int64[1] b) => (float[] y)
        <int64[1] zero = {0}, int64[1] back = {-2}> { y = Slice(x, a, b, zero, back) }""",
        [([8], [0]), ([-1], [FAR.min]), ([20], [3]), ([2], [5])]),
    "expand": ("g (float[3,1] x, int64[2] s) => (float[] y) { y = Expand(x, s) }",
        [([3, 4],), ([1, 1],), ([1, 2],), ([1, 0],)]),
    "expand to more axes": ("g (float[3,1] x, int64[3] s) => (float[] y) { y = Expand(x, s) }",
        [([2, 1, 4],), ([1, 3, 1],), ([0, 1, 4],)]),
    "tile": ("g (float[3,2] x, int64[2] s) => (float[] y) { y = Tile(x, s) }",
        [([2, 3],), ([1, 1],)]),
    "cumsum": ("g (float[3,2] x, int64 s) => (float[] y) { y = CumSum<exclusive=1>(x, s) }",
        [(0,), (1,), (-2,)]),
    "pad": ("g (float[3,2] x, int64[4] p) => (float[] y) { y = Pad(x, p) }",
        [([1, 0, 2, 3],), ([0, 0, 0, 0],), ([-1, 2, 1, -1],), ([-4, 0, 3, 0],)]),
    "pad of two axes": ("""g (float[2,3,4] x, int64[4] p) => (float[] y)
        <float fill = {1.5}, int64[2] axes = {-1, 0}> { y = Pad(x, p, fill, axes) }""",
        [([1, 0, 2, 3],), ([-1, 2, 0, -1],)]),
    "pads around what is cut": ("""g (float[3,2] x, int64[1] end) => (float[] y)
        <int64[1] zero = {0}, int64[4] pads = {1, 0, 2, 1}, float fill = {1.5}>
        { c = Slice(x, zero, end) y = Pad(c, pads, fill) }""", [([2],), ([3],), ([1],)]),
    "squeeze of all ones": ("g (float[3,1,2,1] x) => (float[] y) { y = Squeeze(x) }", [()]),
    "range": ("""g (float[3,2] x, int64 a, int64 b) => (float[] y) <int64 by = {2}>
        { r = Range(a, b, by) f = Cast<to=1>(r) m = ReduceMax<keepdims=0>(x) y = Mul(f, m) }""",
        [(0, 7), (3, 3), (5, -4)]),
    "range down": ("""g (float[3,2] x, int32 a, int32 b) => (float[] y) <int32 by = {-1}>
        { r = Range(a, b, by) f = Cast<to=1>(r) m = ReduceMax<keepdims=0>(x) y = Mul(f, m) }""",
        [(4, 1), (3, 5)]),
    "range of a step": ("""g (float[3,2] x, int64 a, int64 b, int64 by) => (float[] y)
        { r = Range(a, b, by) f = Cast<to=1>(r) m = ReduceMax<keepdims=0>(x) y = Mul(f, m) }""",
        [(0, 7, 2), (7, 0, -3), (5, -4, 1), (-4, 5, -1), (2, 2, 1)]),
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_onnx_runtime(name: str, worker, tmp_path: Path) -> None:
    body, runs = CASES[name]
    graph = ir_of(body)
    serde.save(graph, tmp_path / "m.tflite")
    x, *others = graph.inputs
    data = np.random.default_rng(0).standard_normal(x.static_shape, np.float32)
    for operands in runs:
        arrays = [np.asarray(a, v.type.numpy) for a, v in zip(operands, others, strict=True)]
        feeds = {v.name: a for v, a in zip(graph.inputs, [data, *arrays], strict=True)}
        (expected,) = run_graph(graph, feeds, 21)
        for (got,) in run_both(worker, tmp_path / "m.tflite", [data, *arrays]):
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(got, expected, 1e-6, 1e-6)


OPEN = {  # models of two sizes by name or more, and what they are fed with
    "unsqueeze": ("g (float[N,M] x) => (float[] y) <int64[1] a = {1}> { y = Unsqueeze(x, a) }",
        [[(2, 3)], [(4, 5)]]),
    "squeeze": ("g (float[N,1,M] x) => (float[] y) <int64[1] a = {1}> { y = Squeeze(x, a) }",
        [[(2, 1, 3)], [(4, 1, 5)]]),
    "split axis": ("""g (float[N,M,6] x) => (float[] y) <int64[4] s = {0, 0, 2, 3}>
        { y = Reshape(x, s) }""", [[(2, 3, 6)], [(4, 1, 6)]]),
    "axis of one moved": ("g (float[N,1,M] x) => (float[] y) { y = Transpose<perm=[1,0,2]>(x) }",
        [[(2, 1, 3)], [(4, 1, 5)]]),
    "shape that is fed": ("g (float[N,M] x, int64[2] s) => (float[] y) { y = Reshape(x, s) }",
        [[(2, 6), [3, 4]], [(2, 6), [0, -1]], [(4, 2), [8, 1]]]),
    "more axes that are fed": ("g (float[N,M] x, int64[3] s) => (float[] y) { y = Reshape(x, s) }",
        [[(2, 6), [0, 3, 2]], [(4, 2), [2, 0, -1]]]),
    "sizes that are made of others": ("""g (float[N,M,6] x) => (float[] y)
        <int64 z = {0}, int64 o = {1}, int64 w = {2}, int64[1] a = {0}, int64[1] n = {3}> {
        s = Shape(x) h = Gather(s, z) k = Gather(s, o) d = Mul(h, w) u = Unsqueeze(d, a)
        v = Unsqueeze(k, a) t = Concat<axis=0>(v, u, n) y = Reshape(x, t) }""",
        [[(2, 3, 6)], [(4, 1, 6)]]),
}  # fmt: skip


@needs_litert
@pytest.mark.parametrize("name", OPEN)
def test_shapes_of_several_sizes_by_name(name: str, worker, tmp_path: Path) -> None:
    body, runs = OPEN[name]
    graph = ir_of(body)
    serde.save(graph, tmp_path / "m.tflite")
    for operands in runs:
        drawn = np.random.default_rng(0).standard_normal(operands[0], np.float32)
        arrays = [drawn, *(np.array(a, np.int64) for a in operands[1:])]
        feeds = {v.name: a for v, a in zip(graph.inputs, arrays, strict=True)}
        (expected,) = run_graph(graph, feeds, 21)
        for (got,) in run_both(worker, tmp_path / "m.tflite", arrays):
            np.testing.assert_array_equal(got, expected)


WEIGHTS, KERNELS = (
    ",".join(f"{n:.3f}" for n in np.random.default_rng(8).standard_normal(count))
    for count in (36, 18)
)
LARGER = (
    "ConvTranspose(x, w)",
    "ConvTranspose<pads=[0,1,1,1], strides=[2,1]>(x, w)",
    "ConvTranspose<pads=[1,1,1,1], strides=[2,2], output_padding=[1,0]>(x, w)",
    "ConvTranspose<pads=[0,0,1,1], strides=[2,2]>(x, w)",
)
IMAGES = (  # of rows and columns by name
    "Conv<pads=[1,1,1,1], strides=[2,2]>(x, w)",
    "Conv<pads=[1,1,1,1]>(x, w)",
    "Conv<pads=[0,2,1,0], strides=[1,2], dilations=[2,1]>(x, w)",
    "Conv<pads=[1,1,1,1], strides=[2,2], group=2>(x, d)",
    "Conv<strides=[2,1]>(x, w)",
    "MaxPool<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x)",
    "MaxPool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x)",
    "AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x)",
    "AveragePool<kernel_shape=[2,3], strides=[2,1]>(x)",
    "GlobalAveragePool(x)",
    *LARGER,
)


@needs_litert
@pytest.mark.parametrize("body", IMAGES)
def test_windows_over_images_of_open_sizes(body: str, worker, tmp_path: Path) -> None:
    """In two layers, so that the second reads sizes that no name tells."""
    graph = ir_of(f"""g (float[N,2,H,W] x) => (float[] y, float[] z)
        <float[2,2,3,3] w = {{{WEIGHTS}}}, float[2,1,3,3] d = {{{KERNELS}}}>
        {{ y = {body} z = {body.replace("(x", "(y")} }}""")
    serde.save(graph, tmp_path / "m.tflite")
    for shape in ((1, 2, 17, 18), (2, 2, 22, 19)):
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        expected = run_graph(graph, {"x": x}, 21)
        for got in run_both(worker, tmp_path / "m.tflite", [x]):
            for a, b in zip(got, expected, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, 1e-5, 1e-5 * np.abs(b).max())


@pytest.mark.parametrize("body", LARGER)
def test_larger_images_of_open_sizes_are_read(body: str, tmp_path: Path) -> None:
    """The size of the result is computed of that of the image, by which pads are found."""
    graph = ir_of(f"""g (float[N,2,H,W] x) => (float[] y) <float[2,2,3,3] w = {{{WEIGHTS}}}>
        {{ y = {body} }}""")
    serde.save(graph, tmp_path / "m.tflite")
    again = serde.load(tmp_path / "m.tflite")
    for shape in ((1, 2, 17, 18), (2, 2, 22, 19)):
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        (got,), (expected,) = (run_graph(v, {"x": x}, 21) for v in (again, graph))
        np.testing.assert_allclose(got, expected, 1e-5, 1e-5 * np.abs(expected).max())


def test_what_has_no_known_length_is_refused(tmp_path: Path) -> None:
    graph = ir_of("g (float[3,1] x, int64[N] s) => (float[] y) { y = Expand(x, s) }")
    with pytest.raises(Unconvertible, match="'shape' of unknown length. Make it a constant"):
        serde.save(graph, tmp_path / "m.tflite")


def test_microcontrollers_have_fixed_sizes(tmp_path: Path) -> None:
    graph = ir_of(CASES["slice of all axes"][0])
    with pytest.raises(Unconvertible, match=r"y' has the shape|static"):
        serde.save(graph, tmp_path / "m.tflite", profile="tflite-micro")
