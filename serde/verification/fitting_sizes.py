"""Sizes of named dimensions that a model takes: those that its weights and constants fix.

A dense layer behind a flattened image says how large the image is, by way of what lies between.
Element counts grow with the size of an image, so that one that fits is found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

from serde.errors import SerdeError
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Dim, Graph, Value
from serde.passes.change_batch import fix_dimensions
from serde.passes.dce import drop_dead
from serde.spec.traits import BROADCASTS

LARGEST = 4096
MOST_NODES = 50_000  # rewritten in search of two sides that differ
# Sides of images that models are made for; of those that fit, the first is taken.
USUAL = (224, 299, 28, 32, 64, 227, 256, 112, 96, 128, 160, 192, 240, 300, 320, 331, 384, 416, 448,
         480, 512, 600, 608, 640, 800, 1024)  # fmt: skip
POWERS = (64, 32, 16, 8, 4, 2, 1)  # a side that is a multiple of a larger one is preferred
OTHER_SIDES = (32, 48, 64, 96, 100, 112, 128, 160, 192, 224, 256, 320, 384, 512, 640)
# The axis that the operand of scales is as long as.
CHANNELS = {"BatchNormalization": 1, "InstanceNormalization": 1, "LayerNormalization": -1}
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
Measure = Callable[[Sequence[Dim]], int | None]
T = TypeVar("T")


@dataclass(frozen=True)
class Constraint:
    """What ``measure`` makes of the shape of ``value`` has to be ``size``."""

    value: Value
    measure: Measure
    size: int


def fitting_sizes(graph: Graph, defaults: Callable[[Value, int], int]) -> dict[str, int]:
    """Sizes of the named dimensions of an IR graph, by constraints where there are any.

    ``defaults`` are the sizes of others, by input and axis. Where no sizes are found that fit, the
    defaults stay.
    """
    axes = [(v, i, d) for v in graph.inputs for i, d in enumerate(v.shape or ()) if type(d) is str]
    known: dict[str, int] = {}
    for value, axis, name in axes:
        known.setdefault(name, defaults(value, axis))
    free = list(dict.fromkeys(d for _, axis, d in axes if axis))
    dim_sizes: dict[str, int] = {}
    for constraint in _constraints(graph) if free else ():
        problem = _Problem(graph, constraint, known)
        names = [n for n in free if n in problem.names and n not in dim_sizes]
        sizes = problem.solve(names)
        if sizes:
            dim_sizes |= sizes
            known |= sizes
    return dim_sizes


def _constraints(graph: Graph) -> Iterator[Constraint]:
    """The operands whose sizes constants fix, in the order of the graph."""
    for node in graph.nodes:
        a, b = (*node.inputs, None, None)[:2]
        if a is None or b is None or a.shape is None or b.shape is None:
            continue
        if node.op in ("Gemm", "MatMul") and min(len(a.shape), len(b.shape)) >= 2:
            across = (int(not node.attrs.get("transA", 0)), int(bool(node.attrs.get("transB", 0))))
            places = tuple(axis - 2 for axis in across)
            for (x, at), (w, other) in (
                (p, q) for p, q in _both_orders((a, places[0]), (b, places[1]))
            ):
                size = w.shape[other] if w.shape and w.tensor is not None else None
                if isinstance(size, int) and x.shape and not isinstance(x.shape[at], int):
                    yield Constraint(x, _size_along(at), size)
        elif node.op in CHANNELS:
            size = b.shape[0] if b.tensor is not None else None
            at = CHANNELS[node.op]
            if isinstance(size, int) and a.shape and not isinstance(a.shape[at], int):
                yield Constraint(a, _size_along(at), size)
        elif node.op in RECURRENT:
            size = b.shape[2] if b.tensor is not None else None
            if isinstance(size, int) and a.shape and not isinstance(a.shape[-1], int):
                yield Constraint(a, _size_along(-1), size)
        elif node.op in BROADCASTS:
            for x, w in _both_orders(a, b):
                for at in range(-min(len(x.shape or ()), len(w.shape or ())), 0):
                    size = w.shape[at] if w.shape and w.tensor is not None else None
                    if (
                        isinstance(size, int)
                        and size > 1
                        and not isinstance(x.shape and x.shape[at], int)
                    ):
                        yield Constraint(x, _size_along(at), size)
        elif node.op == "Reshape":
            shape = shape_data_of(b)
            rest = shape[1:] if shape and shape[0] == -1 else ()
            if rest and all(isinstance(d, int) and d > 0 for d in rest):
                yield Constraint(a, _count_behind_batch, prod(d for d in rest if type(d) is int))


def _both_orders(a: T, b: T) -> tuple[tuple[T, T], tuple[T, T]]:
    return (a, b), (b, a)


def _size_along(axis: int) -> Measure:
    def measure(shape: Sequence[Dim]) -> int | None:
        size = shape[axis] if len(shape) >= -axis else None
        return size if isinstance(size, int) else None

    return measure


def _count_behind_batch(shape: Sequence[Dim]) -> int | None:
    sizes = [d for d in shape[1:] if isinstance(d, int)]
    return prod(sizes) if len(sizes) == len(shape) - 1 else None


class _Problem:
    """The part of a graph before a constraint, tried with sizes."""

    def __init__(self, graph: Graph, constraint: Constraint, known: Mapping[str, int]) -> None:
        before = drop_dead(replace(graph, outputs=(constraint.value,), functions=()))
        read = before.uses()
        used = tuple(v for v in before.inputs if v in read or v is constraint.value)
        self.graph = replace(before, inputs=used)
        self.names = {d for v in used for d in v.shape or () if isinstance(d, str)}
        self.constraint = constraint
        self.known = {n: s for n, s in known.items() if n in self.names}
        self._measured: dict[tuple[int, ...], int] = {}

    def measure(self, sizes: Mapping[str, int]) -> int:
        """What comes of sizes; 0 where they are too small for the model."""
        chosen = {**self.known, **sizes}
        key = tuple(chosen.values())
        if key not in self._measured:
            try:
                (value,) = fix_dimensions(self.graph, chosen).outputs
                result = None if value.shape is None else self.constraint.measure(value.shape)
            except SerdeError:
                result = None
            self._measured[key] = result or 0
        return self._measured[key]

    def solve(self, names: Sequence[str]) -> dict[str, int]:
        """Sizes of ``names`` that meet the constraint; none where it holds, or nothing does."""
        if not names or (before := self.measure({})) == self.constraint.size:
            return {}
        if before:  # others, as the batch of a sequence, stay what they are
            names = [n for n in names if self.measure({n: 2 * self.known[n]}) != before]
        if not names:
            return {}
        same = self.side(lambda size: dict.fromkeys(names, size))
        if same is not None:
            return dict.fromkeys(names, same)
        first, *others = names
        for size in OTHER_SIDES if others else ():
            if len(self._measured) * len(self.graph.nodes) > MOST_NODES:
                break
            side = self.side(lambda s, z=size: {first: z, **dict.fromkeys(others, s)})  # type: ignore[misc]
            if side is not None:
                return {first: size, **dict.fromkeys(others, side)}
        return {}

    def side(self, sizes: Callable[[int], Mapping[str, int]]) -> int | None:
        """The best of the sides that meet the constraint."""
        size = self.constraint.size
        least = _find_least(lambda s: self.measure(sizes(s)) >= size)
        if least > LARGEST or self.measure(sizes(least)) != size:
            return None
        end = _find_least(lambda s: self.measure(sizes(s)) > size, least)
        usual = next((s for s in USUAL if least <= s < end), None)
        if usual is not None:
            return usual
        return next(s for p in POWERS for s in range(-(-least // p) * p, end, p))


def _find_least(holds: Callable[[int], bool], low: int = 1) -> int:
    """The least number from ``low`` on for which ``holds``, once it does for all beyond."""
    high = LARGEST + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
