"""Layers between dequantizations and a quantization are integer operators, one step off at most."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.errors import Unconvertible
from serde.formats.tflite.decode import decode
from serde.formats.tflite.from_ir import from_ir
from serde.formats.tflite.target import QuantizedValue
from serde.ir.graph import DType
from testing import networks
from testing.mxnet.quantised_networks import quantise_network
from testing.onnx_live import PLAIN, ir_of, run_at
from testing.onnx_live import run as run_graph
from tests.tflite.litert_live import run_both, why_not
from tests.tflite.quantized_layers import (
    IN_FLOATS,
    KINDS,
    LAYERS,
    OF_16_BITS,
    OF_OTHER_SCALES,
    compare,
    layer_model,
)

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


CASES = [
    *((name, "int8", c) for name in LAYERS for c in (True, False) if c or LAYERS[name][2]),
    *((name, "uint8", True) for name in LAYERS),
    *((name, "int16", True) for name in OF_16_BITS),
]


@needs_litert
@pytest.mark.parametrize(("name", "kind", "by_channel"), CASES)
def test_layers_are_integer_operators(name, kind, by_channel, worker, tmp_path: Path) -> None:
    model, feeds, step = layer_model(LAYERS[name], kind, by_channel)
    counts = compare(worker, model, feeds, tmp_path, step)
    assert counts[LAYERS[name][4], "int16" if kind == "int16" else "int8"] == 1
    assert counts["DEQUANTIZE", "float32"] == 1 and not counts[LAYERS[name][4], "float32"]


@needs_litert
@pytest.mark.parametrize("name", IN_FLOATS)
def test_what_has_no_kernel_is_computed_in_floats(name, worker, tmp_path: Path) -> None:
    row = IN_FLOATS[name]
    model, feeds, step = layer_model(row, "int8", True)
    assert compare(worker, model, feeds, tmp_path, step)[row[4], "float32"] == 1


@needs_litert
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("name", OF_OTHER_SCALES)
def test_kernels_of_other_scales_are_followed_by_their_own(
    name, kind, worker, tmp_path: Path
) -> None:
    row = OF_OTHER_SCALES[name]
    model, feeds, step = layer_model(row, kind, True)
    counts = compare(worker, model, feeds, tmp_path, 2 * step)
    assert counts[row[4], "int16" if kind == "int16" else "int8"] == 1
    assert not counts[row[4], "float32"]


@needs_litert
def test_one_scale_is_not_that_of_finer_steps(worker, tmp_path: Path) -> None:
    """SOFTMAX has one scale for its results: those of finer steps are computed in floats."""
    row = ("LogSoftmax", [(2, 7)], [], {"axis": 1}, "LOG_SOFTMAX")
    model, feeds, step = layer_model(row, "int8", True)
    assert step < 16 / 256
    assert compare(worker, model, feeds, tmp_path, step)["LOG_SOFTMAX", "float32"] == 1


def quantized_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without what quantizes the numbers between layers."""
    cut = onnx.ModelProto()
    cut.CopyFrom(model)
    by_result = {n.output[0]: n for n in model.graph.node}
    constants = {t.name for t in model.graph.initializer}
    instead = {}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] not in constants:
            instead[node.output[0]] = by_result[node.input[0]].input[0]
    del cut.graph.node[:]
    for node in model.graph.node:
        if node.op_type != "QuantizeLinear" and node.output[0] not in instead:
            cut.graph.node.append(node)
            node = cut.graph.node[-1]
            node.input[:] = [instead.get(name, name) for name in node.input]
    cut.graph.output[0].name = instead[model.graph.output[0].name]
    return cut


@needs_litert
@pytest.mark.parametrize("by_channel", [True, False])
@pytest.mark.parametrize("name", [n for n in LAYERS if LAYERS[n][2]])
def test_weights_alone_are_dequantized(name, by_channel, worker, tmp_path: Path) -> None:
    model, feeds, _ = layer_model(LAYERS[name], "int8", by_channel)
    counts = compare(worker, quantized_weights(model), feeds, tmp_path, 1e-4)
    assert counts[LAYERS[name][4], "float32"] == 1 and not counts["QUANTIZE", "int8"]


@needs_litert
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_ends_may_be_integers(kind, worker, tmp_path: Path) -> None:
    body = f"""g ({kind}[1,2,4,4] x) => ({kind}[1,2,4,4] y, {kind}[1,2,4,4] z)
        <float s = {{0.1}}, {kind} o = {{7}}, float t = {{0.2}}, {kind} p = {{9}}> {{
            a = DequantizeLinear(x, s, o) b = Add(a, a)
            y = QuantizeLinear(b, t, p) c = DequantizeLinear(y, t, p) d = Relu(c)
            z = QuantizeLinear(d, t, p) }}"""
    graph = ir_of(body)
    serde.save(graph, tmp_path / "m.tflite")
    bounds = np.iinfo(KINDS[kind])
    x = np.linspace(bounds.min, bounds.max, 32).astype(KINDS[kind]).reshape(1, 2, 4, 4)
    written = from_ir(graph)
    assert {n.op for n in written.nodes} <= {"ADD", "QUANTIZE", "RELU"}
    assert [v.name for v in (*written.inputs, *written.outputs)] == ["x", "y", "z"]
    assert all(isinstance(v, QuantizedValue) for v in (*written.inputs, *written.outputs))
    for got in run_both(worker, tmp_path / "m.tflite", [x]):
        for actual, expected in zip(got, run_graph(graph, {"x": x}), strict=True):
            assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1


# Read as what moves integers, between which and quantizations are no layers.
MOVED = {"concat", "matmul of weights", "max pool", "transpose"}


@needs_litert
@pytest.mark.parametrize("name", sorted(LAYERS.keys() - MOVED))
def test_integer_files_keep_their_operators(name, worker, tmp_path: Path) -> None:
    model, feeds, _ = layer_model(LAYERS[name], "int8", True)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    files = [tmp_path / "m.tflite", tmp_path / "again.tflite"]
    serde.convert(tmp_path / "m.onnx", files[0])
    serde.convert(files[0], files[1])
    before, after = (Counter(n.op for n in decode(path).nodes) for path in files)
    assert after == before
    runs = [run_both(worker, path, [*feeds.values()]) for path in files]
    np.testing.assert_array_equal(*runs)


@needs_litert
@pytest.mark.parametrize("op", ["Concat", "Max", "Min"])
@pytest.mark.parametrize("other", ["s", "t"])
def test_integers_that_are_joined_have_the_scales_of_all(
    op: str, other: str, worker, tmp_path: Path
) -> None:
    """Of several scales they stand for themselves."""
    axis = "<axis = 0>" if op == "Concat" else ""
    graph = ir_of(f"""g (float[2,3] x, float[2,3] z) => (int8[n,3] y)
        <float s = {{0.1}}, float t = {{0.2}}, int8 o = {{7}}> {{
            a = QuantizeLinear(x, s, o) b = QuantizeLinear(z, {other}, o)
            y = {op} {axis} (a, b) }}""")
    serde.save(graph, tmp_path / "m.tflite")
    feeds = {n: np.random.default_rng(3).normal(0, 5, (2, 3)).astype(np.float32) for n in "xz"}
    for (got,) in run_both(worker, tmp_path / "m.tflite", [*feeds.values()]):
        np.testing.assert_array_equal(got, run_graph(graph, feeds)[0])


@needs_litert
def test_one_constant_of_two_scales_is_two(worker, tmp_path: Path) -> None:
    body = """g (float[2,2] x) => (float[2,2] y) <float s = {0.1}, int8 o = {0}, int8 c = {100},
            float t = {0.01}, float u = {0.03}> {
        q = QuantizeLinear(x, s, o) a = DequantizeLinear(q, s, o)
        b = DequantizeLinear(c, t, o) d = DequantizeLinear(c, u, o)
        e = Add(a, b) f = QuantizeLinear(e, s, o) h = DequantizeLinear(f, s, o)
        i = Add(h, d) j = QuantizeLinear(i, s, o) y = DequantizeLinear(j, s, o) }"""
    graph = ir_of(body)
    serde.save(graph, tmp_path / "m.tflite")
    x = np.asarray([[0, 1], [2, -3]], np.float32)
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_allclose(got, x + 4, rtol=0, atol=1e-5)


@needs_litert
@pytest.mark.parametrize(
    ("step", "added", "is_integer"),
    [(3e-5, "float one = {1}", True), (3e-5, "float[2] one = {1, 1e3}", False)],
)
def test_sums_of_int16_keep_to_what_kernels_take(
    step, added, is_integer, worker, tmp_path: Path
) -> None:
    """LiteRT ends where an operand's step is above 2^14 of the result's."""
    graph = ir_of(f"""g (float[3,2] x) => (float[3,2] y) <float s = {{{step}}}, int16 o = {{0}},
        float t = {{1}}, {added}> {{
        q = QuantizeLinear(x, s, o) a = DequantizeLinear(q, s, o)
        w = QuantizeLinear(one, t, o) b = DequantizeLinear(w, t, o) c = Add(a, b)
        f = QuantizeLinear(c, s, o) y = DequantizeLinear(f, s, o) }}""")
    serde.save(graph, tmp_path / "m.tflite")
    x = np.random.default_rng(1).uniform(-1.5, -0.5, (3, 2)).astype(np.float32)
    (expected,) = run_graph(graph, {"x": x})
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        assert np.abs(got - expected).max() <= step * 1.01
    adds = {n.outputs[0].type for n in from_ir(graph).nodes if n.op == "ADD"}
    assert adds == {DType.INT16 if is_integer else DType.FLOAT32}


def sum_of_scales(scale: str):
    """A sum of what two scales make of the same integers."""
    return ir_of(f"""g (float[2,2] x) => (float[2,2] y) <float s = {{0.1}}, int8 o = {{0}},
        float t = {{{scale}}}> {{
        q = QuantizeLinear(x, s, o) a = DequantizeLinear(q, s, o) b = DequantizeLinear(q, t, o)
        c = Add(a, b) f = QuantizeLinear(c, s, o) y = DequantizeLinear(f, s, o) }}""")


def test_a_scale_that_is_no_step_is_computed() -> None:
    graph = from_ir(sum_of_scales("0"))
    assert {n.outputs[0].type for n in graph.nodes if n.op == "ADD"} == {DType.FLOAT32}


@pytest.mark.parametrize("scale", ["inf", "nan"])
def test_a_scale_that_makes_no_numbers_is_refused(scale: str) -> None:
    """ONNX Runtime's quantizer makes such a one of a mask of -inf; all results are NaN then."""
    with pytest.raises(Unconvertible, match="scale that is infinite.*finite numbers in masks"):
        from_ir(sum_of_scales(scale))


@needs_litert
@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25"])
def test_networks_that_mxnet_quantizes(name, worker, tmp_path: Path) -> None:
    """Every layer that has a scale of its own is an operator on integers."""
    prefix, feeds = quantise_network(name, "calibrated", tmp_path)
    shapes = {k: v.shape for k, v in feeds.items()}
    graph = serde.load(f"{prefix}-symbol.json", inputs=shapes, integers="qdq")
    serde.save(graph, tmp_path / "m.tflite")
    counts = Counter((n.op, n.outputs[0].type.name) for n in from_ir(graph).nodes)
    sums = counts["ADD", "FLOAT32"]  # a convolution and a sum have one scale: that of the sum
    layers = {k: n for k, n in counts.items() if "CONV" in k[0]}
    assert sum(n for (_, kind), n in layers.items() if kind == "FLOAT32") == sums
    (expected,) = run_graph(graph, feeds, level=PLAIN)
    for (got,), share in zip(run_both(worker, tmp_path / "m.tflite", [*feeds.values()]),
                             (0.01, 0.05), strict=True):  # fmt: skip
        assert np.abs(got - expected).max() <= share * np.ptp(expected)


@needs_litert
@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenet0.25"])
def test_networks_that_find_ranges_as_they_run(name, worker, tmp_path: Path) -> None:
    """Without calibration integers are the source's; sums of products are exact in floats."""
    prefix, feeds = quantise_network(name, "as it runs", tmp_path)
    shapes = {k: v.shape for k, v in feeds.items()}
    serde.convert(f"{prefix}-symbol.json", tmp_path / "m.tflite", inputs=shapes, verify=False)
    sizes = [p.stat().st_size for p in (tmp_path / "m.tflite", Path(f"{prefix}-0000.params"))]
    assert sizes[0] < 0.7 * sizes[1]  # int8 weights stay so, and the others there are dropped
    (expected,) = run_graph(serde.load(f"{prefix}-symbol.json", inputs=shapes), feeds)
    for (got,) in run_both(worker, tmp_path / "m.tflite", [*feeds.values()]):
        assert np.abs(got - expected).max() <= 1e-5 * np.abs(expected).max()


INTEGERS = """g (uint8[2,T] a, uint8[T,3] b) => (int32[2,3] y) <uint8 u = {7}, uint8 v = {128}>
    { y = MatMulInteger(a, b, u, v) }"""


@needs_litert
@pytest.mark.parametrize("terms", [5, 300, 4000])
def test_sums_of_products_of_integers_are_exact(terms: int, worker, tmp_path: Path) -> None:
    graph = ir_of(INTEGERS.replace("T", str(terms)))
    draws = np.random.default_rng(terms)
    feeds = {"a": draws.integers(200, 256, (2, terms), np.uint8),
             "b": draws.integers(0, 256, (terms, 3), np.uint8)}  # fmt: skip
    serde.save(graph, tmp_path / "m.tflite")
    (expected,) = run_graph(graph, feeds)
    for (got,) in run_both(worker, tmp_path / "m.tflite", [*feeds.values()]):
        np.testing.assert_array_equal(got, expected)


@needs_litert
@pytest.mark.parametrize(("name", "layers"), [
    ("resnet18_v1", {"CONV_2D": 20, "FULLY_CONNECTED": 1}),
    ("mobilenet0.25", {"CONV_2D": 14, "DEPTHWISE_CONV_2D": 13, "FULLY_CONNECTED": 1}),
    ("bert_batch_dot", {"FULLY_CONNECTED": 13, "BATCH_MATMUL": 4, "SOFTMAX": 2}),
])  # fmt: skip
def test_networks_that_onnx_runtime_quantizes(name, layers, worker, tmp_path: Path) -> None:
    path, feeds = quantize_network(name, tmp_path)
    graph = serde.load(path)
    serde.save(graph, tmp_path / "m.tflite")
    counts = Counter((n.op, n.outputs[0].type.name) for n in from_ir(graph).nodes)
    assert {op: counts[op, "INT8"] for op in layers} == layers
    assert not any(counts[op, "FLOAT32"] for op in layers)
    expected = run_at(PLAIN, path, feeds)
    inputs = [feeds[v.name] for v in graph.inputs]
    for results, share in zip(run_both(worker, tmp_path / "m.tflite", inputs), (0.01, 0.02),
                              strict=True):  # fmt: skip
        for got, wanted in zip(results, expected, strict=True):
            assert np.abs(got - wanted).max() <= share * np.ptp(wanted)


def quantize_network(name: str, folder: Path):
    """A network of random weights, quantized by ONNX Runtime, and inputs."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    network = networks.build(name, networks.smallest(name) if name in networks.VISION else None)
    symbol, _ = networks.export(network, folder)
    feeds = networks.feeds(network, 1)
    shapes = {k: v.shape for k, v in feeds.items()}
    serde.convert(symbol, folder / "f.onnx", inputs=shapes, verify=False, opset=17)
    paths = [str(folder / f"{part}.onnx") for part in ("f", "p", "q")]
    quant_pre_process(*paths[:2], skip_symbolic_shape=True)
    names = [i.name for i in onnx.load(paths[1]).graph.input]
    samples = iter([{n: feeds[n] for n in names}])

    class Samples(quantization.CalibrationDataReader):
        def get_next(self):
            return next(samples, None)

    quantization.quantize_static(
        *paths[1:], Samples(), quant_format=quantization.QuantFormat.QDQ, per_channel=True
    )
    return folder / "q.onnx", {n: feeds[n] for n in names}
