"""Quantised tensors."""

from __future__ import annotations

import json
from functools import partial

from testing.mxnet.cases import Case, case, f32, i8, i32, ints, of, operator_test, refuses, u8

CALIBRATED = {"min_calib_range": -3, "max_calib_range": 2.5}
Q, P = i8(2, 3, 5, 4, low=-128, high=127), i8(2, 3, 5, 4, low=-128, high=127, seed=1)
U = u8(2, 3, 5, 4, low=0, high=255)
NORM = (f32(3), f32(3, seed=1), f32(3, seed=2), f32(3, low=0.5))  # gamma, beta, mean, variance
LOW, HIGH, ZERO = of([-2]), of([3.07]), of([0])
TOP = {"min_calib_range": 0, "max_calib_range": 2.7}
SIGNED, UNSIGNED = (Q, LOW, HIGH), (U, ZERO, HIGH)


def chain(*nodes, inputs, heads):
    """A symbol of several nodes ``(op, attrs, links)``; a link is an input, or a node's output."""
    names = [{"op": "null", "name": f"x{i}", "inputs": []} for i in range(len(inputs))]
    entries = [
        {"op": op, "name": f"n{i}", "attrs": {k: str(v) for k, v in attrs.items()},
         "inputs": [[at, out, 0] for at, out in links]}
        for i, (op, attrs, links) in enumerate(nodes)
    ]  # fmt: skip
    text = json.dumps({
        "nodes": [*names, *entries], "arg_nodes": list(range(len(names))), "heads": [[*h, 0] for h in heads],
        "attrs": {"mxnet_version": ["int", 10901]},
    })  # fmt: skip
    loaded = partial(load_symbol, text)
    return Case(nodes[-1][0], tuple(inputs), {}, network=loaded)


def load_symbol(text, mx, *inputs):
    """The symbol of a text."""
    return mx.sym.load_json(text)


def add(a, b, low, high, columns, **attrs):
    """The sum of a number of columns: MXNet now and then takes the scales of another sum of the
    same shape.
    """
    parts = (x[..., :columns].copy() for x in (a, b))
    return case("_contrib_quantized_elemwise_add", *parts, LOW, HIGH, low, high, **attrs)


def add_pair(out_type="int8", **attrs):
    """Two tensors, quantised, added without calibration, requantised."""
    quantize = "_contrib_quantize_v2"
    return chain(
        (quantize, {"out_type": out_type, **attrs}, [(0, 0)]),
        (quantize, {"out_type": out_type, **attrs}, [(1, 0)]),
        ("_contrib_quantized_elemwise_add", {}, [(2, 0), (3, 0), (2, 1), (2, 2), (3, 1), (3, 2)]),
        ("_contrib_requantize", {}, [(4, 0), (4, 1), (4, 2)]),
        ("_contrib_dequantize", {}, [(5, 0), (5, 1), (5, 2)]),
        inputs=(f32(2, 3, 4), f32(2, 3, 4, seed=1)), heads=[(6, 0)],
    ).but(op="_contrib_quantized_elemwise_add")  # fmt: skip


def between(x, *layers):
    """Integers, layers ``(op, attrs, weights)`` of their numbers, and the integers nearest to those."""
    weights = [w for _, _, arrays in layers for w in arrays]
    inputs = (x, ZERO, HIGH, *weights)
    rest, data = iter(range(3, len(inputs))), len(inputs)
    nodes = [("_contrib_dequantize", {}, [(0, 0), (1, 0), (2, 0)])]
    for op, attrs, arrays in layers:
        nodes.append((op, attrs, [(data, 0), *((next(rest), 0) for _ in arrays)]))
        data += 1
    nodes.append(("_contrib_quantize_v2", {"out_type": "auto", **TOP}, [(data, 0)]))
    base = chain(*nodes, inputs=inputs, heads=[(data + 1, 0)])
    return base.but(op=layers[0][0], params=tuple(range(3, len(inputs))))


def pool(x, size):
    return between(x, ("_contrib_AdaptiveAvgPooling2D", {"output_size": size}, ()))


def enlarge(x, kernel, stride, pad, adj=0, filters=32, bias=False):
    """A transposed convolution, and another behind its BatchNorm and its activation."""
    attrs = {
        "kernel": (kernel,) * 2, "stride": (stride,) * 2, "pad": (pad,) * 2, "adj": (adj,) * 2,
        "num_filter": filters, "no_bias": not bias,
    }  # fmt: skip
    shapes = ((x.shape[1], filters, kernel, kernel), (filters, filters, kernel, kernel))
    size = (1 / (x.shape[1] * kernel)) ** 0.5
    first, second = (
        (f32(*shape, low=-size, high=size), *([f32(filters, seed=1)] if bias else []))
        for shape in shapes
    )
    norm = (*(f32(filters, seed=i) for i in (2, 3, 4)), f32(filters, low=0.5))
    return between(
        x, ("Deconvolution", attrs, first), ("BatchNorm", {"fix_gamma": False, "eps": 1e-5}, norm),
        ("Activation", {"act_type": "relu"}, ()), ("Deconvolution", attrs, second),
    )  # fmt: skip


def resize(x, **attrs):
    return between(x, ("_contrib_BilinearResize2D", attrs, ()))


CASES = [
    *(
        enlarge(u8(2, channels, 3, 5, low=0, high=255), *window, filters=16, bias=bias)
        for channels, window in ((16, (4, 2, 1)), (12, (4, 2, 1)), (16, (3, 1, 1)), (16, (3, 2, 1)))
        for bias in (False, True)
    ),
    *(
        resize(u8(2, 3, 5, 4, low=0, high=255), **attrs)
        for attrs in (
            {"height": 7, "width": 3},
            {"height": 9, "width": 1, "align_corners": False},
            {"mode": "odd_scale", "scale_height": 2.0, "scale_width": 0.5},
        )
    ),
    *(pool(u8(2, 3, 4, 6, low=0, high=255), size) for size in ((2, 3), (1,), (3, 4))),
    *(
        case("_contrib_quantize_v2", f32(2, 3, 4), out_type=t, **a)
        for t in ("int8", "uint8", "auto")
        for a in ({}, CALIBRATED, {"min_calib_range": 0, "max_calib_range": 1.5})
    ),
    case("_contrib_quantize_v2", Q, **CALIBRATED),
    *(case("_contrib_quantize", f32(2, 3), LOW, HIGH, out_type=t) for t in ("int8", "uint8")),
    case("_contrib_quantize", f32(7, low=0.0), ZERO, of([0.7])),
    *(case("_contrib_dequantize", *v) for v in (SIGNED, UNSIGNED, (Q[0, 0], LOW, of([1])))),
    *(
        case("_contrib_quantize_asym", x, **a)  # MXNet crashes on tensors that are no sequences
        for x in (f32(5, 2, 4), f32(1, 3, 7, low=0.0, high=9.0), f32(4, 1, 3, low=-2.0))
        for a in ({}, CALIBRATED, {"min_calib_range": -0.1, "max_calib_range": 0.3})
    ),
    *(
        case("_contrib_quantized_batch_norm", x, *NORM, LOW, HIGH, **CALIBRATED, **a)
        for x in (Q, P[:1], Q[:, :, :1].copy(), U)
        for a in ({}, {"fix_gamma": False}, {"eps": 0.1})
    ),
    *(
        case("_contrib_requantize", i32(2, 3, low=-(2**30), high=2**30), of([-5]), HIGH, **a)
        for a in ({}, CALIBRATED, {"min_calib_range": 0, "max_calib_range": 2, "out_type": "auto"})
    ),
    *(case("_contrib_quantized_flatten", *v) for v in (SIGNED, UNSIGNED, (Q[0], LOW, HIGH))),
    *(
        case("_contrib_quantized_act", x, LOW, HIGH, act_type="relu")
        for x in (Q, Q[0, 0], Q[0].copy())
    ),
    *(
        case("_contrib_quantized_pooling", *v, **a)
        for v in (SIGNED, UNSIGNED)
        for a in (
            {"kernel": (2, 2), "stride": (2, 2)},
            {"kernel": (3, 2), "pool_type": "avg"},
            {"global_pool": True, "pool_type": "avg", "kernel": (1, 1)},
            {"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg", "count_include_pad": False},
            {"kernel": (3, 3), "pad": (1, 1), "pool_type": "avg"},
            {"kernel": (2, 2), "pool_type": "avg"},
            {"kernel": (2, 2), "stride": (2, 1), "pad": (1, 0), "pool_type": "avg"},
            {"kernel": (1, 3), "stride": (1, 2), "pool_type": "avg", "pooling_convention": "full"},
            {"kernel": (2, 4), "stride": (1, 3), "pool_type": "avg", "pooling_convention": "full"},
        )
    ),
    *(
        case("_contrib_quantized_concat", a, b, *low_high, num_args=2, dim=1)
        for a, b in ((Q, P), (U, U[::-1].copy()), (Q, U))
        for low_high in ((LOW, HIGH, of([-1]), of([0.5])), (ZERO, HIGH, ZERO, HIGH))
    ),
    *(
        add(a, b, of([-1]), of([0.5]), 4 - number, **CALIBRATED)
        for number, (a, b) in enumerate(((Q, P), (U, U[::-1].copy()), (Q, U)))
    ),
    add_pair(),
    add_pair("uint8"),
    *(
        case("_contrib_quantized_elemwise_mul", Q, P, LOW, HIGH, of([-1]), of([0.5]), **a)
        for a in ({}, CALIBRATED, {"enable_float_output": True})
    ),
    *(
        case(
            "_contrib_quantized_embedding", x, i8(10, 4), LOW, HIGH, input_dim=10, output_dim=4
        )
        for x in (ints(2, 3), ints(5), ints(1, 2, 2))
    ),
    refuses("_contrib_quantized_batch_norm", Q, *NORM, LOW, HIGH, says="without calibration"),
    refuses("_contrib_quantized_act", *UNSIGNED, act_type="relu", says="an activation of uint8"),
    refuses("_contrib_quantized_act", *SIGNED, act_type="tanh", says="act_type=tanh"),
    refuses("_contrib_quantized_pooling", *SIGNED, pool_type="sum", says="pool_type='sum'"),
    refuses(
        "_contrib_quantized_elemwise_mul", U, U, *(LOW, HIGH) * 2, says="other types than int8"
    ),
]  # fmt: skip

test_quantized = operator_test(CASES)
