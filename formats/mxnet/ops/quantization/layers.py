"""Quantised tensors: each is three values, integers and the range of numbers they stand for.

A range is symmetric, whatever its ends: the larger of their magnitudes is 127.5 for int8, and 255.5
for uint8 (quantization_utils.h). Only the ranges of products count in 127ths and 255ths.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.rewrite.rules import RuleTable

from ...rules import reads
from ..numpy_shape import read_numpy_transpose
from ..shape import read_flatten, read_numpy_reshape, read_reshape, read_transpose
from ..shared_attributes import with_attributes_of

# Rules taken before those of ``reads`` where runtimes are to see real numbers between integers.
floating = RuleTable(reads.name)
floating_second = RuleTable(reads.name)  # those for files of MXNet 2.0

QMAX_OF_RANGE = {DType.INT8: 127.5, DType.UINT8: 255.5, DType.INT32: float(2**31 - 1)}
QMAX = {DType.INT8: 127.0, DType.UINT8: 255.0}
RANGE = 2.0**31
TYPES = {"int8": DType.INT8, "uint8": DType.UINT8}
Calibration = float | None


def abs_max(g, low: Value, high: Value):
    """The larger magnitude of the ends of a range, as a scalar."""
    return g.Reshape(_abs_max(g, low, high), [])


def _abs_max(g, low: Value, high: Value):
    """The larger magnitude, in the shape of the ends; of a range from ``-high`` it is ``high``."""
    node = g.maker(low, "Neg")
    is_symmetric = node is not None and node.inputs[0] is high
    if is_symmetric or (low.tensor is not None and not low.array().any()):
        return high if _is_nonnegative(g, high) else g.Abs(high)
    return g.Max(g.Abs(low), g.Abs(high))


def _is_nonnegative(g, x: Value, depth: int = 8) -> bool:
    """Whether a range's end is one by how it is computed: of magnitudes and positive constants."""
    if x.tensor is not None:
        return bool((x.array() >= 0).all())
    node = g.maker(x, "Abs", "Div", "Max", "Mul", "ReduceMax", "Reshape") if depth else None
    if node is None or node.op == "Abs":
        return node is not None
    operands = node.inputs[:1] if node.op in ("ReduceMax", "Reshape") else node.inputs
    return all(_is_nonnegative(g, v, depth - 1) for v in operands)


def compute_scale(g, dtype: DType, low: Value, high: Value):
    """The number that one stands for."""
    return g.Div(abs_max(g, low, high), QMAX_OF_RANGE[dtype])


def compute_inverse_scale(g, dtype: DType, low: Value, high: Value):
    """How many stand for 1, as MXNet computes it."""
    return g.Div(QMAX_OF_RANGE[dtype], abs_max(g, low, high))


def dequantize(g, q: Value, low: Value, high: Value):
    """The numbers that integers stand for."""
    return g.DequantizeLinear(q, compute_scale(g, q.type, low, high), g.scalar(0, q))


def dequantize_unit(g, q: Value, zero: Value):
    """Integers as floats."""
    return g.DequantizeLinear(q, g.const(np.float32(1)), zero)


def quantize(g, x: Value, dtype: DType, low: Value, high: Value):
    """Numbers as the nearest integers of a range, even ones in the middle.

    No runtime has a kernel for a dynamic scale, so these are MXNet's own.
    """
    scale = compute_scale(g, dtype, low, high)
    if scale.tensor is None:
        return scale_and_round(g, x, dtype, low, high)
    return quantize_with_scale(g, x, dtype, scale)


def make_range(g, low: Calibration, high: Calibration):
    """A range that calibration found."""
    return tuple(g.const(np.array([end], "float32")) for end in (low, high))


def has_range(low: Calibration, high: Calibration) -> bool:
    return low is not None and high is not None


def read_quantize_v2(
    way, g, x, *, out_type="int8", min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    bounds = min_calib_range, max_calib_range
    is_calibrated = has_range(*bounds)
    if x.dtype is DType.INT8 and is_calibrated:
        return x, *make_range(g, *bounds)
    require(x.type.kind == "f", f"quantizing {x.type.value}")
    dtype = choose_type(out_type, *bounds)
    low, high = make_range(g, *bounds) if is_calibrated else compute_range(g, x)
    return way(g, x, dtype, low, high), *symmetrize_range(g, dtype, low, high)


def choose_type(out_type: str, low: Calibration, high: Calibration) -> DType:
    """``auto`` is uint8 for a calibrated range without negative numbers."""
    if out_type == "auto":
        return DType.UINT8 if has_range(low, high) and low >= 0 else DType.INT8
    require(out_type in TYPES, f"out_type={out_type!r} is neither of auto, int8, uint8")
    return TYPES[out_type]


def scale_and_round(g, x: Value, dtype: DType, low: Value, high: Value, most=QMAX_OF_RANGE):
    """Multiplied by the inverse of the step, which rounds otherwise than a division by it."""
    return round_to_type(g, g.Mul(x, g.Div(most[dtype], abs_max(g, low, high))), dtype)


reads("_contrib_quantize_v2")(partial(read_quantize_v2, scale_and_round))
floating("_contrib_quantize_v2")(partial(read_quantize_v2, quantize))


def round_to_type(g, x: Value, dtype: DType):
    """The nearest integers, even ones in the middle."""
    return quantize_with_scale(g, x, dtype, g.const(np.float32(1)))


def quantize_with_scale(g, x: Value, dtype: DType, step: Value):
    """How many steps numbers are, the nearest integers, even ones in the middle."""
    return g.QuantizeLinear(x, step, g.const(np.zeros((), dtype.numpy)))


def symmetrize_range(g, dtype: DType, low: Value, high: Value):
    """The range as MXNet states it: that of int8 is made symmetric."""
    if dtype is DType.UINT8:
        return low, high
    largest = g.Max(g.Abs(low), g.Abs(high))
    return g.Neg(largest), largest


@reads("_contrib_quantize")
def read_quantize(g, x, low, high, *, out_type="uint8"):
    """Scaled by 127 or 255, not by 127.5 or 255.5."""
    dtype = choose_type(out_type, None, None)
    return scale_and_round(g, x, dtype, low, high, QMAX), *symmetrize_range(g, dtype, low, high)


@reads("_contrib_quantize_asym")
def read_quantize_asym(
    g, x, *, min_calib_range: Calibration = None, max_calib_range: Calibration = None
):
    """As uint8, with the scale and the shift that bring the range's ends to 0 and 255."""
    bounds = min_calib_range, max_calib_range
    low, high = make_range(g, *bounds) if has_range(*bounds) else compute_range(g, x)
    scale = g.Div(QMAX[DType.UINT8], g.Sub(high, low))
    shift = g.Sub(QMAX[DType.UINT8], g.Mul(high, scale))
    q = g.Clip(g.Round(g.Add(g.Mul(x, scale), shift)), 0.0, 255.0)
    return g.cast(q, DType.UINT8), scale, shift


def compute_range(g, x: Value):
    """The range of the numbers there are."""
    return tuple(g.Reshape(g[op](x, keepdims=0), [1]) for op in ("ReduceMin", "ReduceMax"))


@reads("_contrib_dequantize", ignore=("out_type",))
def read_dequantize(g, q, low, high):
    require(q.type in QMAX, f"dequantizing {q.type.value}")
    return dequantize(g, q, low, high)


@reads("_contrib_requantize")
def read_requantize(
    g, q, low, high, *, out_type="int8", min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    """Without calibration, to the range of the numbers there are; counts as ``read_quantize``'s."""
    require(q.type is DType.INT32, f"requantizing {q.type.value}")
    bounds = min_calib_range, max_calib_range
    dtype = choose_type(out_type, *bounds)
    step = g.Div(abs_max(g, low, high), RANGE)
    x = g.cast(q, DType.FLOAT32)
    if has_range(*bounds):
        largest = abs_max(g, *make_range(g, *bounds))
    else:
        largest = g.Mul(g.ReduceMax(g.Abs(x), keepdims=0), step)
    y = g.Mul(x, g.Mul(step, g.Div(QMAX[dtype], largest)))
    high = g.Reshape(largest, [1])
    low = g.const(np.zeros(1, np.float32)) if dtype is DType.UINT8 else g.Neg(high)
    return round_to_type(g, y, dtype), low, high


def keep_range(rule):
    """The rule for integers, whose range stays what it is, of a rule that only moves elements."""

    @with_attributes_of(rule)
    def read(g, q, low, high, **attrs):
        return rule(g, q, **attrs), low, high

    return read


reads("_contrib_quantized_flatten")(keep_range(read_flatten))
reads("_contrib_quantized_reshape")(keep_range(read_reshape))
reads("_npx_quantized_reshape", only={"order": ("C",)})(keep_range(read_numpy_reshape))
reads("_contrib_quantized_transpose")(keep_range(read_transpose))
reads("_npx_quantized_transpose")(keep_range(read_numpy_transpose))


@reads("_contrib_quantized_act", only={"act_type": ("relu",)})
def read_quantized_activation(g, q, low, high):
    require(q.type is DType.INT8, "an activation of uint8, whose bits MXNet takes for int8")
    return g.Max(q, g.scalar(0, q)), low, high


@reads("_contrib_quantized_concat", ignore=("num_args",))
def read_quantized_concat(g, *operands, dim=1):
    """In the widest of the ranges; uint8 where all operands are."""
    count = len(operands) // 3
    tensors, lows, highs = operands[:count], operands[count::2], operands[count + 1 :: 2]
    low, high = g.Min(*lows), g.Max(*highs)
    unsigned = all(q.type is DType.UINT8 for q in tensors)
    dtype = DType.UINT8 if unsigned else DType.INT8
    parts = [dequantize(g, *part) for part in zip(tensors, lows, highs, strict=True)]
    y = g.Concat(*parts, axis=dim % tensors[0].rank)
    return quantize(g, y, dtype, low, high), low, high


@reads(
    "_contrib_quantized_batch_norm",
    ignore=("momentum", "use_global_stats", "cudnn_off", "fix_gamma"),
    only={"output_mean_var": (False,), "axis": (1,)},
)
def read_quantized_batch_norm(
    g, q, gamma, beta, mean, var, low, high, *, eps=1e-3, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    """The scale that is stored counts, fixed or not, and ``eps`` counts twice: MXNet moves it into
    scale and shift, and oneDNN normalises by a variance of 1 + ``eps``. Bytes are halved first.
    """
    bounds = min_calib_range, max_calib_range
    require(q.type in QMAX, f"BatchNorm of {q.type.value}")
    require(has_range(*bounds), "BatchNorm without calibration")
    ends = make_range(g, *bounds)
    most = abs_max(g, *ends)
    spread = g.cast_like(g.Reciprocal(g.Sqrt(g.Add(g.cast(var, DType.FLOAT64), eps))), gamma)
    factor = g.Div(g.Mul(g.Mul(gamma, spread), abs_max(g, low, high)), most)
    factor = g.Div(factor, np.sqrt(np.float32(1) + np.float32(eps)))
    shift = g.Sub(beta, g.Mul(g.Mul(mean, gamma), spread))
    shift = g.Div(g.Mul(shift, QMAX_OF_RANGE[DType.INT8]), most)
    factor, shift = (g.Reshape(v, [-1] + [1] * (q.rank - 2)) for v in (factor, shift))
    x = g.cast(q, DType.FLOAT32)
    x = g.Floor(g.Mul(x, 0.5)) if q.type is DType.UINT8 else x
    return round_to_type(g, g.Add(g.Mul(x, factor), shift), DType.INT8), *ends


@reads("_contrib_quantized_elemwise_add")
def read_quantized_add(
    g, lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None,
):  # fmt: skip
    """Without calibration, as int32 in the range of the sum of the magnitudes.

    A uint8 beside an int8 becomes an int8 in units of the sum first.
    """
    is_calibrated = has_range(min_calib_range, max_calib_range)
    parts = [(lhs, abs_max(g, lhs_min, lhs_max)), (rhs, abs_max(g, rhs_min, rhs_max))]
    is_mixed = lhs.type is not rhs.type
    if is_calibrated:
        low, high = make_range(g, min_calib_range, max_calib_range)
        dtype = DType.INT8 if is_mixed else lhs.type
        unit = compute_inverse_scale(g, dtype, low, high)
        shares = [g.Div(unit, g.Div(QMAX_OF_RANGE[q.type], largest)) for q, largest in parts]
    else:
        dtype, most = DType.INT32, g.Add(*(largest for _, largest in parts))
        high = g.Reshape(most, [1])
        low = g.Neg(high)
        shares = [
            g.Div(g.Mul(largest, QMAX_OF_RANGE[dtype]), g.Mul(most, QMAX_OF_RANGE[q.type]))
            for q, largest in parts
        ]
    terms = []
    for (q, _), share in zip(parts, shares, strict=True):
        term = g.Mul(g.cast(q, DType.FLOAT32), share)
        if is_mixed and q.type is DType.UINT8:
            term = g.Clip(g.Round(term), -128.0, 127.0)
        terms.append(term)
    y = g.Add(*terms)
    if dtype is not DType.INT32:
        return round_to_type(g, y, dtype), low, high
    return round_to_int32(g, y), low, high


def round_to_int32(g, y: Value):
    """The nearest int32."""
    below = float(np.nextafter(np.float32(RANGE), np.float32(0)))
    return g.cast(g.Clip(g.Round(y), -RANGE, below), DType.INT32)


@reads("_contrib_quantized_elemwise_mul")
def read_quantized_mul(
    g, lhs, rhs, lhs_min, lhs_max, rhs_min, rhs_max, *, min_calib_range: Calibration = None,
    max_calib_range: Calibration = None, enable_float_output=False,
):  # fmt: skip
    """A calibrated product is cut to an integer, of which int8 keeps the low bits."""
    require(lhs.type is rhs.type is DType.INT8, "a product of other types than int8")
    q = g.Mul(g.cast(lhs, DType.INT32), g.cast(rhs, DType.INT32))
    if not enable_float_output and not has_range(min_calib_range, max_calib_range):
        return q, *product_range(g, lhs.type, lhs_min, lhs_max, rhs_min, rhs_max)
    x = g.cast(q, DType.FLOAT32)
    ends = (lhs_min, lhs_max), (rhs_min, rhs_max)
    counts = [compute_inverse_scale(g, DType.INT8, *end) for end in ends]
    if enable_float_output:
        return g.Mul(x, g.Div(g.Reciprocal(counts[0]), counts[1]))
    low, high = make_range(g, min_calib_range, max_calib_range)
    unit = compute_inverse_scale(g, DType.INT8, low, high)
    y = g.Mul(x, g.Div(g.Div(unit, counts[0]), counts[1]))
    return g.cast(g.cast(y, DType.INT32), DType.INT8), low, high


def product_range(g, dtype: DType, low: Value, high: Value, w_low: Value, w_high: Value):
    """The range of int32 products of ``dtype`` and int8, as MXNet states it."""
    largest = g.Div(_abs_max(g, low, high), QMAX[dtype])
    # RANGE is a power of two: where it is multiplied changes no bit
    largest = g.Mul(largest, g.Mul(g.Div(_abs_max(g, w_low, w_high), 127.0), RANGE))
    return g.Neg(largest), largest


@reads("_contrib_quantized_embedding", ignore=("input_dim", "output_dim", "dtype", "sparse_grad"))
def read_quantized_embedding(g, x, w, low, high):
    return g.Gather(w, g.cast(x, DType.INT64), axis=0), low, high
