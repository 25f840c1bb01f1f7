"""Quantised tensors: to and from numbers, between scales, and element by element.

``qnn.quantize`` rounds halves away from zero and ``qnn.requantize`` multiplies in fixed point,
where ONNX rounds a float's halves to even: what becomes of QuantizeLinear, and of what QLinearConv
and QLinearMatMul do after the product, is therefore written in operators on floats.
"""

from __future__ import annotations

import math

import numpy as np

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import BYTES, DType, Value
from serde.spec.expressions import number
from serde.spec.schema import ELEMENT_TYPES
from serde.version_converter.adapters.quantization import emit_dequantize

from ..rules import reads
from ..target import emit_scalar, legalizations, set_type, writes
from .fixed_point import (
    multiply_by,
    requantize,
    require_arrays,
    require_scalars,
    saturate,
    shift_right,
)
from .resize import resize_exactly
from .unary import round_half_away


def align_to_axis(g, v: Value, axis: int, rank: int):
    """Scales along one axis of a tensor of ``rank``; a single one as it is."""
    if v.ranked_shape in ((), (1,)) or rank == 0:
        return g.Reshape(v, []) if v.rank else v
    return g.Reshape(v, [-1 if a == axis_of(axis, rank) else 1 for a in range(rank)])


@reads("qnn.quantize")
def read_quantize(g, x, scale, zero, *, out_dtype: DType, axis=-1):
    """Halves go away from zero, which QuantizeLinear would round to even."""
    x = resize_exactly(g, x)
    if scale.tensor is not None and scale.rank == 0 and x.type is DType.FLOAT32:
        # TVM multiplies by the reciprocal of a constant without axes
        reciprocal = (1 / scale.array().astype(np.float64)).astype(np.float32)
        quotient = g.Mul(x, g.const(reciprocal))
    else:
        quotient = g.Div(x, g.cast(align_to_axis(g, scale, axis, x.rank), x.type))
    zero = align_to_axis(g, zero, axis, x.rank)
    y = g.Add(round_half_away(g, quotient), g.cast(zero, x.type))
    return saturate(g, y, out_dtype)


@reads("qnn.dequantize")
def read_dequantize(g, x, scale, zero, *, out_dtype: DType | None = None, axis=-1):
    if x.type in BYTES and zero.tensor is not None and is_representable(zero, x):
        zero = g.const(zero.array().astype(x.type.numpy))
        if all(v.ranked_shape in ((), (1,)) for v in (scale, zero)):  # of any axis
            y = g.DequantizeLinear(x, as_scalar(g, scale), as_scalar(g, zero))
        else:
            scale, zero = (broadcast_to_axis(g, v, x, axis) for v in (scale, zero))
            y = g.DequantizeLinear(x, scale, zero, axis=axis_of(axis, x.rank))
    else:
        scale, zero = (align_to_axis(g, v, axis, x.rank) for v in (scale, zero))
        y = g.Mul(g.cast(g.Sub(g.cast(x, DType.INT32), zero), DType.FLOAT32), scale)
    return g.cast(y, out_dtype or DType.FLOAT32)


def is_representable(zero: Value, x: Value) -> bool:
    limits, zeros = np.iinfo(x.type.numpy), zero.array()
    return bool((zeros >= limits.min).all() and (zeros <= limits.max).all())


def as_scalar(g, v: Value):
    return g.Reshape(v, []) if v.rank else v


def broadcast_to_axis(g, v: Value, x: Value, axis: int):
    """One for each element of the axis."""
    if v.ranked_shape not in ((), (1,)):
        return v
    return g.Expand(g.Reshape(v, [1]), g.shape_from([g.size_of(x, axis_of(axis, x.rank))]))


@reads("qnn.requantize")
def read_requantize(
    g, x, in_scale, in_zero, out_scale, out_zero, *, axis=-1, rounding="None",
    compute_dtype="None", out_dtype: DType | None = None,
):  # fmt: skip
    quantities = require_arrays((in_scale, in_zero, out_scale, out_zero))
    compute = "int64" if compute_dtype == "None" else compute_dtype
    # TVM's default on processors without SSE 4.1, and the one its interpreter has
    how = "UPWARD" if rounding == "None" else rounding
    in_scale, in_zero, out_scale, out_zero = quantities
    y = requantize(g, x, in_scale, in_zero, out_scale, out_zero, axis, how, compute)
    return saturate(g, y, out_dtype or DType.INT8)


def upcast(g, x: Value, scale, zero, out_scale, out_zero, axis: int = -1):
    """``x`` as int32 at the scale of the result."""
    if scale.size == 1 and scale == out_scale and (zero == out_zero).all():
        return g.cast(x, DType.INT32)
    return requantize(g, x, scale, zero, out_scale, out_zero, axis)


@reads.for_each({"qnn.add": 1, "qnn.subtract": -1})
def read_sum(sign, g, a, b, *quantities, lhs_axis=-1, rhs_axis=-1):
    a_scale, a_zero, b_scale, b_zero, scale, zero = require_arrays(quantities)
    left = upcast(g, a, a_scale, a_zero, scale, zero, lhs_axis)
    right = upcast(g, b, b_scale, b_zero, scale, zero, rhs_axis)
    offset = g.const(zero.astype(np.int32))
    y = g.Sub(g.Add(left, right), offset) if sign > 0 else g.Add(g.Sub(left, right), offset)
    return saturate(g, y, a.type)


@reads("qnn.mul")
def read_mul(g, a, b, *quantities, lhs_axis=-1, rhs_axis=-1):
    a_scale, a_zero, b_scale, b_zero, scale, zero = require_arrays(quantities)
    require(a_scale.size == b_scale.size == 1, "a scale for each channel")
    left, right = (
        g.Sub(g.cast(v, DType.INT32), z.astype(np.int32)) for v, z in ((a, a_zero), (b, b_zero))
    )
    both = a_scale.astype(np.float32) * b_scale.astype(np.float32)
    y = requantize(g, g.Mul(left, right), both, np.zeros((), np.int32), scale, zero)
    return saturate(g, y, a.type)


@reads("qnn.concatenate")
def read_concatenate(g, *operands, axis=0):
    """Tensors, their scales, their zero points, then scale and zero point of the result."""
    count = (len(operands) - 2) // 3
    quantities = require_arrays(operands[count:])
    scale, zero = quantities[-2:]
    parts = []
    for at, x in enumerate(operands[:count]):
        one, before = quantities[at], quantities[count + at]
        same = one.size == 1 and one == scale and before == zero
        y = x if same else saturate(g, requantize(g, x, one, before, scale, zero), x.type)
        parts.append(y)
    return g.Concat(*parts, axis=axis_of(axis, parts[0].rank))


def hard_swish(x):
    return x * np.clip(x + 3.0, 0.0, 6.0) / 6.0


def error_function(x):
    return np.vectorize(math.erf)(x.astype(np.float64)).astype(x.dtype)


FUNCTIONS = {
    "abs": np.abs,
    "erf": error_function,
    "exp": np.exp,
    "hardswish": hard_swish,
    "log": np.log,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}


@reads.for_each({f"qnn.{name}": function for name, function in FUNCTIONS.items()})
def read_function(function, g, x, *quantities):
    """A table of the results for all values an element can have, as TVM makes one."""
    require(x.type in BYTES, f"{x.type.value} elements")
    scale, zero, out_scale, out_zero = require_scalars(quantities)
    codes = np.arange(256, dtype=np.uint8).view(x.type.numpy)
    real = ((codes.astype(np.int32) - zero).astype(np.float32) * scale).astype(np.float32)
    with np.errstate(all="ignore"):
        y = np.asarray(function(real), np.float32) / out_scale
        y = np.sign(y) * np.floor(np.abs(y) + np.float32(0.5)) + out_zero.astype(np.float32)
    limits = np.iinfo(x.type.numpy)
    y = np.clip(np.where(np.isnan(y), limits.max, y), limits.min, limits.max)
    table, index = y.astype(x.type.numpy), g.cast(x, DType.INT32)
    if x.type is DType.INT8:
        table, index = np.roll(table, 128), g.Add(index, np.int32(128))
    return g.Gather(g.const(table), index, axis=0)


@reads("qnn.leaky_relu")
def read_leaky_relu(g, x, *quantities, alpha=0.25):
    scale, zero, out_scale, out_zero = require_scalars(quantities)
    x_int32 = g.cast(x, DType.INT32)
    y = requantize(g, x_int32, scale, zero, out_scale, out_zero)
    offset = g.const(out_zero.astype(np.int32))
    low = g.Add(multiply_by(g, y, alpha), multiply_by(g, offset, 1 - alpha))
    y = g.Where(g.Less(x_int32, g.const(zero.astype(np.int32))), low, y)
    return saturate(g, y, x.type)


@reads("qnn.softmax")
def read_softmax(g, x, *quantities, axis=-1):
    """TVM's softmax of integers: a power of two with a shift for its logarithm."""
    scale, zero, out_scale, out_zero = require_scalars(quantities)
    at = [axis_of(axis, x.rank)]
    unit = np.int32(math.floor(1 / float(scale) + 0.5))
    centred = g.Sub(g.cast(x, DType.INT32), zero.astype(np.int32))
    below = g.Sub(centred, g.ReduceMax(centred, at, keepdims=1))
    power = g.Sub(
        g.Add(below, shift_right(g, below, np.int32(2))), shift_right(g, below, np.int32(16))
    )
    quotient = g.Min(g.Max(g.Div(power, -unit), np.int32(0)), np.int32(20))
    rest = g.Sub(power, g.Mul(quotient, -unit))
    base = g.Add(shift_right(g, rest, np.int32(2)), unit)
    table = g.const(np.int32(1) << np.arange(21, dtype=np.int32))
    places = g.Sub(g.ReduceMax(quotient, at, keepdims=1), quotient)
    each = g.Mul(base, g.Gather(table, places, axis=0))
    total = g.ReduceSum(each, at, keepdims=1)
    y = shift_right(g, g.Mul(g.Div(np.int32(1 << 30), total), each), np.int32(1 << 23))
    result = requantize(g, y, np.float32(1 / 128), np.zeros((), np.int32), out_scale, out_zero)
    return saturate(g, result, x.type)


SIMULATED = {1: DType.INT8, 2: DType.UINT8, 3: DType.INT32}  # SQNN_DTYPE_TO_CODE


def simulated_type(code: Value) -> DType | None:
    require(code.tensor is not None, "the simulated element type is computed by the model")
    number = int(code.array().ravel()[0])
    require(number in (0, *SIMULATED), f"element type {number} is unknown")
    return SIMULATED.get(number)


@reads("qnn.simulated_quantize")
def read_simulated_quantize(g, x, code, scale, zero, *, axis=-1):
    dtype = simulated_type(code)
    if dtype is None:
        return x
    limits = np.iinfo(dtype.numpy)
    scale, zero = (align_to_axis(g, v, axis, x.rank) for v in (scale, zero))
    x = resize_exactly(g, x)
    y = g.Add(round_half_away(g, g.Div(x, scale)), g.cast(zero, x.type))
    return g.Clip(y, float(limits.min), float(limits.max))


@reads("qnn.simulated_dequantize", ignore=("out_dtype",))
def read_simulated_dequantize(g, x, code, scale, zero, *, axis=-1):
    if simulated_type(code) is None:
        return x
    scale, zero = (align_to_axis(g, v, axis, x.rank) for v in (scale, zero))
    return g.Mul(g.Sub(x, g.cast(zero, x.type)), scale)


@legalizations("DequantizeLinear")
def legalize_dequantize(g, x, scale, zero=None, *, axis: int, block_size: int, output_dtype: int):
    """Bytes become floats by one scale, or one for each element of an axis."""
    kind = ELEMENT_TYPES[output_dtype] if output_dtype else scale.type
    single = kind is scale.type is DType.FLOAT32
    if single and x.type in BYTES and not block_size and scale.rank < 2:
        return None
    return emit_dequantize(g, x, scale, zero, kind, axis, block_size)


@writes("DequantizeLinear", ignore=("block_size", "output_dtype"))
def write_dequantize(r, x, scale, zero=None, *, axis: int):
    scale, zero = as_parameter(r, scale, DType.FLOAT32), zero_point(r, zero)
    return r.qnn.dequantize(x, scale, zero, axis=axis, out_dtype="float32")


def as_parameter(r, v: Value, dtype: DType) -> Value:
    """One number without axes, or one for each element of an axis."""
    if (constant := number(v)) is not None:
        return emit_scalar(r, constant, dtype)
    if v.tensor is not None:
        return r.const(v.array().astype(dtype.numpy))
    if v.ranked_shape == (1,):
        v = set_type(r.reshape(v, newshape=()), v.dtype, ())
    return v if v.dtype is dtype else r.cast(v, dtype=dtype.value)


def zero_point(r, zero: Value | None) -> Value:
    return emit_scalar(r, 0, DType.INT32) if zero is None else as_parameter(r, zero, DType.INT32)


def unit_scale(r) -> Value:
    """A scale, of which a product of integers takes no notice."""
    return emit_scalar(r, 1, DType.FLOAT32)


def is_one_number(v: Value | None) -> bool:
    return v is None or v.ranked_shape in ((), (1,))
