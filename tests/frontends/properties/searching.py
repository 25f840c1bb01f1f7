"""Calls of functions that sort and search, and of sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from .draw import Call, Draw, call


def sort(function: Any, **options: Any) -> Any:
    """Calls of a function that sorts along an axis; numbers often repeat."""
    return lambda d: call(function, (x := d.array(low=-4, high=4)), d.axis(x, none=True), **options)


def select_kth(function: Any) -> Any:
    """Calls of a function that sorts around one place, of which that is what is defined."""

    def apply(x: Any, kth: int, axis: int) -> Any:
        result = function(x, kth, axis)
        result = np.take_along_axis(x, result, axis) if function is np.argpartition else result
        return np.take(result, kth, axis)

    return lambda d: call(apply, (x := d.array(rank=(1, 3))), 0, d.axis(x))


def take(d: Draw) -> Call:
    x = d.array(rank=(1, 3))
    at = d.axis(x, none=True)
    mode = d.pick("raise", "clip", "wrap")
    high = 9 if mode != "raise" else 0
    return call(np.take, x, d.array("iu", rank=(0, 2), low=-high, high=high), at, mode=mode)


def take_along(d: Draw) -> Call:
    x = d.array(rank=(1, 3))
    at = d.integer(-x.ndim, x.ndim - 1)
    shape = list(x.shape)
    shape[at] = d.integer(1, 5)
    index = d.array("i", shape=tuple(shape), low=-x.shape[at], high=x.shape[at] - 1)
    return call(np.take_along_axis, x, index, d.pick(at, at, at, x.ndim))


def compress(d: Draw) -> Call:
    x = d.array(rank=(1, 3))
    at = d.axis(x, none=True)
    size = x.size if at is None else x.shape[at] if -x.ndim <= at < x.ndim else 1
    return call(np.compress, d.array("b", shape=(size,)), x, at)


def unique(d: Draw) -> Call:
    x = d.array(low=-3, high=3)
    return call(np.unique, x, d.flag(), d.flag(), d.flag(), axis=d.pick(None, None, d.axis(x)))


def search(d: Draw) -> Call:
    apply = lambda a, v, side: np.searchsorted(np.sort(a), v, side)
    return call(apply, d.array("iuf", rank=(1, 1)), d.array("iuf"), d.pick("left", "right"))


def of_set(function: Any) -> Any:
    """Calls of a function of a set."""
    return lambda d: call(function, d.array(low=-3, high=3))


def bincount(d: Draw) -> Call:
    x = d.array("iu", rank=(1, 1), low=0, high=6)
    kinds = ("uint64",)
    if x.dtype in kinds:
        return call(np.unique, x)
    weights = d.pick(None, d.array("f", shape=x.shape))
    return call(np.bincount, x, weights, d.pick(0, 4, 9))


CASES: dict[str, Any] = {
    "np.sort": sort(np.sort),
    "np.argsort": sort(np.argsort, kind="stable"),
    "np.partition": select_kth(np.partition),
    "np.argpartition": select_kth(np.argpartition),
    "np.lexsort": lambda d: call(np.lexsort, ((x := d.array(low=-2, high=2, rank=(1, 2))),
                                              d.array(low=-2, high=2, shape=x.shape)), d.axis(x)),
    "np.nonzero": lambda d: call(np.nonzero, d.array(low=-1, high=1)),
    "np.argwhere": lambda d: call(np.argwhere, d.array(low=-1, high=1)),
    "np.flatnonzero": lambda d: call(np.flatnonzero, d.array(low=-1, high=1)),
    "np.compress": compress,
    "np.extract": lambda d: call(np.extract, d.array("b", shape=(s := d.shape())),
                                 d.array(shape=s)),
    "np.take": take,
    "np.take_along_axis": take_along,
    "np.searchsorted": search,
    "np.digitize": lambda d: call(np.digitize, d.array("if"), d.pick(
        [-1.0, 0.5, 2], [3, 1, -2], [0]), d.flag()),
    "np.unique": unique,
    "np.unique_values": of_set(lambda x: np.sort(np.unique_values(x))),  # in any order
    "np.unique_counts": of_set(np.unique_counts),
    "np.unique_inverse": of_set(np.unique_inverse),
    "np.unique_all": of_set(np.unique_all),
    "np.isin": lambda d: call(np.isin, d.array("iuf", low=-3, high=3),
                              d.array("iuf", low=-3, high=3), invert=d.flag()),
    "np.bincount": bincount,
    "np.histogram": lambda d: call(np.histogram, d.array("if", rank=(1, 2)), d.pick(
        4, [-3, 0, 2.5]), range=d.pick(None, (-2, 3))),
}  # fmt: skip
