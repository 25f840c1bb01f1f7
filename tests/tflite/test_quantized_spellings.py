"""Quantized layers in the ways that tools spell them are integer operators all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import LitertWorker
from serde.formats.tflite.from_ir import from_ir
from testing.onnx_live import PLAIN, ir_of
from testing.onnx_live import run as run_graph
from tests.tflite.litert_live import run_both, why_not

needs_litert = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
ENDS = "float s = {0.05}, int8 o = {3}, float t = {0.1}, int8 p = {-7}"


@pytest.fixture(scope="module")
def worker() -> LitertWorker:
    """One process for all files."""
    return LitertWorker()


def numbers(count: int, low: int, high: int) -> str:
    """Small integers as a list of the text form."""
    return ",".join(str(low + 7 * n % (high - low)) for n in range(count))


SPELLINGS = {  # what stands between the integers a and c, its constants, and what it becomes
    "QLinearConv": (
        "c = QLinearConv<pads = [1,1,1,1]>(a, s, o, w, r, z, t, p, b)",
        f"int8[4,2,3,3] w = {{{numbers(72, -60, 60)}}}, float[4] r = {{0.01,0.02,0.01,0.03}}, "
        "int8[4] z = {0,0,0,0}, int32[4] b = {100,-50,0,900}",
        "CONV_2D",
    ),
    "QLinearMatMul": (
        "c = QLinearMatMul(a, s, o, w, r, z, t, p)",
        f"int8[5,3] w = {{{numbers(15, -60, 60)}}}, float r = {{0.01}}, int8 z = {{0}}",
        "FULLY_CONNECTED",
    ),
    "weights that are quantized in the model": (
        "q = QuantizeLinear(w, r, z) d = DequantizeLinear(q, r, z) "
        "e = DequantizeLinear(a, s, o) f = Conv(e, d) c = QuantizeLinear(f, t, p)",
        f"float[4,2,3,3] w = {{{numbers(72, -60, 60)}}}, float r = {{0.5}}, int8 z = {{0}}",
        "CONV_2D",
    ),
    "a square": (
        "e = DequantizeLinear(a, s, o) f = Pow(e, two) c = QuantizeLinear(f, t, p)",
        "float two = {2}", "MUL",
    ),
    "a quotient": (
        "e = DequantizeLinear(a, s, o) f = Div(e, three) c = QuantizeLinear(f, t, p)",
        "float three = {3}", "MUL",
    ),
    "a pool of integers": (
        "d = MaxPool<kernel_shape = [2,2], pads = [1,0,1,0]>(a) "
        "e = DequantizeLinear(d, s, o) f = Relu(e) c = QuantizeLinear(f, t, p)",
        "float unused = {1}",
        "MAX_POOL_2D",
    ),
}  # fmt: skip


@needs_litert
@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_are_integer_operators(name: str, worker, tmp_path: Path) -> None:
    body, constants, operator = SPELLINGS[name]
    graph = ir_of(f"""g (float[1,2,6,5] x) => (float[?,?,?,?] y) <{ENDS}, {constants}> {{
        a = QuantizeLinear(x, s, o) {body} y = DequantizeLinear(c, t, p) }}""")
    counts = Counter((n.op, n.outputs[0].type.name) for n in from_ir(graph).nodes)
    assert counts[operator, "INT8"] == 1
    assert not any(kind == "FLOAT32" and op != "DEQUANTIZE" for op, kind in counts)
    x = np.random.default_rng(2).uniform(-3, 3, (1, 2, 6, 5)).astype(np.float32)
    (expected,) = run_graph(graph, {"x": x}, level=PLAIN)
    serde.save(graph, tmp_path / "m.tflite")
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        assert np.abs(got - expected).max() <= 0.101


@needs_litert
def test_scales_of_masks_are_computed_in_floats(worker, tmp_path: Path) -> None:
    """LiteRT ends where such a scale times 2^20 is no float32; SOFTMAX takes it."""
    graph = ir_of("""g (float[4] x) => (float[4] y)
        <float s = {0.05}, int8 o = {0}, float t = {1.3e36}, int8 p = {127},
         float[4] mask = {0, 0, -3.3e38, 0}, float u = {0.00390625}, int8 v = {-128}> {
        a = QuantizeLinear(x, s, o) b = DequantizeLinear(a, s, o)
        m = QuantizeLinear(mask, t, p) n = DequantizeLinear(m, t, p) c = Add(b, n)
        d = QuantizeLinear(c, t, p) e = DequantizeLinear(d, t, p) f = Softmax(e)
        h = QuantizeLinear(f, u, v) y = DequantizeLinear(h, u, v) }""")
    counts = Counter((n.op, n.outputs[0].type.name) for n in from_ir(graph).nodes)
    assert counts["ADD", "FLOAT32"] == 1 == counts["SOFTMAX", "INT8"]
    x = np.asarray([1, 2, 3, -1], np.float32)
    (expected,) = run_graph(graph, {"x": x}, level=PLAIN)
    serde.save(graph, tmp_path / "m.tflite")
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        assert np.abs(got - expected).max() <= 1.01 / 256


def test_softmax_of_int16_takes_no_scales_of_masks() -> None:
    graph = ir_of("""g (float[4] x) => (float[4] y)
        <float t = {1e34}, int16 p = {0}, float u = {0.00003}> {
        d = QuantizeLinear(x, t, p) e = DequantizeLinear(d, t, p) f = Softmax(e)
        h = QuantizeLinear(f, u, p) y = DequantizeLinear(h, u, p) }""")
    kinds = {n.outputs[0].type.name for n in from_ir(graph).nodes if n.op == "SOFTMAX"}
    assert kinds == {"FLOAT32"}


@needs_litert
def test_numbers_between_float_layers_are_quantized_by_kernels(worker, tmp_path: Path) -> None:
    """As TensorRT's tools and PyTorch's fake quantization leave them: before layers only."""
    graph = ir_of("""g (float[2,3] x) => (float[2,3] y) <float s = {0.05}, int8 o = {3},
        float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
        a = QuantizeLinear(x, s, o) b = DequantizeLinear(a, s, o) y = MatMul(b, w) }""")
    assert from_ir(graph).operators() == {"QUANTIZE", "DEQUANTIZE", "FULLY_CONNECTED"}
    x = np.random.default_rng(0).uniform(-3, 3, (2, 3)).astype(np.float32)
    (expected,) = run_graph(graph, {"x": x}, level=PLAIN)
    serde.save(graph, tmp_path / "m.tflite")
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@needs_litert
@pytest.mark.parametrize("block", ["", ", block_size = 2"])
def test_small_weights_of_negative_scales(block: str, worker, tmp_path: Path) -> None:
    """As ONNX Runtime's quantizer of 4 bits makes them, and 0 of what is all zeros.

    The weights are packed: -8, 7; 3, -8; 1, 2; -8, 5.
    """
    scales = "float[2,2] r = {-0.5, 0, 0.25, -1}" if block else "float[2] r = {-0.5, 0.25}"
    graph = ir_of(f"""g (float[1,4] x) => (float[1,2] y)
        <int4[4,2] w = {{120, 131, 33, 88}}, {scales}> {{
        d = DequantizeLinear<axis = {0 if block else 1}{block}>(w, r) y = MatMul(x, d) }}""")
    x = np.asarray([[1, 2, -3, 4]], np.float32)
    (expected,) = run_graph(graph, {"x": x}, level=PLAIN)
    serde.save(graph, tmp_path / "m.tflite")
    for (got,) in run_both(worker, tmp_path / "m.tflite", [x]):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


@needs_litert
def test_rows_of_an_int8_table_are_taken_as_integers(worker, tmp_path: Path) -> None:
    graph = ir_of(f"""g (int64[3] i) => (float[3,4] y) <float s = {{0.05}}, int8 o = {{3}},
        int8[5,4] w = {{{numbers(20, -60, 60)}}}> {{
        d = DequantizeLinear(w, s, o) y = Gather(d, i) }}""")
    kinds = {n.outputs[0].type.name for n in from_ir(graph).nodes if n.op == "GATHER"}
    assert kinds == {"INT8"}
    places = np.asarray([4, 0, 2])
    (expected,) = run_graph(graph, {"i": places}, level=PLAIN)
    serde.save(graph, tmp_path / "m.tflite")
    for (got,) in run_both(worker, tmp_path / "m.tflite", [places]):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
