"""Operators on quantized tensors, and products of integers, beside ONNX Runtime's."""

import numpy as np
import pytest

from tests.onnx.contrib.cases import Case, check, refusal

rng = np.random.default_rng(0)
f32 = np.float32


def scale(number):
    return np.array(number, f32)


def zero(dtype, number=None):
    low = np.iinfo(dtype).min
    return np.array(rng.integers(low + 100, low + 150) if number is None else number, dtype)


def integers(dtype, *shape):
    kind = np.iinfo(dtype)
    return rng.integers(kind.min, kind.max + 1, shape).astype(dtype)


def floats(*shape):
    return rng.standard_normal(shape).astype(f32)


def cases_of(dtype):
    low = np.iinfo(dtype).min
    for a, b, c in (((5, 64, 6), (5, 64, 6), 0.031), ((64, 8), (8,), 0.02), ((2, 3), (), 0.05)):
        operands = [integers(dtype, *a), scale(0.0173), zero(dtype),
                    integers(dtype, *b), scale(0.0291), zero(dtype), scale(c), zero(dtype)]  # fmt: skip
        for op in ("QLinearAdd", "QLinearMul"):
            yield Case(op, operands, fixed=(1, 2, 4, 5, 6, 7), most_off=1)
    one = [integers(dtype, 2, 6, 16, 16), scale(0.031), zero(dtype), scale(0.0077), zero(dtype)]
    yield Case("QLinearSigmoid", one, fixed=(1, 2, 3, 4))
    yield Case("QLinearLeakyRelu", one, {"alpha": 0.2}, fixed=(1, 2, 3, 4))
    for attrs in (
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [2, 2], "strides": [2, 2], "channels_last": 1},
    ):
        yield Case("QLinearAveragePool", one, attrs, fixed=(1, 2, 3, 4), most_off=1)
    for last in (0, 1):
        attrs = {"channels_last": last}
        yield Case("QLinearGlobalAveragePool", one, attrs, fixed=(1, 2, 3, 4), most_off=1)
    for opset, axis, shape in ((13, -1, (40, 30)), (13, 1, (4, 9, 5)), (12, 1, (4, 10, 10))):
        for step in (1 / 256, 1 / 255, 0.004, 0.0023, 0.7):  # whose reciprocals it cuts off
            softmax = [integers(dtype, *shape), scale(0.05), zero(dtype), scale(step),
                       zero(dtype, low)]  # fmt: skip
            attrs = {"opset": opset, "axis": axis}
            yield Case("QLinearSoftmax", softmax, attrs, fixed=(1, 2, 3, 4))
    parts = [scale(0.03), zero(dtype), integers(dtype, 2, 3, 4), scale(0.02), zero(dtype),
             integers(dtype, 2, 5, 4), scale(0.05), zero(dtype)]  # fmt: skip
    yield Case("QLinearConcat", parts, {"axis": 1}, fixed=(0, 1, 3, 4, 6, 7))
    where = [rng.random((4, 5)) > 0.5, integers(dtype, 4, 5), scale(0.02), zero(dtype),
             integers(dtype, 5), scale(0.05), zero(dtype), scale(0.03), zero(dtype)]  # fmt: skip
    yield Case("QLinearWhere", where, fixed=(2, 3, 5, 6, 7, 8))
    w = rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    for last, shape in ((0, (1, 3, 9, 9)), (1, (1, 9, 9, 3))):
        conv = [integers(dtype, *shape), scale(0.02), zero(dtype), w, scale(0.01),
                np.int8(0), scale(0.1), zero(dtype), rng.integers(-99, 99, 4).astype(np.int32)]  # fmt: skip
        attrs = {"channels_last": last, "pads": [1, 1, 1, 1], "strides": [2, 2]}
        yield Case("QLinearConv", conv, attrs, fixed=(1, 2, 3, 4, 5, 6, 7, 8))
    attrs = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}
    yield Case("NhwcMaxPool", [integers(dtype, 2, 9, 9, 3)], attrs)


def products_of(dtype):
    b = rng.integers(-127, 128, (48, 32)).astype(np.int8)
    few = rng.integers(-63, 64, (48, 32)).astype(np.int8)  # whose sums saturate in no kernel
    a, bias = integers(dtype, 8, 48), floats(32)
    by_column = (rng.random(32) * 0.01).astype(f32)
    c = rng.integers(-3000, 3000, 32).astype(np.int32)
    fixed = tuple(range(1, 9))
    for out in (scale(0.11), scale(0.0173)):
        operands = [a, scale(0.02), zero(dtype), few, scale(0.003), np.int8(0), c, out, zero(dtype)]
        yield Case("QGemm", operands, {"alpha": 1.0}, fixed=fixed, most_off=1)
        yield Case("QGemm", [*operands[:4], by_column, np.zeros(32, np.int8), *operands[6:]],
                   {"alpha": 0.7}, fixed=fixed, most_off=1)  # fmt: skip
    real = [a.T.copy(), scale(0.02), zero(dtype), few.T.copy(), by_column, np.zeros(32, np.int8)]
    yield Case("QGemm", real, {"alpha": 0.7, "transA": 1, "transB": 1}, fixed=fixed)
    yield Case("MatMulIntegerToFloat",
               [a, b, scale(0.02), scale(0.01), zero(dtype), np.int8(3), bias],
               fixed=(1, 2, 3, 4, 5, 6))  # fmt: skip
    yield Case("MatMulIntegerToFloat",
               [integers(dtype, 2, 3, 48), b, scale([0.02]), by_column, zero(dtype).reshape(1),
                rng.integers(-9, 9, 32).astype(np.int8)], fixed=(1, 2, 3, 4, 5))  # fmt: skip


CASES = [
    *(c for dtype in (np.uint8, np.int8) for c in (*cases_of(dtype), *products_of(dtype))),
    Case("DynamicQuantizeMatMul",
         [floats(2, 8, 48), integers(np.int8, 48, 5), (rng.random(5) * 0.01).astype(f32),
          rng.integers(-9, 9, 5).astype(np.int8), floats(5)], fixed=(1, 2, 3, 4)),
    Case("DynamicQuantizeMatMul", [floats(8, 48), integers(np.uint8, 48, 5), scale(0.01)],
         fixed=(1, 2)),
    Case("MatMulInteger16", [integers(np.int16, 3, 4), integers(np.int16, 4, 5) // np.int16(9)]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operators(case, tmp_path):
    check(case, tmp_path)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantize_and_dequantize(dtype, axis, tmp_path):
    size, attrs = (None, {}) if axis is None else ((3, 4)[axis], {"axis": axis})
    scales = scale(0.1) if size is None else (rng.random(size) + 0.1).astype(f32)
    zeros = np.arange(3, 3 + (size or 1)).astype(dtype).reshape(scales.shape)
    check(Case("QuantizeLinear", [floats(3, 4) * 10, scales, zeros], attrs, fixed=(1, 2)), tmp_path)
    check(Case("DequantizeLinear", [integers(dtype, 3, 4), scales, zeros], attrs, fixed=(1, 2)),
          tmp_path)  # fmt: skip


def test_a_scale_of_one_element_is_of_the_whole_tensor(tmp_path):
    check(Case("DequantizeLinear", [integers(np.int8, 3, 4), scale([0.1])], fixed=(1,)), tmp_path)


def test_an_average_that_divides_otherwise_is_refused(tmp_path):
    attrs = {"kernel_shape": [3, 3], "ceil_mode": 1, "count_include_pad": 1}
    operands = [
        integers(np.uint8, 1, 1, 8, 8),
        scale(0.1),
        zero(np.uint8),
        scale(0.1),
        zero(np.uint8),
    ]
    message = refusal(Case("QLinearAveragePool", operands, attrs, fixed=(1, 2, 3, 4)), tmp_path)
    assert "com.microsoft:QLinearAveragePool" in message and "count_include_pad=1" in message
