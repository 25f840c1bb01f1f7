"""Tensors made from nothing."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.geometry import Ints
from serde.idioms import cast, size_of, sizes_of, times

from ..rules import dtype_of, reads

MOST = 1 << 22  # elements written into the model


def filled(g, shape: Ints, number, dtype: str):
    require(np.prod(shape, dtype=np.float64) <= MOST, f"shape={shape} is large for a constant")
    return g.const(np.full(shape, number, dtype_of(dtype).numpy))


@reads("_zeros", "_zeros_without_dtype", ignore=("ctx",))
def read_zeros(g, *, shape: Ints = (), dtype="float32"):
    """A size of 0 is one that MXNet infers from the tensor's use (an RNN's batch)."""
    return filled(g, shape, 0, "float32" if dtype in ("None", "-1") else dtype)


@reads("_ones", ignore=("ctx",))
def read_ones(g, *, shape: Ints = (), dtype="float32"):
    return filled(g, shape, 1, dtype)


@reads("_full", ignore=("ctx",))
def read_full(g, *, value: float, shape: Ints = (), dtype="float32"):
    return filled(g, shape, value, dtype)


@reads("_arange", ignore=("ctx",), only={"infer_range": (False,)})
def read_arange(g, *, start=0.0, stop: float | None = None, step=1.0, repeat=1, dtype="float32"):
    start, stop = (0.0, start) if stop is None else (start, stop)
    values = np.arange(start, stop, step, dtype_of(dtype).numpy)
    return g.const(np.repeat(values, repeat))


@reads("_contrib_arange_like", ignore=("ctx",), only={"repeat": (1,)})
def read_arange_like(g, x, *, start=0.0, step=1.0, axis: int | None = None):
    """0, 1, 2 … of the size of an axis, or of all of ``x`` in its shape."""
    size = times(g, sizes_of(g, x)) if axis is None else size_of(g, x, axis % x.rank)
    count = size if isinstance(size, int) else g.Squeeze(size, [0])
    y = cast(g, g.Range(0, count, 1), x.type)
    y = y if step == 1.0 else g.Mul(y, step)
    y = y if start == 0.0 else g.Add(y, start)
    return g.Reshape(y, g.Shape(x)) if axis is None else y
