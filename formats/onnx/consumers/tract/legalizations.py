"""Legalizations for tract: forms that it lacks or computes wrongly, in tract 0.23.9."""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions import indexing, recurrent
from serde.errors import require
from serde.ir.graph import DType
from serde.legalize.target import legalization_table
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.elementwise import floor_mod
from serde.version_converter.adapters.quantization import emit_dequantize, emit_quantize
from serde.version_converter.adapters.recurrent import KINDS

from ..negative_pads import crop_negative_pads
from ..reductions import decompose_extreme

legalize = legalization_table("ir → tract")
legalize("OneHot")(indexing.one_hot)  # tract aborts at indices out of range
legalize.for_each(("ReduceMax", "ReduceMin"))(decompose_extreme)
STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}  # operands that are initial states


@legalize.for_each(KINDS)
def legalize_recurrent(op, g, *operands, outputs=1, hidden_size: int, **form):
    """tract aborts where a state that is left out has a symbolic size, and reverses wrongly.

    It takes the default activations for all, and heeds neither ``clip`` nor ``input_forget``.
    """
    x, w = operands[:2]
    _, usual, _ = recurrent.CELLS[op]
    functions = set(form.get("activations") or usual)
    others = form.get("clip") is not None or form.get("input_forget") or functions - set(usual)
    if others or form.get("direction") == "reverse":
        form |= {"hidden_size": hidden_size, "outputs": outputs}
        return recurrent.unroll_recurrent(op, g, *operands, **form)
    inputs = [*operands, *[None] * (8 - len(operands))]
    lacking = [i for i in STATES[op] if inputs[i] is None]
    if x.is_static or not lacking:
        return None
    batch = 0 if form.get("layout") else 1
    sizes = [w.static_shape[:1], g.Shape(x, start=batch, end=batch + 1), [hidden_size]]
    sizes = [sizes[1], sizes[0], sizes[2]] if form.get("layout") else sizes
    zeros = g.Expand(g.const(np.zeros((), x.type.numpy)), g.Concat(*sizes, axis=0))
    states = [zeros if i in lacking else v for i, v in enumerate(inputs)]
    while states[-1] is None:
        states.pop()
    return g.as_is(op, tuple(states), {"hidden_size": hidden_size, **form}, outputs=outputs)


MOVES = frozenset("MaxPool Reshape Slice Squeeze Transpose Unsqueeze".split())
BYTES = frozenset({DType.INT8, DType.UINT8})


@legalize("Expand")
def legalize_expand(g, x, shape):
    """tract loses axes that an Expand adds where its result is multiplied."""
    (count,) = shape.ranked_shape
    if not isinstance(count, int) or x.rank >= count:
        return None
    return g.Expand(g.Unsqueeze(x, list(range(count - x.rank))), shape)


@legalize("QuantizeLinear")
def legalize_quantize(
    g, x, scale, zero=None, *, axis: int, block_size: int, output_dtype: int, **form
):
    """tract takes constant scales only, and makes bytes without blocks.

    It makes a table of a dequantization and a quantization, and fails where their types differ.
    """
    dtype = DType.UINT8 if zero is None else zero.type
    dtype = ELEMENT_TYPES[output_dtype] if output_dtype else dtype
    node = g.producer(x)
    while node is not None and node.op in MOVES:
        node = g.producer(node.inputs[0])
    is_other = node is not None and node.op == "DequantizeLinear" and node.inputs[0].type != dtype
    require(not is_other, "bytes that are quantized again as others: tract fails to load them")
    if scale.tensor is not None and dtype in BYTES and not block_size:
        return None
    return emit_quantize(g, x, scale, zero, dtype, axis, block_size)


@legalize("DequantizeLinear")
def legalize_dequantize(g, x, scale, zero=None, *, axis: int, block_size: int, **form):
    """tract takes bytes and int32, constant scales, and no blocks."""
    if scale.tensor is not None and x.type in BYTES | {DType.INT32} and not block_size:
        return None
    return emit_dequantize(g, x, scale, zero, scale.type, axis, block_size)


@legalize("Conv")
def legalize_conv(g, x, w, b=None, *, strides=(), pads=(), auto_pad: str = "NOTSET", **form):
    """tract fails to thin out what goes into a 1×1 convolution of a named batch: a pool does it."""
    kernel, kept = w.static_shape[2:], x.is_static or auto_pad != "NOTSET" or any(pads)
    if kept or any(k != 1 for k in kernel) or all(s == 1 for s in strides):
        return None
    some = g.MaxPool(x, kernel_shape=kernel, strides=strides)
    return g.Conv(some, w, b, **form)


@legalize("BatchNormalization")
def legalize_batch_norm(
    g, x, scale, bias, mean, var, *, epsilon: float, training_mode: int, outputs: int = 1, **form
):
    """tract takes constant parameters only."""
    parameters = scale, bias, mean, var
    if training_mode or outputs > 1 or all(v.tensor is not None for v in parameters):
        return None
    inner = list(range(1, x.rank - 1))
    scale, bias, mean, var = (g.Unsqueeze(g.cast_like(v, x), inner) for v in parameters)
    factor = g.Div(scale, g.Sqrt(g.Add(var, epsilon)))
    return g.Add(g.Mul(g.Sub(x, mean), factor), bias)


@legalize("Mod")
def legalize_mod(g, x, y, *, fmod: int):
    """tract takes int64 that a node makes for sizes, whose remainder has the dividend's sign."""
    if fmod or x.type is not DType.INT64 or g.producer(x) is None:
        return None
    return floor_mod(g, x, y)


@legalize("CumSum")
def legalize_cumulative_sum(g, x, axis, **form):
    """tract takes int64 that a Cast makes for sizes, which it does not add up."""
    node = g.producer(x)
    if x.type is not DType.INT64 or node is None or node.op != "Cast":
        return None
    (source,) = node.inputs
    require(source.type is DType.BOOL, "sums of integers cast to int64: use int32")
    return g.cast(g.CumSum(g.cast(source, DType.INT32), axis, **form), DType.INT64)


@legalize("MatMul")
def legalize_matmul(g, a, b):
    """tract takes one vector only."""
    if a.rank > 1 or b.rank > 1:
        return None
    return g.Squeeze(g.MatMul(g.Unsqueeze(a, [0]), b), [0])


@legalize("Celu")
def legalize_celu(g, x, *, alpha: float):
    """tract leaves ``alpha`` out of the product."""
    return None if alpha == 1 else g.decompose("Celu", 12, x, alpha=alpha)


@legalize("Pad")
def legalize_pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """tract takes a number without axes, and aborts where a pad is negative."""
    if mode == "wrap":
        return g.decompose("Pad", 19, x, pads, fill, axes, mode=mode)
    if fill is not None and fill.rank:
        return g.Pad(x, pads, g.Reshape(fill, []), axes, mode=mode)
    return crop_negative_pads(g, x, pads, fill, axes, mode=mode)


@legalize("NonZero")
def legalize_non_zero(g, x):
    """tract has int64 of sizes, which it takes all int64 for, where it takes no NonZero."""
    return None if x.type is DType.BOOL else g.NonZero(g.cast(x, DType.BOOL))


@legalize("STFT")
def legalize_stft(g, x, step, window=None, length=None, *, onesided: int):
    """tract takes constant windows only."""
    if window is None or window.tensor is not None:
        return None
    return g.decompose("STFT", 17, x, step, window, length, onesided=onesided)


@legalize("LpPool")
def legalize_lp_pool(g, x, *, p: int, kernel_shape, dilations=(), ceil_mode: int = 0, **form):
    """tract has means of windows, and no other sums."""
    if ceil_mode or any(d != 1 for d in dilations):
        form |= {"kernel_shape": kernel_shape, "dilations": dilations, "ceil_mode": ceil_mode}
        return g.decompose("LpPool", 18, x, p=p, **form)
    powers = g.Pow(g.Abs(x), float(p))
    means = g.AveragePool(powers, kernel_shape=kernel_shape, count_include_pad=1, **form)
    return g.Pow(g.Mul(means, float(math.prod(kernel_shape))), 1 / p)
