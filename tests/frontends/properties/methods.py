"""Calls of methods of arrays: those of the functions of their names, and their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.frontends.numpy.methods import METHODS

from . import creation, linalg, manipulation, reductions, searching
from .draw import Call, Draw, call

FUNCTIONS = {**creation.CASES, **linalg.CASES, **manipulation.CASES, **reductions.CASES,
             **searching.CASES}  # fmt: skip
OWN = "astype sort partition argpartition fill view flatten ravel conj conjugate compress".split()


def of_function(name: str) -> Any:
    """Calls of the function of the same name as calls of the method."""

    def method(x: Any, *args: Any, **options: Any) -> Any:
        return getattr(x, name)(*args, **options)

    def case(d: Draw) -> Call:
        drawn = FUNCTIONS[f"np.{name}"](d)
        if drawn.function is not getattr(np, name):
            return drawn  # of a function around it
        return drawn._replace(function=method)

    return case


def mutate(change: Any) -> Any:
    """A function that changes a copy of its array."""

    def apply(x: Any, *args: Any) -> Any:
        y = x.copy()
        change(y, *args)
        return y

    return apply


CASES: dict[str, Any] = {
    **{f"ndarray.{n}": of_function(n) for n in METHODS if n not in OWN},
    "ndarray.astype": lambda d: call(lambda x, t: x.astype(t), d.array(low=0), d.dtype("biuhf")),
    "ndarray.sort": lambda d: call(mutate(lambda y, a: y.sort(a)), (x := d.array()), d.axis(x)),
    "ndarray.partition": lambda d: call(
        lambda x, a: np.take(mutate(lambda y, a: y.partition(0, a))(x, a), 0, a),
        (x := d.array(rank=(1, 3))), d.axis(x)),
    "ndarray.argpartition": lambda d: call(
        lambda x, a: np.take(np.take_along_axis(x, x.argpartition(0, a), a), 0, a),
        (x := d.array(rank=(1, 3))), d.axis(x)),
    "ndarray.fill": lambda d: call(mutate(lambda y: y.fill(3)), d.array()),
    "ndarray.view": lambda d: call(lambda x: x.view() + x.view(x.dtype), d.array("iuf")),
    "ndarray.flatten": lambda d: call(lambda x, o: x.flatten(o), d.array(), d.pick("C", "F")),
    "ndarray.ravel": lambda d: call(lambda x, o: x.ravel(o), d.array(), d.pick("C", "F")),
    "ndarray.conj": lambda d: call(lambda x: x.conj() + x.conjugate(), d.array("iuf")),
    "ndarray.compress": lambda d: call(lambda x, m: x.compress(m), d.array(shape=(4,)),
                                       d.array("b", shape=(4,))),
}  # fmt: skip
CASES["ndarray.conjugate"] = CASES["ndarray.conj"]
