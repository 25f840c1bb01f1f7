"""Integers are those of MXNet bit for bit, thousands of them, in ONNX Runtime's own kernels."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from serde.bridges.int8_products import adds_int8_exactly
from serde.ir.graph import DType
from testing.mxnet.cases import OPSETS, case, convert_and_run, f32, i8, i32, of, u8, write
from testing.mxnet.int8 import LAYERS, needs_exact_int8, skip_inexact
from testing.onnx_live import LEVELS, OPTIMIZED, run_at
from tests.consumers.test_integer_kernels import choices, saturate
from tests.mxnet.ops.test_attention import integers
from tests.mxnet.ops.test_quantization import HIGH, TOP, ZERO, add, enlarge, pool, resize
from tests.mxnet.ops.test_quantized_matmul import (
    BIASED,
    CALIBRATED,
    CHANNELWISE,
    CONV,
    NO_BIAS,
    NORM,
    POSITIVE,
    RELU,
    conv,
    dense,
    summing,
)

LOW = of([-2.13])
RANGE, UPWARDS = (of([-1.1]), of([0.53])), (ZERO, of([2.2]))
ENDS = {"min_calib_range": -3.3, "max_calib_range": 2.7}
MANY = f32(300, 400, low=-4, high=4)
Q, P = (i8(8, 16, 25, 20, low=-128, high=127, seed=i) for i in (0, 1))
U, V = (u8(8, 16, 25, 20, low=0, high=255, seed=i) for i in (0, 3))
NARROW, WIDE = (i32(300, 400, low=-(2**n), high=2**n) for n in (20, 30))
IMAGES = (i8(4, 3, 60, 50, low=-128, high=127), u8(4, 3, 60, 50, low=0, high=255))
ADDED = (i8(4, 4, 30, 49, low=-128, high=127), u8(4, 4, 30, 49, low=0, high=255))
STATISTICS = (*(f32(3000, seed=i) for i in range(3)), f32(3000, low=0.5, seed=3))
KINDS = (
    *(("Activation", {"act_type": kind}) for kind in ("relu", "sigmoid", "softrelu", "tanh")),
    *(("LeakyReLU", {"act_type": kind, "slope": 0.2}) for kind in ("leaky", "elu", "gelu")),
)
OF_DENSE = (*KINDS, *((op, {}) for op in ("square", "sqrt", "exp", "abs")))
CLIP = ("clip", {"a_min": "0", "a_max": "4.1"})
LEAKY = ("LeakyReLU", {"act_type": "leaky", "slope": 0.1})
DEEP = (f32(4, 600, 3, 2), f32(4))  # products that float32 cannot count
MANY_CHANNELS = (i8(1, 600, 20, 15, low=-128, high=127), u8(1, 600, 20, 15, low=200, high=255))
DILATED = ("Convolution", {**CONV, "dilate": (2, 1)})
GROUPED = ("Convolution", {**CONV, "num_group": 2})
DEPTHWISE = ("Convolution", {**CONV, "num_filter": 600, "num_group": 600})
OF_GROUPS = (f32(4, 300, 3, 2), f32(4))
OF_CHANNELS = (f32(600, 1, 3, 2), f32(600))
ROWS = (i8(500, 300, low=-128, high=127), u8(500, 300, low=0, high=255))
DENSE = ("FullyConnected", {"num_hidden": 40})
BARE = ("FullyConnected", {"num_hidden": 40, "no_bias": True})
HELD = (i8(40, 300, low=-128, high=127), i8(40, low=-128, high=127))
FLOATS = (f32(40, 300), f32(40))
OUTPUTS = (
    ([], {"min_calib_range": -9, "max_calib_range": 10}),
    ([RELU], {"with_eltwise": True, "min_calib_range": 0, "max_calib_range": 10.3}),
    ([], {"enable_float_output": True}),
    ([RELU], {"with_eltwise": True, "enable_float_output": True}),
    ([CLIP], {"with_eltwise": True, "enable_float_output": True}),
    ([CLIP], {"with_eltwise": True, "min_calib_range": 0, "max_calib_range": 3.9}),
    ([CLIP], {"with_eltwise": True, "min_calib_range": 0, "max_calib_range": 10.3}),
)


def measure_ranges(layer):
    """The layer behind data whose range is found as the model runs, of constant weights."""
    held = tuple(i for i in layer.params if layer.inputs[i].size > 1)
    return replace(layer, params=held)


CASES = [
    *(
        case("_contrib_quantize_v2", MANY, out_type=t, **a)
        for t in ("int8", "uint8", "auto")
        for a in ({}, ENDS, TOP)
    ),
    *(case("_contrib_quantize", MANY, LOW, HIGH, out_type=t) for t in ("int8", "uint8")),
    *(case("_contrib_dequantize", *v) for v in ((Q, LOW, HIGH), (U, ZERO, HIGH))),
    *(
        case("_contrib_requantize", q, low, HIGH, **a)
        for q, low in ((WIDE, LOW), (NARROW, of([-5300])))
        for a in (
            {}, {"out_type": "auto"}, {"out_type": "uint8"}, ENDS, {**TOP, "out_type": "auto"},
            {**ENDS, "out_type": "uint8"},
        )
    ),
    *(
        case("_contrib_quantized_pooling", *v, **a)
        for v in ((Q, LOW, HIGH), (U, ZERO, HIGH))
        for a in (
            {"kernel": (2, 2), "stride": (2, 2)},
            {"kernel": (2, 2), "pool_type": "avg"},
            {"kernel": (3, 2), "pool_type": "avg"},
            {"global_pool": True, "pool_type": "avg", "kernel": (1, 1)},
            {"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg", "count_include_pad": False},
            {"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg"},
            {"kernel": (4, 4), "pool_type": "avg"},
        )
    ),
    *(
        case("_contrib_quantized_batch_norm", x, *STATISTICS, low, HIGH, **ENDS)
        for x, low in (
            (i8(1, 3000, 15, 20, low=-128, high=127), LOW), (u8(1, 3000, 15, 20, high=255), ZERO)
        )
    ),
    *(
        case("_contrib_quantized_concat", a, b, *ends, num_args=2, dim=1)
        for a, b in ((Q, P), (U, V), (Q, U))
        for ends in ((LOW, HIGH, *RANGE), (ZERO, HIGH, *UPWARDS))
    ),
    *(
        add(a, b, *RANGE, 20 - number, **attrs)
        for number, ((a, b), attrs) in enumerate(
            product(((Q, P), (U, V), (Q, U), (U, Q)), ({}, ENDS, TOP))
        )
    ),
    *(
        case("_contrib_quantized_elemwise_mul", Q, P, LOW, HIGH, *RANGE, **attrs)
        for attrs in ({}, ENDS, {"enable_float_output": True})
    ),
    *(pool(u8(4, 600, 12, 18, low=0, high=255), size) for size in ((2, 3), (6, 6), (1,), ())),
    *(
        enlarge(u8(2, 64, 9, 7, low=0, high=255), *window, bias=bias)
        for window in ((4, 2, 1), (3, 1, 1), (5, 2, 2, 1), (8, 4, 2))
        for bias in (False, True)
    ),
    enlarge(u8(1, 512, 16, 12, low=0, high=255), 4, 2, 1, filters=256),
    *(
        resize(u8(2, 60, size, 30, low=0, high=255), height=47, width=80, align_corners=corners)
        for size in (1, 2, 31)
        for corners in (True, False)
    ),
    resize(u8(2, 60, 30, 31, low=0, high=255), height=10, width=1),
    resize(
        u8(2, 60, 30, 31, low=0, high=255), mode="odd_scale", scale_height=2.0, scale_width=0.5
    ),
    *(conv([BIASED], x, **CALIBRATED) for x in IMAGES),
    *(conv([NO_BIAS], x, **CALIBRATED) for x in IMAGES),
    *(conv([BIASED, RELU], x, with_act=True, **POSITIVE) for x in IMAGES),
    *(conv([BIASED, NORM, RELU], x, with_bn=True, with_act=True, **POSITIVE) for x in IMAGES),
    *(conv([BIASED, LEAKY], x, with_act=True, **CALIBRATED) for x in IMAGES),
    *(summing(x, s, **CALIBRATED) for x in IMAGES for s in ADDED),
    *(summing(x, s, [RELU], with_postsum_act=True, **POSITIVE) for x in IMAGES for s in ADDED),
    *(summing(x, s, quantized=True) for x in IMAGES for s in ADDED),
    *(summing(x, s, [RELU], quantized=True, with_postsum_act=True) for x in IMAGES for s in ADDED),
    *(conv([BIASED, LEAKY], x, quantized=True, with_act=True) for x in IMAGES),
    *(conv([BIASED, CLIP], x, quantized=True, with_act=True) for x in IMAGES),
    *(conv([BIASED, CLIP], x, with_act=True, **POSITIVE) for x in IMAGES),
    *(
        conv([BIASED, act], x, quantized=True, with_act=True, **attrs)
        for x in IMAGES
        for act in KINDS
        for attrs in ({}, ENDS, TOP)
    ),
    *(
        dense([DENSE, act], x, HELD, quantized=True, with_eltwise=True, **attrs)
        for x in ROWS
        for act in OF_DENSE
        for attrs in ({}, {"min_calib_range": -9, "max_calib_range": 10}, TOP)
        if attrs or act[0] != "sqrt"
    ),
    *integers(50, 3, 4, 24),
    *(dense([DENSE, CLIP], x, HELD, quantized=True, with_eltwise=True) for x in ROWS),
    *(conv([BIASED], x, DEEP, **CALIBRATED) for x in MANY_CHANNELS),
    *(conv([BIASED, LEAKY], x, DEEP, with_act=True, **CALIBRATED) for x in MANY_CHANNELS),
    *(
        dense([layer, *after], x, HELD if layer is DENSE else HELD[:1], quantized=True, **attrs)
        for layer in (DENSE, BARE)
        for x in ROWS
        for after, attrs in OUTPUTS
    ),
    *(
        dense([DENSE, *after], x, FLOATS, quantized=True, **CHANNELWISE, **attrs)
        for x in ROWS
        for after, attrs in OUTPUTS
    ),
    *(conv([DILATED, LEAKY], x, DEEP, with_act=True, **CALIBRATED) for x in MANY_CHANNELS),
    # Of int8 data MXNet adds up the filters of a group inexactly.
    conv([GROUPED, RELU], MANY_CHANNELS[1], OF_GROUPS, with_act=True, **POSITIVE),
    *(conv([DEPTHWISE, RELU], x, OF_CHANNELS, with_act=True, **POSITIVE) for x in MANY_CHANNELS),
    *(
        measure_ranges(conv([BIASED, *after], x, **attrs))
        for x in IMAGES
        for after, attrs in (([], CALIBRATED), ([RELU], {"with_act": True, **POSITIVE}))
    ),
    *(
        measure_ranges(conv([DEPTHWISE, RELU], x, OF_CHANNELS, with_act=True, **POSITIVE))
        for x in MANY_CHANNELS
    ),
    *(measure_ranges(summing(x, s, **CALIBRATED)) for x in IMAGES for s in ADDED),
    *(
        measure_ranges(dense([DENSE, RELU], x, FLOATS, quantized=True, with_eltwise=True, **CHANNELWISE, **TOP))
        for x in ROWS
    ),
    *(
        measure_ranges(dense([DENSE, RELU], x, HELD, quantized=True, with_eltwise=True, **TOP))
        for x in ROWS
    ),
]  # fmt: skip


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("quantised", CASES, ids=str)
def test_integers_are_those_of_mxnet(quantised, opset):
    """With and without ONNX Runtime's optimizers, which decide only in what order floats of a
    transposed convolution are added up.
    """
    if quantised.op == "Deconvolution" and not adds_int8_exactly():
        pytest.skip("oneDNN adds up the channels in another order without AVX-512")
    skip_inexact(quantised)
    expected = quantised.oracle(quantised)
    outputs = convert_and_run(quantised, len(expected), opset)
    for level in (OPTIMIZED,) if quantised.op == "Deconvolution" else LEVELS:
        for got, reference in zip(outputs[level], expected, strict=True):
            assert got.dtype == reference.dtype
            if DType.of(reference.dtype).kind == "f":
                atol = 1e-6 * np.abs(reference).max()
                np.testing.assert_allclose(got, reference, rtol=1e-6, atol=atol, err_msg=level)
            else:
                np.testing.assert_array_equal(got, reference, level)


def test_layers_of_measured_ranges_are_one_operator():
    """ONNX Runtime then keeps channels last around them, as for those of constant ranges."""
    layer = measure_ranges(conv([BIASED, RELU], IMAGES[1], with_act=True, **POSITIVE))
    operators = {n.op_type for n in write(layer, 3, 21)[0].graph.node}
    assert "QLinearConv" in operators and "ConvInteger" not in operators


@pytest.mark.parametrize("kernel", [(3, 3), (2, 4), (2, 3)])
def test_means_of_windows_are_convolutions(kernel):
    """Not of 6 elements: the float nearest to a sixth moves means that lie between two integers."""
    pool = case("_contrib_quantized_pooling", Q, LOW, HIGH, kernel=kernel, pool_type="avg")
    operators = {n.op_type for n in write(pool, 3, 21)[0].graph.node}
    expected = {"AveragePool"} if kernel == (2, 3) else {"QLinearConv"}
    assert operators & {"AveragePool", "QLinearConv"} == expected


# Every seventh, none with exponentials that overflow: the reference does not saturate these.
INTEGER_LAYERS = [c for c in CASES if c.op.startswith(LAYERS)]
IN_GROUPS = [c for c in INTEGER_LAYERS if c.inputs[1].shape[1:] in ((1, 3, 2), (300, 3, 2))]
PRODUCTS = [*INTEGER_LAYERS[2::7], *IN_GROUPS]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the reference, as it saturates
@pytest.mark.parametrize("layer", PRODUCTS, ids=str)
def test_products_are_exact_on_every_processor(layer):
    """ONNX Runtime computes what the written file means, also where MXNet does not.

    Its kernels for uint8 by int8 saturate on x86 without VNNI, so that there may be none of these
    but for filters of one channel each, whose kernel adds up int32.
    """
    model, feeds = write(layer, 1, 21)
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.value_info}
    types |= {i.name: i.data_type for i in model.graph.initializer}
    types |= {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    dims = {i.name: list(i.dims) for i in model.graph.initializer}
    weights = {"MatMulInteger": 1, "ConvInteger": 1, "QLinearConv": 3, "QLinearMatMul": 3}
    products = [n for n in model.graph.node if n.op_type in weights]
    assert products
    for node in products:
        data, filters = node.input[0], node.input[weights[node.op_type]]
        group = next((a.i for a in node.attribute if a.name == "group"), 1)
        is_depthwise = group > 1 and dims.get(filters, [])[:2] == [group, 1]
        assert types[data] == TensorProto.UINT8
        assert types[filters] == (TensorProto.INT8 if is_depthwise else TensorProto.UINT8)
    if any(n.op_type.startswith("QLinear") for n in products):
        return  # the reference rounds these twice
    expected = ReferenceEvaluator(model).run(None, feeds)
    for level in LEVELS:
        for got, reference in zip(run_at(level, model, feeds), expected, strict=True):
            np.testing.assert_allclose(
                got, reference, rtol=1e-5, atol=1e-5 * np.abs(reference).max()
            )


@needs_exact_int8
@pytest.mark.parametrize("layer", PRODUCTS, ids=str)
def test_int8_weights_make_the_same_products(layer):
    """Those of uint8 by int8, which ONNX Runtime adds up exactly where there is VNNI."""
    model, feeds = write(layer, 1, 21)
    signed, _ = write(layer, 1, 21, int8_weights=True)
    types = {i.name: i.data_type for i in signed.graph.initializer}
    places = {"MatMulInteger": 1, "QLinearConv": 3, "QLinearMatMul": 3}
    weights = [n.input[places[n.op_type]] for n in signed.graph.node if n.op_type in places]
    assert {types[w] for w in weights if w in types} <= {TensorProto.INT8}
    for level in LEVELS:
        expected = run_at(level, model, feeds)
        for got, reference in zip(run_at(level, signed, feeds), expected, strict=True):
            np.testing.assert_array_equal(got, reference, level)


@needs_exact_int8
@pytest.mark.parametrize("layer", PRODUCTS, ids=str)
def test_kernels_chosen_by_the_processor_make_the_same_products(layer):
    """Both those of uint8 by int8 and those of uint8 that the profile onnxruntime has."""
    model, feeds = write(layer, 1, 21)
    expected = {level: run_at(level, model, feeds) for level in LEVELS}
    chosen, _ = write(layer, 1, 21, profile="onnxruntime")
    for new_model in (chosen, saturate(chosen) if choices(chosen) else chosen):
        for level in LEVELS:
            for got, reference in zip(
                run_at(level, new_model, feeds), expected[level], strict=True
            ):
                np.testing.assert_array_equal(got, reference, level)
