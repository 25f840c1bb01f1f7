"""Calls of NumPy's functions with drawn arguments, traced and compared with NumPy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

import serde
from serde.bridges import onnxruntime as runtime
from tests.frontends.tracing import assert_equal, specs_of

KINDS = {"b": ["bool"], "i": ["int8", "int16", "int32", "int64"], "h": ["float16"],
         "u": ["uint8", "uint16", "uint32", "uint64"], "f": ["float32", "float64"]}  # fmt: skip
NAMES: list[Any] = [None, None, {3: "N"}, {2: "A", 4: "B"}, {1: "A", 2: "B", 3: "C", 4: "D"}]
ERRORS = (ValueError, TypeError, IndexError, OverflowError)
PLAIN = (np.dtype, bool)  # of results, what is the same in Python
PRECISION = 1e-11  # of float64, relative to the largest number


class Operand:
    """An array that the traced function takes."""

    def __init__(self, index: int, numbers: Any) -> None:
        self.index, self.numbers = index, numbers
        self.shape, self.ndim, self.dtype, self.size = (
            numbers.shape, numbers.ndim, numbers.dtype, numbers.size
        )  # fmt: skip


class Call(NamedTuple):
    """A function, and arguments in which operands stand for arrays."""

    function: Any
    args: tuple[Any, ...]
    options: Mapping[str, Any]

    def fill(self, arrays: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, with arrays in the operands' places."""

        def replace(thing: Any) -> Any:
            if isinstance(thing, Operand):
                return arrays[thing.index]
            if type(thing) in (list, tuple):
                return type(thing)(map(replace, thing))
            return thing

        return list(map(replace, self.args)), {k: replace(v) for k, v in self.options.items()}


def call(function: Any, *args: Any, **options: Any) -> Call:
    """A call to compare."""
    return Call(function, args, options)


class Draw:
    """Draws arrays and options of one call."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.operands: list[Any] = []

    def pick(self, *options: Any) -> Any:
        """One of several."""
        return self.data.draw(st.sampled_from(options))

    def flag(self) -> bool:
        """True or False."""
        return self.pick(False, True)

    def integer(self, low: int, high: int) -> int:
        """An integer, both bounds included."""
        return self.data.draw(st.integers(low, high))

    def shape(self, low: int = 0, high: int = 3, least: int = 1) -> tuple[int, ...]:
        """A shape of ``low`` to ``high`` axes."""
        return tuple(self.integer(least, 4) for _ in range(self.integer(low, high)))

    def like(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with another: sizes of 1, and axes left out or added."""
        sizes = tuple(1 if self.integer(0, 3) == 0 else n for n in shape)
        return self.pick(sizes, sizes, shape, sizes[1:], (2, *sizes))

    def numbers(self, shape: tuple[int, ...], dtype: Any, low: int = -40, high: int = 40) -> Any:
        """An array of multiples of 1/8, or of integers from ``low`` to ``high``."""
        kind = np.dtype(dtype)
        rng = np.random.default_rng(self.integer(0, 999))
        if kind.kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if kind.kind == "f":
            return (rng.integers(low, high + 1, shape) / 8).astype(kind)
        low = max(low, 0) if kind.kind == "u" else low
        return rng.integers(low, high + 1, shape).astype(kind)

    def dtype(self, kinds: str) -> str:
        """An element type of some kinds."""
        return self.pick(*(t for k in kinds for t in KINDS[k]))

    def array(
        self, kinds: str = "biuhf", shape: Any = None, rank: tuple[int, int] = (0, 3),
        least: int = 1, low: int = -40, high: int = 40, dtype: Any = None, traced: bool = False,
    ) -> Any:  # fmt: skip
        """An array; the first of a call is traced, of the others some are."""
        sizes = self.shape(*rank, least=least) if shape is None else shape
        array = np.asarray(self.numbers(sizes, dtype or self.dtype(kinds), low, high))
        if self.operands and not traced and self.integer(0, 2) == 0:
            return array
        self.operands.append(Operand(len(self.operands), array))
        return self.operands[-1]

    def axis(self, x: Any, none: bool = False, extra: int = 0) -> Any:
        """An axis, rarely one that is not there."""
        rank = x.ndim + extra
        inside = list(range(-rank, rank)) * 3
        return self.pick(*inside, rank, -rank - 1, *([None] * 3 if none else []))

    def axes(self, x: Any) -> Any:
        """None, one axis, or several; rarely one that is not there."""
        if x.ndim == 0 or self.flag():
            return self.axis(x, none=True)
        places = st.lists(st.integers(-x.ndim, x.ndim - 1), unique_by=lambda a: a % x.ndim)
        return tuple(self.data.draw(places))

    def regroup(self, x: Any) -> Any:
        """A shape for the elements of an array; rarely one of another size."""
        total = math.prod(x.shape)
        return self.pick((-1,), total, x.shape[::-1], (1, *x.shape), (-1, *x.shape[:1]), (7, 3))


def list_leaves(thing: Any) -> list[Any]:
    """The arrays of a result; complex ones as their parts."""
    if isinstance(thing, (list, tuple)):
        return [leaf for t in thing for leaf in list_leaves(t)]
    if hasattr(thing, "imaginary") or (hasattr(thing, "dtype") and thing.dtype.kind == "c"):
        return [np.stack([thing.real, thing.imag])]
    return [thing]


def check(case: Any, data: Any, path: Any, needs_sizes: bool = False) -> None:
    """Draw a call; trace it, run it in ONNX Runtime, and compare with NumPy.

    What NumPy refuses has to be refused. ``needs_sizes`` allows a refusal of sizes by name.
    """
    draw = Draw(data)
    drawn = case(draw)
    names = draw.pick(*NAMES)
    arrays = [o.numbers for o in draw.operands]
    function, leaves = drawn.function, []

    def run(*xs: Any) -> Any:
        args, options = drawn.fill(xs)
        leaves[:] = list_leaves(function(*args, **options))
        return tuple(x for x in leaves if not isinstance(x, PLAIN)) or (xs[0],)

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            args, options = drawn.fill([a.copy() for a in arrays])
            expected = list_leaves(function(*args, **options))
        except ERRORS:
            with pytest.raises(ERRORS):
                serde.trace(run, *specs_of(arrays, None))
            return
        try:
            graph = serde.trace(run, *specs_of(arrays, names))
        except serde.TraceError:
            if not needs_sizes or names is None:
                raise
            graph = serde.trace(run, *specs_of(arrays, None))
    serde.save(graph, path, format="onnx")
    feeds = {v.name: a for v, a in zip(graph.inputs, arrays, strict=True)}
    outputs = iter(runtime.run(path, feeds, optimize=draw.flag()))
    for a, b in zip(leaves, expected, strict=True):
        if isinstance(a, PLAIN):
            assert a == b
        else:
            assert_equal(next(outputs), np.asarray(b), PRECISION)
