"""Which layers of two models are the same: by their recorded source, or by their names.

A name that a tool made of an operator and a number, ``add_2``, is that of another layer in another
model. Such layers are the same only where they read the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from serde.ir.graph import Graph, Node, Source, Value
from serde.plugins import STANDARD

SCOPES = re.compile(r"[/.:]+")
NUMBERED = re.compile(r"_*((?:[A-Za-z][A-Za-z0-9_\-]*?)?)[_\-]?\d+(?:_output(?:_?\d+)?)?")
SIGNS = re.compile(r"[^a-z0-9]+")
PLAIN = frozenset({"", "op", "node", "t", "tensor", "v", "value", "x"})


class Match(NamedTuple):
    """A layer that two models have: its node in the first, its value in each."""

    node: Node
    value: Value
    other: Value
    is_generated: bool = False  # the name that they have in common


def match_layers(first: Graph, second: Graph) -> Iterator[Match]:
    """The layers that two graphs have in common, in the order of the first.

    Results match by the layer of the source that is recorded for them, or else by a name that is
    not generated, or by one that is and the same operands.
    """
    makers = {v: node for node in second.nodes for v in node.outputs}
    by_name = {v.name: v for v in makers}
    by_source, by_layer = _results_by_layer(second), _results_by_layer(first)
    pairs = _pair_inputs(first, second)
    used: set[Value] = set()
    for node in first.nodes:
        for value in node.outputs:
            keys = [k for k in _layer_names(node) if by_layer.get(k) is value]
            named = (*(by_source.get(k) for k in keys), by_name.get(value.name))
            for other in (v for v in named if v is not None and v not in used):
                sources = find_recorded(node, first), find_recorded(makers[other], second)
                is_recorded = _is_recorded(node, makers[other], *sources)
                is_generated = not is_recorded and _is_generated(node, value, makers[other], other)
                is_named = None in sources and (
                    not is_generated or _reads_same(node, makers[other], pairs)
                )
                if value.name and other.name and (is_recorded or is_named):
                    used.add(other)
                    pairs[value] = other
                    yield Match(node, value, other, is_generated)
                    break


def find_source(node: Node) -> Source | None:
    """The layer of the source model that a node came from, as far as it is recorded.

    Nodes that a conversion adds have a stage of it for a format, which no source has.
    """
    source = node.sources[-1] if node.sources else None
    return None if source is None or "→" in (source.format + source.op) else source


def find_recorded(node: Node, graph: Graph) -> Source | None:
    """The layer of another model, of another format than its own, that a node came from."""
    source = find_source(node)
    is_own = source is not None and source.format == (graph.domain or STANDARD)
    return None if is_own else source


def _pair_inputs(first: Graph, second: Graph) -> dict[Value, Value]:
    """The inputs of two graphs: by name, or by place where names differ."""
    by_name = {v.name: v for v in second.inputs}
    places = second.inputs if len(first.inputs) == len(second.inputs) else ()
    pairs = dict(zip(first.inputs, places, strict=False))
    return pairs | {v: by_name[v.name] for v in first.inputs if v.name in by_name}


def _is_recorded(node: Node, other: Node, a: Source | None, b: Source | None) -> bool:
    """Whether nodes are of one layer: that of the same source, or one is of the other itself."""
    if a is not None and b is not None:
        return (a.format, a.name) == (b.format, b.name)
    return (b is not None and b.name == node.name) or (a is not None and a.name == other.name)


def _is_generated(node: Node, value: Value, other: Node, result: Value) -> bool:
    """Whether a tool made the name that nodes, or their results, have in common."""
    name = value.name if value.name == result.name else node.name
    return is_generated(name, node.op) and is_generated(name, other.op)


def _reads_same(node: Node, other: Node, pairs: dict[Value, Value]) -> bool:
    """Whether nodes are of one operator, with the same operands as far as that can be told."""
    if (node.op, len(node.inputs)) != (other.op, len(other.inputs)):
        return False
    return all(
        _is_same_operand(x, y, pairs) for x, y in zip(node.inputs, other.inputs, strict=True)
    )


def _is_same_operand(x: Value | None, y: Value | None, pairs: dict[Value, Value]) -> bool:
    if x is None or y is None:
        return x is y
    if x.tensor is not None and y.tensor is not None:
        return x.tensor.shape == y.tensor.shape
    return pairs.get(x) is y


def is_generated(name: str, op: str) -> bool:
    """Whether a tool made a name: of a number alone, or of a word of the operator and a number."""
    match = NUMBERED.fullmatch(SCOPES.split(name)[-1])
    if match is None:
        return False
    stem = match[1].lower().removeprefix("node_")
    words = {*SIGNS.split(op.lower()), SIGNS.sub("", op.lower())}
    return stem in PLAIN or SIGNS.sub("", stem) in words


def _results_by_layer(graph: Graph) -> dict[str, Value | None]:
    """The result of each layer: the only output of the last node that came from it.

    It is None where that node came from a later layer too.
    """
    results: dict[str, Value | None] = {}
    for node in graph.nodes:
        if len(node.outputs) == 1:
            results.update(dict.fromkeys(_layer_names(node), node.outputs[0]))
        last = node.sources[-1:]
        results.update((s.name, None) for s in node.sources[:-1] if s not in last)
    return results


def _layer_names(node: Node) -> list[str]:
    """The name of the layer that a node came from, if it is recorded, then its own."""
    source = find_source(node)
    names = [source.name] if source is not None else []
    return [n for n in dict.fromkeys([*names, node.name]) if n]
