"""Quantized operators written as real ones between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from serde.formats.relay.json.reader import parse_json
from serde.formats.relay.to_ir import module_graph, to_ir
from serde.passes import tidy
from testing.onnx_live import sums_saturate
from testing.relay.operators import ARCHIVE
from testing.relay.ops.record import folder_name
from testing.relay.ops.table import CASES
from testing.relay.running import fed_and_given, names, read_module, run
from testing.relay.tvm_live import ask

QUANTIZED = {
    folder_name(n): c for n, c in CASES.items() if n.startswith(("qnn.", "fixed_point_multiply"))
}
CONV = "R.qnn.conv2d(a, c(w({}), 'int8'), c(3, 'int32'), c(0, 'int32'), c(0.1), {}, (3, 3), {}, {})"
PLAIN = CONV.format("4, 3, 3, 3", "c(0.02)", 4, "padding=(1, 1)")
BY_CHANNEL = CONV.format("4, 3, 3, 3", "c([0.02, 0.03, 0.01, 0.005])", 4, "strides=(2, 2)")
NHWC = CONV.format(
    "3, 3, 3, 4", "c(0.02)", 4, "data_layout='NHWC', kernel_layout='HWIO', padding=(1, 1, 0, 0)"
)
DEPTHWISE = CONV.format(
    "3, 3, 3, 2", "c(0.02)", 6, "groups=3, data_layout='NHWC', kernel_layout='HWOI'"
)
DENSE = "R.qnn.dense(a, c(w(4, 9), 'int8'), c(3, 'int32'), c(0, 'int32'), c(0.1), {}, 4)"
BIAS = "c([100, -200, 300, 0], 'int32')"
TO = "c(0.3), c(5, 'int32')"
IMAGE, PIXELS, ROWS = "2,3,8,8:uint8:0:255", "2,8,8,3:uint8:0:255", "5,9:uint8:0:255"
LAYER = {"DequantizeLinear": 2, "Conv": 1, "QuantizeLinear": 1}
BIASED = {"DequantizeLinear": 3, "Conv": 1, "QuantizeLinear": 1}


def requantize(x: str, scale: str = "c(0.002)", rest: str = "axis=1, out_dtype='uint8'") -> str:
    return f"R.qnn.requantize({x}, {scale}, c(0, 'int32'), {TO}, {rest})"


# What TVM writes out for a requantization in int64: a product, what rounds it, and a shift.
SHIFTED = (
    "(lambda p: R.right_shift(R.add(p, {rounding}), c(39, 'int64')))"
    "(R.multiply(R.cast(a, 'int64'), c({factor}, 'int64')))"
)
UP = "c(1 << 38, 'int64')"
AWAY = "R.where(R.greater_equal(p, c(0, 'int64')), c(1 << 38, 'int64'), c((1 << 38) - 1, 'int64'))"
TRUNCATED = "R.where(R.less(p, c(0, 'int64')), c((1 << 39) - 1, 'int64'), c(0, 'int64'))"
SUMS, ROUNDED_UP = "40:int32:-70000:70000", {"Mul": 1, "Add": 1, "Floor": 1}
ROUNDED_AWAY = {"Mul": 2, "Sign": 1, "Abs": 1, "Add": 1, "Floor": 1}
CHANNELS = "c([0.002, 0.003, 0.001, 0.0005])"
PATTERNS = {  # an expression, its input, and the operators it becomes
    "conv": (requantize(PLAIN), IMAGE, LAYER),
    "conv by channel": (requantize(BY_CHANNEL, CHANNELS), IMAGE, LAYER),
    "conv and bias": (requantize(f"R.nn.bias_add({PLAIN}, {BIAS})"), IMAGE, BIASED),
    "conv by channel and bias": (
        requantize(f"R.nn.bias_add({BY_CHANNEL}, {BIAS})", CHANNELS), IMAGE, BIASED,
    ),
    "a sum by channel": (
        requantize(f"R.add({PLAIN}, R.reshape({BIAS}, (4, 1, 1)))"), IMAGE, BIASED,
    ),
    "two sums": (
        requantize(f"R.add(R.nn.bias_add({PLAIN}, {BIAS}), c(7, 'int32'))"), IMAGE, BIASED,
    ),
    "channels last": (
        requantize(f"R.nn.bias_add({NHWC}, {BIAS}, 3)", rest="axis=3, out_dtype='int8'"), PIXELS,
        {**BIASED, "Transpose": 2},
    ),
    "depthwise": (
        requantize(DEPTHWISE, rest="axis=3, out_dtype='uint8'"), PIXELS, {**LAYER, "Transpose": 2},
    ),
    "real results": (
        f"R.qnn.dequantize(R.nn.bias_add({PLAIN}, {BIAS}), c(0.002), c(0, 'int32'))", IMAGE,
        {"DequantizeLinear": 3, "Conv": 1},
    ),
    "int32, a clip and a cast, as of PyTorch": (
        "R.cast(R.clip({}, 0, 255), 'uint8')".format(requantize(PLAIN, rest="axis=1, "
        "out_dtype='int32'")), IMAGE, LAYER,
    ),
    "a relu of int32 from the zero point": (
        "R.cast(R.clip({}, 5, 255), 'uint8')".format(requantize(PLAIN, rest="axis=1, "
        "out_dtype='int32'")), IMAGE, {**LAYER, "Relu": 1},
    ),
    "a relu of bytes, as of TFLite": (
        f"R.clip({requantize(PLAIN)}, 5, 255)", IMAGE, {**LAYER, "Relu": 1},
    ),
    "a relu6 of bytes": (
        f"R.clip({requantize(PLAIN)}, 5, 25)", IMAGE, {**LAYER, "Clip": 1},
    ),
    "a clip of all bytes": (f"R.clip({requantize(PLAIN)}, 0, 255)", IMAGE, LAYER),
    "dense": (
        requantize(f"R.nn.bias_add({DENSE.format('c(0.02)')}, {BIAS})"), ROWS,
        {"DequantizeLinear": 3, "Gemm": 1, "QuantizeLinear": 1},
    ),
    "dense by channel": (
        requantize(DENSE.format("c([0.02, 0.03, 0.01, 0.005])"), CHANNELS), ROWS,
        {"DequantizeLinear": 2, "Gemm": 1, "QuantizeLinear": 1},
    ),
    "read by two": (
        "R.maximum(R.cast({0}, 'int32'), R.cast({0}, 'int32'))".format(requantize(PLAIN)), IMAGE, None,
    ),
    "another scale": (requantize(PLAIN, "c(0.004)"), IMAGE, None),
    "a product in int64": (SHIFTED.format(rounding=UP, factor=1119649675), SUMS, ROUNDED_UP),
    "halves away from zero": (SHIFTED.format(rounding=AWAY, factor=1 << 30), SUMS, ROUNDED_AWAY),
    "a product that is rounded otherwise": (
        SHIFTED.format(rounding=TRUNCATED, factor=1119649675), SUMS, None,
    ),
    "a scale of sums": (requantize(PLAIN, rest="axis=1, out_dtype='int32'"), IMAGE, None),
    "weights of the model": (
        requantize("R.qnn.conv2d(a, R.cast(R.clip(a, 0, 99), 'int8'), c(3, 'int32'), "
        "c(0, 'int32'), c(0.1), c(0.02), (8, 8), 2)"), IMAGE, LAYER | {"Min": 1, "Max": 1},
    ),
}  # fmt: skip


def assert_near(actual, expected) -> None:
    """Integers but one apart, reals within 1e-4 of scale."""
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        a, b = (np.asarray(v, np.float64) for v in (a, b))
        scale = np.abs(b).max(initial=0) or 1.0
        atol = 1.0 if expected[0].dtype.kind in "iu" else 1e-4 * scale
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", sorted(set(QUANTIZED) & set(names(ARCHIVE))))
def test_operator(name: str, opset: int, tmp_path: Path) -> None:
    case, record = QUANTIZED[name], read_module(ARCHIVE, name)
    module = module_graph(parse_json(record.json, name), None, name)
    graph = tidy(to_ir(module, integers="qdq"))
    assert_near(run(graph, record.feeds, max(opset, case.since), tmp_path), record.outputs)


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern(name: str, tmp_path: Path) -> None:
    expression, shape, operators = PATTERNS[name]
    file = str(tmp_path / "io.npz")
    text = ask("live", "case", expression, [shape], "", file)["static"]
    feeds, outputs = fed_and_given(file)
    graph = tidy(to_ir(module_graph(parse_json(text, name), None, name), integers="qdq"))
    counts = Counter(n.op for n in graph.nodes if n.op != "Cast")
    assert operators is None or counts == Counter(operators)
    # Below opset 13 layers by channel are QLinearConv, whose sums saturate on some processors.
    for opset in (17, 21) if sums_saturate() else (11, 17, 21):
        assert_near(run(graph, feeds, opset, tmp_path), outputs)
