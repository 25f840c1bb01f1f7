"""Reductions for runtimes that take constant axes, or start from the farthest finite number."""

from __future__ import annotations

from serde.decompositions import reduction
from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.version_converter.adapters.reduction import reduce_nothing


def read_axes(who: str, x: Value, axes: Value | None) -> tuple[Ints, list[int]]:
    """The axes as they are listed, and those that are reduced unless no axes mean none."""
    require(axes is None or axes.tensor is not None, f"{who} takes constant 'axes' only")
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
