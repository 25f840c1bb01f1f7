"""Slopes of PRelu, for runtimes that have some of those that broadcast."""

from __future__ import annotations

from serde.ir.graph import Value


def is_by_channel(slope: Value, x: Value) -> bool:
    """Whether there is one slope for each channel of ``x``, with axes of 1 behind it."""
    shape = slope.ranked_shape
    is_column = len(shape) == x.rank - 1 and all(d == 1 for d in shape[1:])
    return is_column and shape[0] == x.ranked_shape[1]
