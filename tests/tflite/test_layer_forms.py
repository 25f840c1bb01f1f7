"""Layers by groups and transposed convolutions compute what ONNX Runtime does, in LiteRT."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.formats.tflite.from_ir import from_ir
from testing.onnx_live import ir_of
from testing.onnx_live import run as run_graph
from tests.tflite.comparisons import compare
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
F, W = "float[1,4,5,6] x", "float[4,3,3,2] w"
TRANSPOSED = {
    "groups": "group=2, kernel_shape=[3,2]", "pads": "group=2, pads=[1,0,0,1], strides=[2,1]",
    "output padding": "group=2, output_padding=[1,0], strides=[2,3]",
    "dilations": "group=2, dilations=[2,3]", "all": "group=2, dilations=[1,2], pads=[0,1,1,1], "
    "output_padding=[1,1], strides=[2,2]",
    "as SAME": "group=2, kernel_shape=[3,2], pads=[0,0,1,0], strides=[2,2]",
    "almost as SAME": "group=2, kernel_shape=[3,2], pads=[1,0,0,0], strides=[2,2]",
    "more than is cropped": "group=2, pads=[1,0,1,1], output_padding=[1,2], strides=[2,3]",
}  # fmt: skip


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


@needs_litert
@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions(name: str, worker, tmp_path: Path) -> None:
    weights = ", ".join(f"{n:.2f}" for n in np.random.default_rng(2).standard_normal(72))
    compare(worker, f"""g ({F}) => (float[] y) <{W} = {{{weights}}},
        float[6] b = {{1, 2, 3, 4, 5, 6}}> {{
        y = ConvTranspose<{TRANSPOSED[name]}>(x, w, b) }}""", tmp_path)  # fmt: skip


PHASES = {  # the shapes of the image and of weights, and attributes
    "each channel": ([2, 6, 4, 5], [6, 1, 4, 4], "group=6, strides=[2,2], pads=[1,1,1,1]"),
    "each channel as two": ([1, 4, 4, 5], [4, 2, 3, 3], "group=4, strides=[2,2], pads=[1,1,1,1], "
                            "output_padding=[1,1]"),
    "strides beyond the kernel": ([1, 4, 3, 4], [4, 1, 2, 2], "group=4, strides=[3,3]"),
    "cut beyond the kernel": ([1, 4, 5, 6], [4, 1, 2, 2], "group=4, strides=[2,2], pads=[3,2,3,4]"),
    "cut of dilations": ([1, 4, 5, 4], [4, 1, 3, 2], "group=4, strides=[2,2], dilations=[2,3], "
                         "pads=[2,1,0,3]"),
    "no strides": ([1, 4, 5, 4], [4, 3, 3, 2], "group=2, pads=[1,0,1,1]"),
    "rows": ([1, 4, 5, 4], [4, 1, 3, 2], "group=4, strides=[3,1], pads=[1,0,0,0]"),
    "columns": ([1, 4, 5, 4], [4, 2, 3, 2], "group=2, strides=[1,3]"),
    "uneven strides": ([1, 4, 3, 4], [4, 2, 3, 5], "group=2, strides=[2,3], pads=[1,2,0,1]"),
    "a line": ([2, 4, 7], [4, 1, 5], "group=4, strides=[2], pads=[2,2], output_padding=[1]"),
    "a line of groups": ([2, 4, 7], [4, 3, 3], "group=2, strides=[3], pads=[0,1], dilations=[2]"),
    "a line without strides": ([2, 4, 7], [4, 1, 3], "group=4, pads=[1,1]"),
    "SAME": ([1, 4, 5, 6], [4, 1, 3, 3], 'group=4, strides=[2,2], auto_pad="SAME_UPPER"'),
    "a shape": ([1, 4, 5, 6], [4, 1, 3, 3], "group=4, strides=[2,2], output_shape=[10,13]"),
    "volume": ([1, 4, 2, 3, 2], [4, 1, 2, 2, 2], "group=4, strides=[2,1,2], pads=[0,1,0,1,0,0]"),
}  # fmt: skip


def make_layer(name: str, batch: int | str | None = None) -> str:
    """A ConvTranspose of constant weights, with a bias."""
    image, shape, attrs = PHASES[name]
    sizes = [image[0] if batch is None else batch, *image[1:]]
    group = int(attrs.partition("group=")[2].partition(",")[0])
    weights = np.random.default_rng(2).standard_normal(int(np.prod(shape)))
    count = shape[1] * group
    return f"""g (float[{",".join(map(str, sizes))}] x) => (float[] y) <float{shape} w =
        {{{", ".join(f"{n:.2f}" for n in weights)}}}, float[{count}] b =
        {{{", ".join(map(str, range(count)))}}}> {{ y = ConvTranspose<{attrs}>(x, w, b) }}"""


@needs_litert
@pytest.mark.parametrize("name", PHASES)
def test_transposed_layers_by_groups(name: str, worker, tmp_path: Path) -> None:
    compare(worker, make_layer(name), tmp_path)


@needs_litert
@pytest.mark.parametrize("shape", ["1,4,5,6", "1,4,7"])
def test_dilations_of_computed_weights(shape: str, worker, tmp_path: Path) -> None:
    count = shape.count(",") - 1
    attrs = f"group=2, strides={[2, 1][:count]}, dilations={[2, 3][:count]}, pads={[1] * 2 * count}"
    compare(worker, f"""g (float[{shape}] x, float[{",".join("4332"[: count + 2])}] w) => (float[] y)
        {{ v = Neg(w) y = ConvTranspose<{attrs}>(x, v) }}""", tmp_path)  # fmt: skip


@needs_litert
@pytest.mark.parametrize("name", ["each channel", "uneven strides", "a line", "no strides"])
def test_transposed_layers_by_groups_keep_a_batch_by_name(name, worker, tmp_path: Path) -> None:
    graph = ir_of(make_layer(name, "N"))
    serde.save(graph, tmp_path / "m.tflite")
    for batch in (1, 3, 2):
        draws = np.random.default_rng(batch)
        x = draws.standard_normal((batch, *PHASES[name][0][1:])).astype(np.float32)
        (expected,) = run_graph(graph, {"x": x})
        for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
            np.testing.assert_allclose(got, expected, 1e-5, 1e-5)


@pytest.mark.parametrize(("name", "ops"), [
    ("each channel", "TRANSPOSE TILE DEPTHWISE_CONV_2D DEPTH_TO_SPACE TRANSPOSE"),
    ("no strides", "TRANSPOSE PAD CONV_2D TRANSPOSE"),
    ("a line", "TRANSPOSE TILE RESHAPE DEPTHWISE_CONV_2D RESHAPE TRANSPOSE"),
    ("uneven strides", "TRANSPOSE TILE CONV_2D RESHAPE TRANSPOSE RESHAPE TRANSPOSE STRIDED_SLICE"),
])  # fmt: skip
def test_transposed_layers_by_groups_are_one_convolution(name: str, ops: str) -> None:
    """Whatever the number of groups."""
    graph = ir_of(make_layer(name))
    assert [node.op for node in from_ir(graph).nodes] == ops.split()


def test_profiles_without_tile_split_transposed_layers() -> None:
    graph = from_ir(ir_of(make_layer("each channel")), profile="tflite-micro")
    assert Counter(node.op for node in graph.nodes)["TRANSPOSE_CONV"] == 6


@needs_litert
@pytest.mark.parametrize("form", [
    "strides=[2,2], kernel_shape=[2,2], pads=[0,0,0,0]", "strides=[2,1], pads=[1,0,0,1]",
    "strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]",
])  # fmt: skip
def test_a_transposed_convolution_keeps_a_batch_by_name(form: str, worker, tmp_path: Path) -> None:
    shape, draws = [4, 3, 2, 2], np.random.default_rng(2)
    weights = ", ".join(f"{n:.2f}" for n in draws.standard_normal(int(np.prod(shape))))
    graph = ir_of(f"""g (float[N,4,3,5] x) => (float[] y) <float{shape} w = {{{weights}}},
        float[3] b = {{1, 2, 3}}> {{ y = ConvTranspose<{form}>(x, w, b) }}""")
    serde.save(graph, tmp_path / "m.tflite")
    for batch in (1, 3, 2):
        x = draws.standard_normal((batch, 4, 3, 5)).astype(np.float32)
        (expected,) = run_graph(graph, {"x": x})
        for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
            np.testing.assert_allclose(got, expected, 1e-5, 1e-5)


@needs_litert
@pytest.mark.parametrize(("op", "more"), [
    ("Conv", "pads=[1,0,1,0,1,1], strides=[1,2,1]"), ("Conv", "group=2"),
    ("Conv", "pads=[0,0,0,1,1,0]"), ("Conv", "pads=[1,1,0,0,0,0]"),
    ("Conv", "pads=[0,0,0,1,0,0], strides=[2,2,1]"),
    ("ConvTranspose", "strides=[2,1,1], pads=[1,0,0,0,1,0]"),
])  # fmt: skip
def test_convolutions_of_volumes(op: str, more: str, worker, tmp_path: Path) -> None:
    shape = [4, 2, 2, 2, 1] if "group" in more else [4, 4, 2, 2, 1]
    numbers = np.random.default_rng(2).standard_normal(int(np.prod(shape)))
    weights = ", ".join(f"{n:.2f}" for n in numbers)
    compare(worker, f"""g (float[1,4,3,4,5] x) => (float[] y) <float{shape} w = {{{weights}}},
        float[4] b = {{1, 2, 3, 4}}> {{ z = {op}<{more}>(x, w, b) y = Relu(z) }}""",
        tmp_path)  # fmt: skip


@needs_litert
def test_volumes_stay_in_their_layout(worker, tmp_path: Path) -> None:
    """Two pools of a plane and a line, between convolutions with their activations."""
    weights = ", ".join(f"{n:.2f}" for n in np.random.default_rng(2).standard_normal(9 * 27))
    body = f"""g (float[2,3,4,6,8] x) => (float[] y) <float[3,3,3,3,3] w = {{{weights}}}> {{
        a = Conv<pads=[1,1,1,1,1,1]>(x, w) b = Relu(a)
        c = MaxPool<kernel_shape=[2,2,2], strides=[2,2,2]>(b) d = Conv<pads=[1,1,1,1,1,1]>(c, w)
        y = AveragePool<kernel_shape=[1,3,2], strides=[1,1,2]>(d) }}"""
    ops = "TRANSPOSE CONV_3D RESHAPE MAX_POOL_2D RESHAPE MAX_POOL_2D RESHAPE CONV_3D RESHAPE " \
        "AVERAGE_POOL_2D RESHAPE TRANSPOSE"  # fmt: skip
    assert [node.op for node in from_ir(ir_of(body)).nodes] == ops.split()
    compare(worker, body, tmp_path)
    graph = ir_of(body.replace("[2,3,4", "[N,3,4"))
    serde.save(graph, tmp_path / "m.tflite")
    for batch in (1, 3, 2):
        x = np.random.default_rng(batch).standard_normal((batch, 3, 4, 6, 8)).astype(np.float32)
        (expected,) = run_graph(graph, {"x": x})
        for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
            np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
