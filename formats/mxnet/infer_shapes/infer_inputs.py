"""Shapes and types of inputs nothing was said of, from the operators around them.

A ``Convolution`` with a two-dimensional kernel and a known weight makes ``(N, C, H, W)``. What one
operator tells is carried along by those that keep, permute or cut the axes of a tensor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from serde.errors import UsageError
from serde.ir.graph import Dim, DType, Graph, Node, Shape, Value
from serde.ir.replace_uses import replace_values

from ..bind.declared import Declared
from ..operators import describe
from .equal_sizes import find_equal_sizes
from .guesses import guess_broadcast, guess_rows
from .merge_shapes import merge_shapes
from .propagate import ERRORS, Contradiction, Propagation

Guess = tuple[Value, Shape]
MOST_WASTED = 16  # evaluations for each node, of guesses that were dropped


def complete_inputs(graph: Graph, variables: Mapping[str, Declared]) -> Graph:
    """Return ``graph`` with a shape and a type on every input that operators tell one of.

    ``variables`` is what their nodes declare. Sizes that nothing tells are named after their
    axes; of several inputs they have one name where operators need them equal, and else names of
    their own.

    Raises:
        UsageError: naming the inputs that are read and whose rank nothing determines.
    """
    inferred = InputShapes(graph, variables)
    unknown = [v for v in inferred.open if inferred.shape_of(v) is None]
    if unknown:
        from .examples import ask_for_shapes

        raise UsageError(ask_for_shapes(graph, unknown))
    names = _Names(d for v in graph.inputs for d in v.shape or () if isinstance(d, str))
    shapes = {v: v.shape for v in graph.inputs}
    for v in graph.inputs:
        if v.shape is None and (dims := inferred.shape_of(v)) is not None:
            shapes[v] = tuple(map(names.make_distinct, dims))
    shapes = _name_equal_sizes(graph, shapes)
    types = infer_types(graph, variables)
    instead = {v: Value(v.name, types.get(v, DType.FLOAT32), s) for v, s in shapes.items()}
    renewed = replace_values(graph, instead)
    return replace(renewed, inputs=tuple(instead[v] for v in graph.inputs))


def _name_equal_sizes(
    graph: Graph, shapes: dict[Value, Shape | None]
) -> dict[Value, Shape | None]:  # fmt: skip
    """``shapes`` with one name for inferred sizes that must be equal: the user's, or the first."""
    named = {v: s for v, s in shapes.items() if s and any(isinstance(d, str) for d in s)}
    users = [d for v in graph.inputs for d in v.shape or () if isinstance(d, str)]
    if len(named) < 2 or all(v.shape is not None for v in named):
        return shapes
    order = [*users, *(d for s in named.values() for d in s)]
    instead: dict[Dim, Dim] = {}
    for group in find_equal_sizes(graph.nodes, named):
        first = min(group, key=order.index)
        instead.update(dict.fromkeys((name for name in group if name not in users), first))
    return {v: s and tuple(instead.get(d, d) for d in s) for v, s in shapes.items()}


class _Names:
    """Names of sizes, of which each is given once."""

    def __init__(self, used: Iterable[str]) -> None:
        self.used, self.count = set(used), dict[str, int]()

    def make_distinct(self, dim: Dim) -> Dim:
        """``dim``, if it is a name with a number behind it where the name is used."""
        if not isinstance(dim, str):
            return dim
        name, number = str(dim), self.count.get(dim, 1)
        while name in self.used:
            number += 1
            name = f"{dim}{number}"
        self.count[dim] = number
        self.used.add(name)
        return name


class InputShapes:
    """Shapes of the inputs of a graph: what operators determine, then what is usual.

    ``open`` are the inputs that matter and of whose shape something is unknown, in order;
    ``undetermined`` those of whose rank operators determine nothing. Guesses are counted in
    ``guessed``; one that contradicts a node is dropped.
    """

    def __init__(self, graph: Graph, variables: Mapping[str, Declared]) -> None:
        shapes = {
            v: s for v in graph.inputs if (s := variables.get(v.name, Declared()).shape) is not None
        }
        read = set(graph.outputs)
        for node in graph.nodes:
            read.update(v for v in node.inputs if v is not None)
        self.open = [
            v for v in graph.inputs
            if v in read and v.shape is None and None in shapes.get(v, (None,))
        ]  # fmt: skip
        self._known = 0  # of those in ``open``, from the first on
        self.guessed = 0
        self.propagation = Propagation(graph.nodes if self.open else (), shapes)
        self.undetermined: list[Value] = []
        if self.open:
            self.propagation.run(self.is_known)
            self.undetermined = [v for v in self.open if self.shape_of(v) is None]
            self.guess(graph.nodes)

    def shape_of(self, value: Value) -> Shape | None:
        """What is known of a shape: a size that is not is None, or the name of the axis."""
        return self.propagation.shape_of(value)

    def is_known(self) -> bool:
        """Whether all that matters is known of every input."""
        while self._known < len(self.open):
            shape = self.shape_of(self.open[self._known])
            if shape is None or None in shape:
                return False
            self._known += 1
        return True

    def guess(self, nodes: Sequence[Node]) -> None:
        """Assume what is usual, node by node, as far as nothing contradicts it.

        Evaluations that were for nothing are limited by the size of the graph.
        """
        wasted, most = 0, MOST_WASTED * len(self.propagation.parts)
        attempts = chain(
            (pair for n in nodes for pair in collect_guesses(guess_rows, n)),
            (
                pair
                for n in reversed(nodes)
                for pair in collect_guesses(guess_broadcast, n, self.shape_of)
            ),
        )
        for value, shape in attempts:
            known = self.shape_of(value)
            if known is not None and (
                len(known) != len(shape) or merge_shapes(known, shape) == known
            ):
                continue
            before = self.propagation.evaluations
            try:
                self.propagation.assume(value, shape)
                self.guessed += 1
            except Contradiction:
                wasted += self.propagation.evaluations - before
            if self.is_known() or wasted > most:
                return


def collect_guesses(guess: Callable[..., Iterator[Guess]], *arguments: Any) -> list[Guess]:
    """What ``guess`` yields: nothing for a node whose attributes are wrong, as its rule says."""
    try:
        return list(guess(*arguments))
    except ERRORS:
        return []


def infer_types(graph: Graph, variables: Mapping[str, Declared]) -> dict[Value, DType]:
    """The element type of each value for which that of the nearest value that must have the same
    is known.
    """
    near: dict[Value, list[list[Value]]] = {}  # what has the type of a value
    types: dict[Value, DType] = {}
    for v in graph.inputs:
        dtype = v.dtype or variables.get(v.name, Declared()).dtype
        if dtype is not None:
            types[v] = dtype
    for node in graph.nodes:
        values = have_one_type(node)
        for value in values:
            near.setdefault(value, []).append(values)
            if value.dtype is not None:
                types[value] = value.dtype
    queue = deque(types)
    while queue:
        value = queue.popleft()
        for values in near.pop(value, ()):
            new = [v for v in values if v not in types]
            types.update(dict.fromkeys(new, types[value]))
            queue.extend(new)
    return types


def have_one_type(node: Node) -> list[Value]:
    """The operands and outputs of a node that have one element type."""
    operands = node.inputs[describe(node.op).typed]
    return [v for v in (*operands, *node.outputs[:1]) if v is not None] if operands else []
