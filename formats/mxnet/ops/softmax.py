"""Softmax, LogSoftmax and Hardmax, with lengths and temperatures."""

from __future__ import annotations

import math
from functools import partial

from serde.errors import require
from serde.ir.geometry import axis_of
from serde.ir.graph import DType, Value
from serde.spec.expressions import lowest_value

from ..rules import dtype_of, reads
from ..target import writes


def apply_temperature(g, x, temperature, dtype):
    """The operand of a softmax: in the type asked for, divided by its temperature."""
    x = x if dtype is None else g.cast(x, dtype_of(dtype))
    return x if temperature in (None, 1.0) else g.Div(x, temperature)


def softmax_with_length(g, x: Value, length: Value, axis: int):
    """Softmax over the first ``length`` elements along ``axis``; 0 behind them."""
    axis = axis_of(axis, x.rank)
    place = g.Unsqueeze(g.index_range(g.size_of(x, axis)), list(range(1, x.rank - axis)))
    inside = g.Less(place, g.Unsqueeze(g.cast(length, DType.INT64), [axis]))
    kept = g.Where(inside, x, g.scalar(lowest_value(x), x))
    return g.Where(inside, g.Softmax(kept, axis=axis), g.scalar(0, x))


@reads("softmax")
def read_softmax(
    g, x, length=None, *, axis=-1, temperature: float | None = None, dtype: str | None = None,
    use_length: bool | None = False,
):  # fmt: skip
    x = apply_temperature(g, x, temperature, dtype)
    return softmax_with_length(g, x, length, axis) if use_length else g.Softmax(x, axis=axis)


@reads("softmin", only={"use_length": (False,)})
def read_softmin(g, x, *, axis=-1, temperature: float | None = None, dtype: str | None = None):
    return g.Softmax(g.Neg(apply_temperature(g, x, temperature, dtype)), axis=axis)


@reads("log_softmax", only={"use_length": (False,)})
def read_log_softmax(g, x, *, axis=-1, temperature: float | None = None, dtype: str | None = None):
    return g.LogSoftmax(apply_temperature(g, x, temperature, dtype), axis=axis)


def read_masked_softmax(
    function, outside, g, x, mask, *, axis=-1, temperature: float | None = None,
    normalize: bool | None = True,
):  # fmt: skip
    """Of the elements whose mask is true; the others are ``outside``."""
    inside = g.is_true(mask)
    x = apply_temperature(g, x, temperature, None)
    y = g[function](g.Where(inside, x, g.scalar(lowest_value(x), x)), axis=axis)
    return g.Where(inside, y, g.scalar(outside, x))


reads("masked_softmax")(partial(read_masked_softmax, "Softmax", 0.0))
reads("masked_log_softmax")(partial(read_masked_softmax, "LogSoftmax", -math.inf))


@reads("SoftmaxActivation")
def read_softmax_activation(g, x, *, mode="instance"):
    """``channel`` normalises over axis 1, ``instance`` over the last axis."""
    require(mode in ("channel", "instance"), f"mode={mode!r} is unknown")
    return g.Softmax(x, axis=1 if mode == "channel" else -1)


@writes("Softmax")
def write_softmax(s, x, *, axis):
    return s.softmax(x, axis=axis)


@writes("LogSoftmax")
def write_log_softmax(s, x, *, axis):
    return s.log_softmax(x, axis=axis)
