"""Softmax, LogSoftmax and Hardmax, which before opset 13 flattened their input to two axes."""

from __future__ import annotations

from functools import partial

from serde.ir.graph import Value
from serde.rewrite.rules import never

from . import downgrades, upgrades

KINDS = ("Softmax", "LogSoftmax", "Hardmax")


def normalize_last_axis(op, g, x: Value, *, axis: int):
    """Bring the axis to the end, where flattening in front of it changes nothing."""
    if x.shape is None and axis == -1:
        return g[op](x, axis=-1)
    last = x.rank - 1
    at = last if axis == -1 else axis
    return g.apply_on_axis(x, at, last, lambda v: g[op](v, axis=last))


def normalize_flattened(op, g, x: Value, *, axis: int):
    """Normalise over all axes from ``axis`` on, as one."""
    if axis == -1 or (x.shape is not None and axis == x.rank - 1):
        return g[op](x, axis=-1)
    return g.Reshape(g[op](g.Flatten(x, axis=axis), axis=-1), g.Shape(x))


for _op in KINDS:
    downgrades[13](_op, sizes=never)(partial(normalize_last_axis, _op))
    upgrades[13](_op, sizes=never)(partial(normalize_flattened, _op))
