"""Quantised convolutions and dense layers, and those that oneDNN fused."""

from __future__ import annotations

import json
from functools import partial

from testing.mxnet.cases import Case, Refusal, case, f32, i8, of, operator_test, u8
from tests.mxnet.ops.test_quantization import load_symbol

LOW, HIGH, ZERO = of([-2]), of([3]), of([0])
X, U = i8(2, 3, 6, 5, low=-128, high=127), u8(2, 3, 6, 5, low=0, high=255)
W, B = i8(4, 3, 3, 2, low=-128, high=127), i8(4, low=-128, high=127)
RANGES = (of([-1]), of([0.5]))
BIAS_RANGE = (of([-0.3]), of([0.2]))
CONV = {"kernel": (3, 2), "num_filter": 4, "pad": (1, 0), "stride": (2, 1)}
ROWS, UROWS = i8(2, 12, low=-128, high=127), u8(2, 12, low=0, high=255)
DENSE_W, DENSE_B = i8(5, 12, low=-128, high=127, seed=2), i8(5, low=-128, high=127, seed=2)
WEIGHTS = {  # by layer: what it reads besides what the layer before it made
    "Convolution": (f32(4, 3, 3, 2), f32(4)),
    "BatchNorm": tuple(f32(4, low=0.5, seed=i) for i in range(4)),
    "FullyConnected": (f32(5, 12), f32(5)),
}
RELU = ("Activation", {"act_type": "relu"})
NORM = ("BatchNorm", {"fix_gamma": False, "eps": 1e-5})
NO_BIAS = ("Convolution", {**CONV, "no_bias": True})
BIASED = ("Convolution", CONV)
DENSE = ("FullyConnected", {"num_hidden": 5})
CALIBRATED = {"quantized": True, "min_calib_range": -20, "max_calib_range": 15}
POSITIVE = {"quantized": True, "min_calib_range": 0, "max_calib_range": 15}


def fuse(op, layers, x, ranges=(), summand=None, weights=None, **attrs):
    """A chain of layers in one node; the operands of all, then the sum, then the ranges."""
    operands, body, links, read = [x], [variable("b0")], [0], 0
    for kind, options in layers:
        held = weights if weights and kind in ("Convolution", "FullyConnected") else None
        more = held or WEIGHTS.get(kind, () if kind != "elemwise_add" else (summand,))
        more = more[:1] if options.get("no_bias") else more
        start = len(body)
        body += [variable(f"b{start + i}") for i in range(len(more))]
        operands += more
        links = [read, *range(start, len(body))]
        body.append(node(kind, f"l{len(body)}", options, links))
        read = len(body) - 1
    operands += ranges
    names = [variable(f"x{i}") for i in range(len(operands))]
    outer = node(op, "op", attrs, range(len(operands)))
    outer["subgraphs"] = [symbol(body, [[read, 0, 0]])]
    outputs = 3 if attrs.get("quantized") and not attrs.get("enable_float_output") else 1
    heads = [[len(names), i, 0] for i in range(outputs)]
    text = json.dumps(symbol([*names, outer], heads))
    constants = tuple(i for i, v in enumerate(operands) if i > 0 and v is not summand)
    texts = {k: str(v) for k, v in attrs.items()}
    return Case(op, tuple(operands), texts, constants, network=partial(load_symbol, text))


def variable(name):
    return {"op": "null", "name": name, "inputs": []}


def node(op, name, attrs, links):
    texts = {k: str(v) for k, v in attrs.items()}
    return {"op": op, "name": name, "attrs": texts, "inputs": [[i, 0, 0] for i in links]}


def symbol(nodes, heads):
    variables = [i for i, n in enumerate(nodes) if n["op"] == "null"]
    attrs = {"mxnet_version": ["int", 10901]}
    return {"nodes": nodes, "arg_nodes": variables, "heads": heads, "attrs": attrs}


def conv(layers, x, weights=None, **attrs):
    ranges = (ZERO if x.dtype == "uint8" else LOW, HIGH) if attrs.get("quantized") else ()
    return fuse("_sg_mkldnn_conv", layers, x, ranges, None, weights, **attrs)


def summing(x, summand, after=(), **attrs):
    low = ZERO if summand.dtype == "uint8" else LOW
    ranges = (ZERO if x.dtype == "uint8" else LOW, HIGH, low, of([7]))
    layers = [BIASED, ("elemwise_add", {}), *after]
    return fuse("_sg_mkldnn_conv", layers, x, ranges, summand, with_sum=True, **attrs)


def dense(layers, x, weights=None, **attrs):
    """Weights of the file are int8 and have ranges; those of a channelwise layer are floats."""
    ranges = (ZERO if x.dtype == "uint8" else LOW, HIGH) if attrs.get("quantized") else ()
    held = ()
    if weights and weights[0].dtype == "int8":
        held = (*RANGES, *BIAS_RANGE)[: 2 * len(weights)]
    return fuse("_sg_mkldnn_fully_connected", layers, x, (*ranges, *held), None, weights, **attrs)


HELD = (DENSE_W, DENSE_B)
CHANNELWISE = {"channel_wise_quantize": True}
CASES = [
    *(
        case("_contrib_quantized_conv", U, W, ZERO, HIGH, *RANGES, no_bias=True, **CONV, **a)
        for a in ({}, {"num_group": 1}, {"layout": "NCHW"})
    ),
    case("_contrib_quantized_conv", U, W, B, ZERO, HIGH, *RANGES, *BIAS_RANGE, **CONV),
    *(
        case(
            "_contrib_quantized_fully_connected", x, DENSE_W, low, HIGH, *RANGES,
            num_hidden=5, no_bias=True,
        )
        for x, low in ((ROWS, LOW), (UROWS, ZERO))
    ),
    *(
        case(
            "_contrib_quantized_fully_connected", x, DENSE_W, DENSE_B, low, HIGH, *RANGES,
            *BIAS_RANGE, num_hidden=5,
        )
        for x, low in ((ROWS, LOW), (UROWS, ZERO))
    ),
    conv([BIASED], f32(2, 3, 6, 5)),
    conv([BIASED, NORM, RELU], f32(2, 3, 6, 5), with_bn=True, with_act=True),
    *(conv([BIASED], x, **CALIBRATED) for x in (X, U)),
    *(conv([NO_BIAS], x, **CALIBRATED) for x in (X, U)),
    *(conv([NO_BIAS, NORM], x, with_bn=True, **CALIBRATED) for x in (X, U)),
    *(conv([BIASED, NORM, RELU], x, with_bn=True, with_act=True, **POSITIVE) for x in (X, U)),
    *(conv([BIASED, RELU], x, with_relu=True, **POSITIVE) for x in (X, U)),
    conv([BIASED, ("clip", {"a_min": 0, "a_max": 6})], U, with_act=True, **POSITIVE),
    *(
        conv([BIASED, ("LeakyReLU", {"act_type": "leaky", "slope": 0.1})], x, with_act=True,
             **CALIBRATED)
        for x in (X, U)
    ),
    *(conv([BIASED], x, quantized=True) for x in (X, U)),
    conv([NO_BIAS, NORM, RELU], U, with_bn=True, with_act=True, quantized=True),
    *(
        summing(x, s, after, **a)
        for x in (X, U)
        for s in (i8(2, 4, 3, 4, low=-128, high=127), u8(2, 4, 3, 4, low=0, high=255))
        for after, a in (
            ([], CALIBRATED),
            ([RELU], {**POSITIVE, "with_postsum_act": True}),
        )
    ),
    dense([DENSE], f32(2, 12)),
    dense([DENSE, RELU], f32(2, 12), with_eltwise=True),
    *(
        dense([DENSE, *after], x, HELD, quantized=True, **a)
        for x in (ROWS, UROWS)
        for after, a in (
            ([], {}),
            ([RELU], {"with_eltwise": True}),
            ([], {"min_calib_range": -9, "max_calib_range": 10}),
            ([RELU], {"with_eltwise": True, "min_calib_range": 0, "max_calib_range": 10}),
            ([], {"enable_float_output": True}),
        )
    ),
    *(
        dense([DENSE, *after], x, quantized=True, **CHANNELWISE, **a)
        for x in (ROWS, UROWS)
        for after, a in (
            ([], {"min_calib_range": -9, "max_calib_range": 10}),
            ([RELU], {"with_eltwise": True, "enable_float_output": True}),
        )
    ),
    Refusal(
        dense([DENSE, ("sqrt", {})], UROWS, HELD, quantized=True, with_eltwise=True),
        "square roots of integers",
    ),
]  # fmt: skip

test_quantized_products = operator_test(CASES)
