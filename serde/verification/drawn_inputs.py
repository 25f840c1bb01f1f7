"""Inputs drawn for a model that no data are given for: as they are drawn first, and otherwise.

A model may take other sizes than are drawn, or other integers: lengths, divisors, places. Where it
rejects the first inputs others are tried, and where it takes none of them, what was drawn is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from serde.errors import SerdeError, UsageError
from serde.ir.graph import Graph, Value
from serde.ir.printer import list_first
from serde.passes.change_batch import fix_dimensions, size_names
from serde.passes.name_dimensions import name_dimensions
from serde.verification.baked_batch import NotComparable
from serde.verification.given_arrays import is_sequence
from serde.verification.random_inputs import MOST_SAMPLES, make_random_inputs

INTEGERS = (1, 0)  # in place of random ones: of places, of divisors and counts
SIZES = (8, 1, 64, 224)  # of dimensions without a number, which may have to be the same
MOST_NAMED = 6  # inputs that a message names


class Drawn(NamedTuple):
    """Inputs by name, and how they differ from those that are drawn first."""

    feeds: Mapping[str, Any]
    change: str = ""


def draw_inputs(graph: Graph, ir: Graph, seed: int) -> Iterator[Drawn]:
    """Inputs for a model, as they are drawn first, then others to try.

    Raises:
        NotComparable: where an input is of texts.
    """
    try:
        first = make_random_inputs(graph, seed, ir)
    except UsageError as error:
        raise NotComparable(f"not compared: {error}") from error
    named = name_dimensions(ir) if any(_list_free(graph)) else None
    is_drawn = False
    for inputs in _draw_all(graph, ir, seed, first):
        if named is None or takes_sizes(named, inputs.feeds):
            is_drawn = True
            yield inputs
    if not is_drawn:
        yield Drawn(first)


def takes_sizes(ir: Graph, feeds: Mapping[str, Any]) -> bool:
    """Whether the types of a graph, whose dimensions have names, agree with the sizes of inputs.

    A source may run where they do not: MXNet's reshape reads beyond its data, or crashes.
    """
    sizes = {
        dim: size
        for v in ir.inputs
        if v.name in feeds and not is_sequence(v)
        for dim, size in zip(v.shape or (), np.shape(feeds[v.name]), strict=False)
        if isinstance(dim, str)
    }
    try:
        fix_dimensions(ir, {n: size for n, size in sizes.items() if n in size_names(ir)})
    except SerdeError:
        return False
    return True


def _draw_all(
    graph: Graph, ir: Graph, seed: int, first: Mapping[str, Any]
) -> Iterator[Drawn]:  # fmt: skip
    """The inputs that are drawn, first ``first``, whatever their sizes."""
    yield Drawn(first)
    integers = [v.name for v in graph.inputs if _is_integer(v)]
    for number in INTEGERS if integers else ():
        feeds = {n: np.full_like(x, number) if n in integers else x for n, x in first.items()}
        yield Drawn(feeds, f"all integers {number}")
    for size in SIZES if any(_list_free(graph)) else ():
        feeds = make_random_inputs(graph, seed, ir, size)
        which = "all sizes" if size <= MOST_SAMPLES else "all sizes but the first"
        yield Drawn(feeds, f"{which} without a number {size}")


def describe_drawn(graph: Graph, feeds: Mapping[str, Any]) -> str:
    """What was chosen that a model may not take, and the options that choose otherwise."""
    free = [n for n, _ in _list_free(graph) if n in feeds]
    sizes = [f"{n}={','.join(map(str, np.shape(feeds[n])))}" for n in free]
    integers = [repr(v.name) for v in graph.inputs if _is_integer(v)]
    parts = []
    if sizes:
        flags = " ".join(f"--input {n}=DIMS" for n in free[:MOST_NAMED])
        parts.append(f"the sizes {list_first(sizes, MOST_NAMED)}, which {flags} sets")
    if integers:
        shown = list_first(integers, MOST_NAMED)
        parts.append(f"the integers of {shown}, which --data in.npz sets")
    if not parts:
        parts.append("all numbers, which --data in.npz sets")
    return f"serde chose {' and '.join(parts)}"


def _list_free(graph: Graph) -> Iterator[tuple[str, Value]]:
    """The inputs with a dimension that has no number."""
    for value in graph.inputs:
        if not is_sequence(value) and any(type(d) is not int for d in value.shape or ()):
            yield value.name, value


def _is_integer(value: Value) -> bool:
    return value.dtype is not None and value.dtype.kind in "iu" and not is_sequence(value)
