"""Numbers that are computed from sizes: tensors of shape (1,)."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value

from ..operands import Number
from ..promotion import result_type
from ..rules import reads
from .binary import read_floor_divide, read_remainder

ARITHMETIC = {"add": "Add", "sub": "Sub", "mul": "Mul"}
COMPARISONS = {"eq": "Equal", "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less",
               "le": "LessOrEqual"}  # fmt: skip


def in_row(g, x, dtype: DType) -> Value:
    """A number as a tensor of shape (1,)."""
    if isinstance(x, Number):
        return g.cast(x.value, dtype)
    return g.cast(g.const([x]), dtype)


@reads("sym_size.int")
def read_size(g, x, dim):
    size = g.size_of(x, axis_of(dim, x.rank))
    return g.const([size]) if isinstance(size, int) else size


@reads("sym_numel")
def read_numel(g, x):
    return g.Reshape(g.Size(x), [1])


@reads("sym_stride.int")
def read_stride(g, x, dim):
    """Of a tensor whose elements lie in order, as all of the IR do."""
    size = g.multiply_sizes(g.sizes_of(x)[axis_of(dim, x.rank) + 1 :])
    return g.const([size]) if isinstance(size, int) else size


@reads("sym_storage_offset")
def read_offset(g, x):
    return g.const([0])


@reads("item", "_local_scalar_dense")
def read_item(g, x):
    if x.type.kind in "iu":
        x = g.cast(x, DType.INT64)
    elif x.type.kind == "f":
        x = g.cast(x, DType.FLOAT64)
    return g.Reshape(x, [1])


@reads.for_each({f"_operator.{n}": op for n, op in ARITHMETIC.items()})
def read_arithmetic(op, g, x, y):
    dtype = number_type(x, y)
    return g[op](in_row(g, x, dtype), in_row(g, y, dtype))


def number_type(*xs):
    """The type Python computes numbers in."""
    return DType.FLOAT64 if result_type(*xs).kind == "f" else DType.INT64


@reads.for_each({f"_operator.{n}": op for n, op in COMPARISONS.items()})
def read_comparison(op, g, x, y):
    dtype = number_type(x, y)
    return g[op](in_row(g, x, dtype), in_row(g, y, dtype))


@reads.for_each({"_operator.floordiv": read_floor_divide, "_operator.mod": read_remainder})
def read_divmod(compute, g, x, y):
    dtype = number_type(x, y)
    return compute(g, in_row(g, x, dtype), in_row(g, y, dtype))


@reads("_operator.truediv")
def read_truediv(g, x, y):
    return g.Div(in_row(g, x, DType.FLOAT64), in_row(g, y, DType.FLOAT64))


@reads("_operator.neg")
def read_neg(g, x):
    return g.Neg(x.value)


@reads("_operator.pow")
def read_power(g, x, y):
    dtype = number_type(x, y)
    return g.Pow(in_row(g, x, dtype), in_row(g, y, dtype))


@reads.for_each({"sym_max": "Max", "sym_min": "Min"})
def read_extreme(op, g, x, y):
    dtype = number_type(x, y)
    return g[op](in_row(g, x, dtype), in_row(g, y, dtype))


@reads("sym_float")
def read_float(g, x):
    return in_row(g, x, DType.FLOAT64)


@reads.for_each({"math.ceil": "Ceil", "math.floor": "Floor"})
def read_rounding(op, g, x):
    return g.cast(g[op](in_row(g, x, DType.FLOAT64)), DType.INT64)


@reads("math.trunc", "sym_int")
def read_trunc(g, x):
    return g.cast(in_row(g, x, DType.FLOAT64), DType.INT64)


@reads("sym_not")
def read_not(g, x):
    return g.Not(x.value)


@reads("scalar_tensor")
def read_scalar_tensor(g, x, dtype):
    require(dtype is None or dtype.kind != "c", "complex numbers: use their parts")
    if isinstance(x, Number):
        return g.cast(g.Squeeze(x.value, [0]), dtype or DType.FLOAT32)
    return g.const(x, dtype or DType.FLOAT32)
