"""Legalizations for tract: forms that it lacks or computes wrongly, in tract 0.23.9."""

from __future__ import annotations

import math

import numpy as np

from serde.decompositions import elementwise, indexing, normalization, reduction
from serde.errors import require
from serde.ir.graph import BYTES, DType
from serde.legalize.forms import operators as shared
from serde.legalize.forms import windows
from serde.legalize.forms.form import STATIC, Form, Lacks, decompose
from serde.legalize.target import legalization_table
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES
from serde.spec.traits import ARRANGES
from serde.version_converter.adapters.elementwise import floor_mod
from serde.version_converter.adapters.quantization import emit_dequantize, emit_quantize
from serde.version_converter.adapters.recurrent import KINDS
from serde.version_converter.adapters.reduction import UNREDUCED
from serde.version_converter.adapters.resize import decompose_resize, every_axis
from serde.version_converter.adapters.resize_coordinates import Sampling

from ..front_indices import count_rows_from_front, is_from_front
from ..narrow_floats import is_weight_in_fewer_bits, widen_weight
from ..negative_pads import crop_negative_pads
from ..powers import power
from ..quotients import legalize_quotients, truncate_quotient
from ..reductions import decompose_extreme, transform_unreduced
from ..slices import cut_axis, places_of, read_cuts
from .broadcasts import keep_expanded, legalize_broadcasts
from .detection import legalize_detection
from .recurrent import legalize_recurrent
from .sizes import find_scales, is_size, legalize_sizes

legalize = legalization_table("ir → tract")
legalize_broadcasts(legalize)
legalize_detection(legalize)
legalize_sizes(legalize)
legalize_quotients(legalize)
legalize("LogSoftmax")(normalization.log_softmax)  # tract takes the logarithm of 0
legalize("ReduceLogSumExp")(reduction.log_sum_exp)
legalize("Softplus")(elementwise.stable_softplus)  # tract overflows
legalize("OneHot")(indexing.one_hot)  # tract aborts at indices out of range
legalize("Pow")(power)  # tract computes powers in the type of the exponent, squares of floats only
MOST_COPIES = 64  # of a tensor, put together
FROM_END = "tract has no indices from the end of sizes by name (--static, --input)"


@legalize("QuantizeLinear")
def legalize_quantize(
    g, x, scale, zero=None, *, axis: int, block_size: int, output_dtype: int, **form
):
    """tract takes constant scales only, and makes bytes without blocks.

    It makes a table of a dequantization and a quantization, and fails where their types differ:
    there the quantization is arithmetic.
    """
    dtype = DType.UINT8 if zero is None else zero.type
    dtype = ELEMENT_TYPES[output_dtype] if output_dtype else dtype
    node = g.producer(x)
    while node is not None and (node.op in ARRANGES or node.op == "MaxPool"):
        node = g.producer(node.inputs[0])
    is_other = node is not None and node.op == "DequantizeLinear" and node.inputs[0].type != dtype
    if scale.tensor is not None and dtype in BYTES and not block_size and not is_other:
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


@legalize("Mod")
def legalize_mod(g, x, y, *, fmod: int):
    """tract takes int64 that a node makes for sizes, whose remainder has the dividend's sign.

    It swaps the operands where the dividend is broadcast.
    """
    is_symbol = any(not isinstance(d, int) for d in y.shape_data or ())
    require(not is_symbol, f"tract has no remainders by sizes by name. {STATIC}")
    if not fmod and x.type is DType.INT64 and g.producer(x) is not None:
        return floor_mod(g, x, y)
    if x.ranked_shape == y.ranked_shape or not y.rank:
        return None
    require(x.is_static and y.is_static, f"tract swaps operands of Mod. {STATIC}")
    shape = np.broadcast_shapes(x.static_shape, y.static_shape)
    shape_of_x = (1,) * (len(shape) - x.rank) + x.static_shape
    if shape_of_x == shape:
        return None
    x = g.Reshape(x, list(shape_of_x))
    for axis, (n, m) in enumerate(zip(shape, shape_of_x, strict=True)):
        require(m == n or n <= MOST_COPIES, f"tract has no Mod that is broadcast to {n} elements")
        x = g.Concat(*[x] * n, axis=axis) if m < n else x
    return g.as_is("Mod", (x, y), {"fmod": fmod})


@legalize("Cast")
def legalize_cast(g, x, *, to: int, **form):
    """tract has no bfloat16: weights become float32 when the file is written.

    What is expanded is cast before, where the Expand is that of floats.
    """
    is_weight = is_weight_in_fewer_bits(x) and x.type is DType.BFLOAT16
    if is_weight and ELEMENT_TYPES[to] is DType.FLOAT32:
        return widen_weight(g, x)
    if (number := truncate_quotient(g, x, to)) is not None:
        return number
    node = g.producer(x)
    if node is None or node.op != "Expand" or ELEMENT_TYPES[to].kind != "f":
        return None
    return g.Expand(g.cast(node.inputs[0], ELEMENT_TYPES[to]), node.inputs[1])


@legalize("CumSum")
def legalize_cumulative_sum(g, x, axis, **form):
    """tract takes int64 that a node makes for sizes, which it does not add up; one axis is none."""
    if axis.rank:
        return g.CumSum(x, g.Reshape(axis, []), **form)
    if not is_size(g, x):
        return None
    return g.cast(g.CumSum(g.cast(x, DType.FLOAT64), axis, **form), DType.INT64)


@legalize("MatMul")
def legalize_matmul(g, a, b):
    """tract takes one vector only, and adds nothing to products of integers."""
    if a.type is DType.INT32:
        return g.cast_like(g.MatMul(*(g.cast(v, DType.FLOAT64) for v in (a, b))), a)
    if a.rank > 1 or b.rank > 1:
        expanded = [keep_expanded(g, v) for v in (a, b)]
        return None if expanded == [a, b] else g.MatMul(*expanded)
    return g.Squeeze(g.MatMul(g.Unsqueeze(a, [0]), b), [0])


@legalize("Mul")
def legalize_mul(g, x, y):
    """tract has squares of floats only: others are the opposite of products with the opposite."""
    return g.Neg(g.Mul(x, g.Neg(x))) if x is y and x.type.kind == "i" else None


@legalize("DFT")
def legalize_dft(g, x, length=None, axis=None, **form):
    """tract neither pads nor cuts off what it transforms."""
    at = x.rank - 2 if axis is None else axis.ints()[0] if axis.tensor is not None else None
    if length is None or at is None:
        return None
    if length.tensor is not None and x.ranked_shape[at] in length.ints():
        return None
    return g.decompose("DFT", 17, x, length, axis=at, **form)


@legalize("Squeeze")
def legalize_squeeze(g, x, axes=None):
    """tract drops one axis after the other, by where they are then, and none of a dynamic size."""
    if axes is None or axes.tensor is None:
        return None
    every = sorted(a % x.rank for a in axes.ints())
    dynamic = next((a for a in every if not isinstance(x.ranked_shape[a], int)), None)
    if dynamic is not None:
        rest = [a - (a > dynamic) for a in every if a != dynamic]
        x = g.Gather(x, 0, axis=dynamic)
        return g.Squeeze(x, rest) if rest else x
    return g.Squeeze(x, every) if tuple(every) != tuple(axes.ints()) else None


@legalize("Gemm")
def legalize_gemm(g, a, b, c=None, **form):
    """tract has it of float32."""
    if a.type is DType.FLOAT32:
        return None
    if a.type.kind != "f":
        matrices = (v and g.cast(v, DType.FLOAT64) for v in (a, b, c))
        y = g.Gemm(*matrices, **form)
        return g.cast_like(g.cast(y, DType.INT64) if a.type.kind == "u" else y, a)
    return elementwise.gemm(g, a, b, c, **form)


@legalize("Resize")
def legalize_resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str,
    axes: tuple[int, ...] | None = None, **sampling,
):  # fmt: skip
    """tract samples one element as several of ``pytorch_half_pixel``.

    It keeps a size by name where the scales are given, and not the sizes.
    """
    how = Sampling.of(sampling)
    is_named = not x.is_static and sizes is not None and keep_aspect_ratio_policy == "stretch"
    if how.coordinates != "pytorch_half_pixel" and not is_named:
        return None
    form = {"keep_aspect_ratio_policy": keep_aspect_ratio_policy, "axes": axes}
    x, roi, scales, sizes = every_axis(g, x, roi, scales, sizes, **form)
    if how.coordinates == "pytorch_half_pixel":
        return decompose_resize(g, x, roi, scales, sizes, how)
    ratios = find_scales(x.ranked_shape, sizes.shape_data)
    return g.Resize(x, roi, g.const(ratios), **sampling) if ratios is not None else None


@legalize("Flatten")
def legalize_flatten(g, x, *, axis: int):
    """tract multiplies no sizes by name: one part is what is left."""
    parts = x.ranked_shape[:axis], x.ranked_shape[axis:]
    if sum(not isinstance(d, int) for d in x.ranked_shape) < 2:
        return None
    if axis == 1:
        return g.Reshape(x, [0, -1])
    static = [all(isinstance(d, int) for d in part) for part in parts]
    require(any(static), f"tract has no products of sizes by name. {STATIC}")
    sizes = [math.prod(part) if is_static else -1
             for part, is_static in zip(parts, static, strict=True)]  # fmt: skip
    return g.Reshape(x, sizes)


@legalize("GatherND")
def legalize_gather_nd(g, x, indices, *, batch_dims: int):
    """tract aborts at indices from the end, and fails at constants for a batch of one."""
    is_one = indices.tensor is not None and 1 in indices.static_shape[:batch_dims]
    if is_from_front(g, indices) and not is_one:
        return None
    require(x.is_static, FROM_END)
    if batch_dims:
        return g.decompose("GatherND", 12, x, indices, batch_dims=batch_dims)
    return g.as_is("GatherND", (x, count_rows_from_front(g, x, indices)), {"batch_dims": 0})


@legalize("ScatterND")
def legalize_scatter_nd(g, x, indices, updates, **form):
    """tract aborts at indices from the end."""
    if is_from_front(g, indices):
        return None
    require(x.is_static, FROM_END)
    front = count_rows_from_front(g, x, indices)
    return g.as_is("ScatterND", (x, front, updates), form)


@legalize("EyeLike")
def legalize_eye_like(g, x, *, dtype: int | None = None, k: int):
    """tract has none of booleans, and of sizes."""
    of = x.type if dtype is None else ELEMENT_TYPES[dtype]
    if is_size(g, x):
        return g.EyeLike(g.cast(x, DType.FLOAT32), dtype=ELEMENT_CODES[of], k=k)
    return (
        g.cast(g.EyeLike(x, dtype=ELEMENT_CODES[DType.FLOAT32], k=k), of)
        if of.kind == "b"
        else None
    )


@legalize("Slice")
def legalize_slice(g, x, starts, ends, axes=None, steps=None):
    """tract fails at bounds that cross, at steps along what was reshaped, and counting back.

    It has far ends of int64 only.
    """
    bounds = starts, ends, axes, steps
    if ends.tensor is not None and ends.type is DType.INT32:
        return g.Slice(x, *(v and g.cast(v, DType.INT64) for v in bounds))
    cuts = read_cuts(x, starts, ends, axes, steps)
    if cuts is None or not any(is_odd(x.ranked_shape[axis], cut) for axis, cut in cuts):
        return None
    for axis, cut in cuts:
        size = x.ranked_shape[axis]
        if isinstance(size, int) and cut.step != 1:
            x = g.Gather(x, g.const(list(places_of(cut, size)), DType.INT64), axis=axis)
        else:
            x = cut_axis(g, x, axis, cut, "tract")
    return x


def is_odd(n, cut: slice) -> bool:
    """Whether a slice has steps, or its bounds lie beyond the ends or cross."""
    if not isinstance(n, int):
        return cut.step < 0
    if cut.step != 1:
        return True
    is_crossed = not range(n)[cut] and cut.start != cut.stop
    return cut.start < -n or cut.stop < -n or is_crossed


@legalize("Pad")
def legalize_pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """tract takes a number without axes, and aborts where a pad is negative."""
    if fill is not None and fill.rank:
        return g.Pad(x, pads, g.Reshape(fill, []), axes, mode=mode)
    if is_size(g, x):
        x, fill = (v and g.cast(v, DType.FLOAT64) for v in (x, fill))
        return g.cast(g.Pad(x, pads, fill, axes, mode=mode), DType.INT64)
    return crop_negative_pads(g, x, pads, fill, axes, mode=mode)


@legalize("Size")
def legalize_size(g, x):
    """tract makes symbols of sizes that depend on data."""
    require(None not in x.ranked_shape, f"tract has no Size that depends on data. {STATIC}")
    return indexing.count_elements(g, x)


@legalize("NonZero")
def legalize_non_zero(g, x):
    """tract has int64 of sizes, which it takes all int64 for, where it takes no NonZero."""
    return None if x.type is DType.BOOL else g.NonZero(g.cast(x, DType.BOOL))


@legalize("STFT")
def legalize_stft(g, x, step, window=None, length=None, *, onesided: int):
    """tract takes constant windows and signals of three axes only, and fails with float16."""
    if x.rank == 2:
        return g.STFT(g.Unsqueeze(x, [2]), step, window, length, onesided=onesided)
    if x.type is DType.FLOAT16:
        x, window = (None if v is None else g.cast(v, DType.FLOAT32) for v in (x, window))
        return g.cast(g.STFT(x, step, window, length, onesided=onesided), DType.FLOAT16)
    if window is None or window.tensor is not None:
        return None
    return g.decompose("STFT", 17, x, step, window, length, onesided=onesided)


@legalize.for_each(("AveragePool", "MaxPool"))
def legalize_pool(op, g, x, *, outputs: int = 1, **window):
    """tract pools a number of channels: others are an axis of windows of one element."""
    if isinstance(x.ranked_shape[1], int):
        return None
    require(outputs == 1, f"tract pools channels whose size has a number. {STATIC}")
    fillers = {"kernel_shape": (1,), "strides": (1,), "dilations": (1,), "pads": (0, 0)}
    for name, filler in fillers.items():
        if sizes := window.get(name):
            n = len(sizes) // len(filler)
            parts = [sizes[i : i + n] for i in range(0, len(sizes), n)]
            window[name] = tuple(v for one, part in zip(filler, parts, strict=True)
                                 for v in (one, *part))  # fmt: skip
    return g.Squeeze(g[op](g.Unsqueeze(x, [1]), **window), [1])


legalize.for_each(tuple(UNREDUCED))(transform_unreduced)
legalize.for_each(("ReduceMax", "ReduceMin"))(decompose_extreme)
legalize.for_each(KINDS)(legalize_recurrent)
BORDER = Form(
    "mode='cubic' and padding_mode='border'",
    lambda call: (call.attrs["mode"], call.attrs["padding_mode"]) == ("cubic", "border"),
    decompose(16),
)
LACKS: Lacks = {
    "BatchNormalization": [shared.COMPUTED_PARAMETERS, shared.MIXED_TYPES],
    # tract leaves it out of the product
    "Celu": [Form("alpha", lambda call: call.attrs["alpha"] != 1, decompose(12))],
    "GridSample": [BORDER],  # tract samples what is beside it otherwise
    "LpPool": [*windows.LP_WINDOWS, windows.LP_POOL[-1]],
    # tract subtracts the square of the mean from that of squares: it loses digits, or is NaN
    "MeanVarianceNormalization": [Form("any data", lambda call: True, decompose(9))],
    "Pad": [shared.WRAP],
}
