"""Reductions for runtimes that take constant axes, or start from the farthest finite number."""

from __future__ import annotations

from functools import reduce

from serde.decompositions import reduction
from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.legalize.forms.form import CONSTANT
from serde.version_converter.adapters.reduction import reduce_nothing

from .powers import MOST_FACTORS


def read_axes(who: str, x: Value, axes: Value | None) -> tuple[Ints, list[int]]:
    """The axes as they are listed, and those that are reduced unless no axes mean none."""
    require(
        axes is None or axes.tensor is not None, f"{who} takes constant 'axes' only. {CONSTANT}"
    )
    listed = axes.ints() if axes is not None else ()
    every = sorted(a % x.rank for a in listed) if listed else list(range(x.rank))
    return tuple(listed), every


def decompose_extreme(op, g, x, axes=None, **form):
    """``ReduceMax`` or ``ReduceMin`` of booleans, and of elements that are all infinite."""
    if x.type is DType.BOOL:
        return reduction.extreme_of_booleans(op, g, x, axes, **form)
    return reduction.extreme_of_infinite(op, g, x, axes, **form)


def transform_unreduced(op, g, x, axes=None, *, noop_with_empty_axes: int, **form):
    """What an operator does with each element where it reduces none, which runtimes leave out."""
    is_none = axes is None or (axes.tensor is not None and not axes.tensor.size)
    return reduce_nothing(op, g, x) if is_none and noop_with_empty_axes else None


def multiply_sizes(op, g, x, *, keepdims: int, **form):
    """``ReduceProd`` of a short list of integers, as shapes are; None of others."""
    is_list = op == "ReduceProd" and x.type.kind in "iu" and x.rank == 1 and x.is_static
    if not is_list or not 0 < x.static_shape[0] <= MOST_FACTORS:
        return None
    parts = [g.Slice(x, [i], [i + 1]) for i in range(x.static_shape[0])]
    product = reduce(g.Mul, parts)
    return product if keepdims else g.Squeeze(product, [0])
