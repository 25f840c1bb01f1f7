"""Calls of ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.frontends.numpy.elementwise import EMITTERS

from .draw import Call, Draw, call

# What the second operand has to be within.
BOUNDS = {"power": (0, 5), "left_shift": (0, 9), "right_shift": (0, 70), "float_power": (0, 20)}
UFUNCS = [n for n in EMITTERS if isinstance(getattr(np, n, None), np.ufunc)]


def of_one(ufunc: Any) -> Any:
    """Calls of a ufunc of one operand."""
    return lambda d: call(ufunc, d.array())


def of_two(ufunc: Any) -> Any:
    """Calls of a ufunc of two operands that broadcast, or of one and a Python number."""
    low, high = BOUNDS.get(ufunc.__name__, (-40, 40))

    def case(d: Draw) -> Call:
        x = d.array()
        if d.integer(0, 4) == 0:
            return call(ufunc, x, d.pick(2, 2.5, True))
        return call(ufunc, x, d.array(shape=d.like(x.shape), low=low, high=high))

    return case


def select_dtype(d: Draw) -> Call:
    """A ufunc in a given element type."""
    x, y = d.array("biuf"), d.array("iuf", shape=())
    return call(d.pick(np.add, np.maximum), x, y, dtype=d.pick("float64", "int64", "float32"))


CASES: dict[str, Any] = {
    **{f"np.{n}": (of_one if getattr(np, n).nin == 1 else of_two)(getattr(np, n)) for n in UFUNCS},
    "np.matmul": lambda d: call(np.matmul, d.array(shape=(2, 3, 4)[d.integer(0, 2) :]),
                                d.array(shape=d.pick((4,), (4, 2), (2, 4, 1), (3, 2)))),
    "np.add(dtype=)": select_dtype,
    "np.add.reduce": lambda d: call(
        d.pick(np.add, np.multiply, np.maximum, np.logical_or).reduce,
        (x := d.array(rank=(1, 3))), axis=d.axis(x)),
    "np.add.accumulate": lambda d: call(
        d.pick(np.add, np.multiply).accumulate, (x := d.array("iuf", rank=(1, 3))),
        axis=d.axis(x)),
    "np.add.outer": lambda d: call(
        d.pick(np.subtract, np.less).outer, d.array("iuf"), d.array("iuf")),
}  # fmt: skip
