"""Reductions for runtimes that take constant axes."""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import Value


def read_axes(who: str, x: Value, axes: Value | None) -> tuple[Ints, list[int]]:
    """The axes as they are listed, and those that are reduced unless no axes mean none."""
    require(axes is None or axes.tensor is not None, f"{who} takes constant 'axes' only")
    listed = axes.ints() if axes is not None else ()
    every = sorted(a % x.rank for a in listed) if listed else list(range(x.rank))
    return tuple(listed), every
