"""What rules of several families need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints, axis_of
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES

FLOATS = frozenset({DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.BFLOAT16})
MOST = 1 << 24  # elements of a constant made to spell something out
BROADCAST = 32  # axes that NumPy broadcasts
END = 2**63 - 1  # a Slice ends here where it takes all that is left


def require_expandable(count: int, what: str, most: int = MOST) -> int:
    """``count``, unless it exceeds the limit for expansion into constants or nodes."""
    require(0 <= count <= most, f"{what} of {count} is too many to unroll")
    return count


def require_constant_ints(value: Value, what: str, lowest: int) -> Ints:
    """The elements of an operand that is an attribute below opset ``lowest``."""
    if value.shape == (0,):
        return ()
    require(value.tensor is not None, f"{what} must be constant below opset {lowest}")
    return value.ints()


def require_constant_axis(value: Value, x: Value, lowest: int) -> int:
    """The one axis of ``x`` that an operand names, where it is an attribute below ``lowest``."""
    named = require_constant_ints(value, "axis", lowest)
    require(len(named) == 1 and x.rank > 0, f"the axis {list(named)} of {x.rank} axes")
    return axis_of(named[0], x.rank)


def cast(g, x: Value, dtype: DType | None):
    """``x`` in another element type; itself where that is unknown or its own."""
    return x if dtype is None or x.dtype is dtype else g.Cast(x, to=ELEMENT_CODES[dtype])


def widen_float(g, x: Value):
    """``x`` in float32 where it is a narrower float."""
    return cast(g, x, DType.FLOAT32) if x.dtype in (DType.FLOAT16, DType.BFLOAT16) else x


def sum_by_factors(g, x: Value, multiply: Callable[[Value], Value]):
    """Sums of some elements of ``x`` by ``multiply``, a linear map with factors 0 and 1.

    What is not finite goes apart, as 0 times it is NaN.
    """
    if x.dtype not in FLOATS:
        return multiply(x)
    inf = float("inf")
    below, above = g.Less(x, inf), g.Greater(x, -inf)  # NaN is neither
    total = multiply(g.Where(g.And(below, above), x, 0.0))
    for is_inside, bound in ((below, inf), (above, -inf)):
        beyond = g.Greater(multiply(cast(g, g.Not(is_inside), x.dtype)), 0.0)
        total = g.Add(total, g.Where(beyond, g.const(bound, x.type), 0.0))
    return total


def size(g, x: Value, axis: int):
    """The size of one axis, as a tensor of one element."""
    return g.Shape(x, start=axis, end=axis + 1 if axis != -1 else None)


def reshape_exactly(g, x: Value, shape: Value):
    """``x`` in a shape in which 0 is a size, as in one that a tensor has."""
    return g.Reshape(x, shape, allowzero=int(0 in (shape_data_of(shape) or ())))


def scalar(g, x: Value):
    """A tensor of one element as a scalar."""
    return g.Reshape(x, g.const([], DType.INT64))


def count_range(g, count: Value):
    """``0, 1, … count - 1`` for a count of one element."""
    return g.Range(g.const(0, DType.INT64), scalar(g, count), g.const(1, DType.INT64))


def lay_along(g, row: Value, axis: int, rank: int):
    """Numbers in a row along one axis of ``rank``, the others of size 1."""
    return g.Reshape(row, [-1 if a == axis else 1 for a in range(rank)])


def make_full(g, value: float | str, shape: Value | Sequence[int], dtype: DType):
    """A tensor of ``shape`` holding ``value`` everywhere."""
    return g.Expand(g.const(value, dtype), shape)


def broadcast_shapes(g, *values: Value):
    """The shape ``values`` broadcast to."""
    most = max(len(v.shape or ()) for v in values)
    if all(v.is_static for v in values) and most <= BROADCAST:
        import numpy as np

        return g.const(list(np.broadcast_shapes(*(v.static_shape for v in values))), DType.INT64)
    shapes = [g.Shape(make_full(g, 0.0, g.Shape(v), DType.FLOAT32)) for v in values]
    total = make_full(g, 0.0, shapes[0], DType.FLOAT32)
    for other in shapes[1:]:
        total = g.Add(total, make_full(g, 0.0, other, DType.FLOAT32))
    return g.Shape(total)
