"""Shapes and types of inputs nothing was said of, from the operators around them.

A ``Convolution`` with a two-dimensional kernel and a known weight makes ``(N, C, H, W)``. What one
operator tells is carried along by those that keep, permute or cut the axes of a tensor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from serde.errors import UsageError
from serde.graph import Dim, DType, Graph, Node, Shape, Value
from serde.passes.replacing import replace_values

from .expected import Said
from .relations import ALIKE, KEEPING, ONE_TO_ONE, OTHERS, refined, relations

# Operators whose result has the type of their first operand, and those whose operands all have it.
TYPED = (KEEPING | ONE_TO_ONE.keys() | OTHERS.keys()) - {"Cast", "amp_cast", "Embedding"}
ALL_TYPED = ALIKE | set("Convolution Convolution_v1 Deconvolution FullyConnected RNN".split())


def complete_inputs(graph: Graph, said: Mapping[str, Said]) -> Graph:
    """Return ``graph`` with a shape and a type on every input that operators tell one of.

    ``said`` is what the variables' nodes say. Sizes that nothing tells are named after their
    axes; an input's names are its own, as equal names are equal sizes.

    Raises:
        UsageError: naming the inputs that are read and whose rank nothing determines.
    """
    telling = _Telling(graph, said)
    for likely in (False, True):
        telling.run(graph.nodes, likely)
    _refuse_unknown([v for v in telling.open if telling.shapes.get(v) is None])
    taken = {d for v in graph.inputs for d in v.shape or () if isinstance(d, str)}
    instead = {}
    for v in graph.inputs:
        shape = v.shape
        if shape is None and v in telling.shapes:
            shape = tuple(_named(d, taken) for d in telling.shapes[v])
        instead[v] = Value(v.name, telling.type(v) or DType.FLOAT32, shape)
    renewed = replace_values(graph, instead)
    return replace(renewed, inputs=tuple(instead[v] for v in graph.inputs))


def _refuse_unknown(unknown: list[Value]) -> None:
    if unknown:
        name = unknown[0].name
        raise UsageError(
            f"the shape of {', '.join(repr(v.name) for v in unknown)} cannot be told from the "
            f"operators: give it, as --input {name}=N,3,224,224 or "
            f"inputs={{{name!r}: ('N', 3, 224, 224)}}"
        )


def _named(dim: Dim, taken: set[str]) -> Dim:
    """``dim``, if it is a name with a number behind it where the name is taken."""
    if not isinstance(dim, str):
        return dim
    number, name = 1, dim
    while name in taken:
        number += 1
        name = f"{dim}{number}"
    taken.add(name)
    return name


class _Telling:
    """Lets every operator tell what it can, until they tell nothing new of the inputs.

    ``open`` are the inputs that matter and of whose shape something is unknown, in order.
    """

    def __init__(self, graph: Graph, said: Mapping[str, Said]) -> None:
        self.said = {v: said.get(v.name, Said()) for v in graph.inputs}
        self.shapes = {v: s.shape for v, s in self.said.items() if s.shape is not None}
        self.near: dict[Value, list[Node]] = {}
        read = set(graph.outputs)
        for node in graph.nodes:
            read.update(v for v in node.inputs if v is not None)
            for value in (*node.inputs, *node.outputs):
                if value is not None:
                    self.near.setdefault(value, []).append(node)
        self.open = dict.fromkeys(
            v for v in graph.inputs
            if v in read and v.shape is None and None in self.shapes.get(v, (None,))
        )  # fmt: skip

    def ask(self, value: Value) -> Shape | None:
        """What is known of a shape: a size that is not is None, or the name of the axis."""
        return value.shape if value.shape is not None else self.shapes.get(value)

    def run(self, nodes: Iterable[Node], likely: bool) -> None:
        """Ask ``nodes``, then those around each value of which more became known."""
        queue = deque(nodes)
        waiting = set(queue)
        while queue and self.open:
            node = queue.popleft()
            waiting.discard(node)
            for value, told in relations(node, self.ask, likely):
                known = self.ask(value)
                shape = refined(known, told)
                if value.shape is None and shape is not None and shape != known:
                    self.shapes[value] = shape
                    again = [n for n in self.near[value] if n not in waiting]
                    waiting.update(again)
                    queue.extend(dict.fromkeys(again))
                    if None not in shape:
                        self.open.pop(value, None)

    def type(self, value: Value) -> DType | None:
        """The element type of the nearest value that must have the same."""
        seen, queue = {value}, deque([value])
        while queue:
            value = queue.popleft()
            known = value.dtype or self.said.get(value, Said()).dtype
            if known is not None:
                return known
            for node in self.near.get(value, ()):
                alike = _of_one_type(node)
                if value in alike:
                    queue.extend(v for v in alike if v not in seen)
                    seen.update(alike)
        return None


def _of_one_type(node: Node) -> list[Value]:
    """The operands and outputs of a node that have one element type."""
    several = node.op in ALL_TYPED or node.op.startswith("broadcast_")
    if not (several or node.op in TYPED or node.op.endswith("_scalar")):
        return []
    operands = node.inputs if several else node.inputs[:1]
    return [v for v in (*operands, *node.outputs[:1]) if v is not None]
