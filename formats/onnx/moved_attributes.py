"""Attributes of nodes that their opset has as operands.

Some exporters write ``Split`` of opset 13 with the attribute ``split``, which opset 12 is the last
to have. The meaning is clear; the operand is what the file says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from serde.ir.builder import Names
from serde.ir.constants import make_constant
from serde.ir.graph import Attr, DType, Function, Graph, Node, Tensor
from serde.ir.map_nodes import map_nodes
from serde.spec import schema

from .consumers.used_names import used_names

RENAMED: Mapping[tuple[str, str], str] = {("TopK", "k"): "K", ("Pad", "value"): "constant_value"}
LISTED = frozenset({("TopK", "k")})  # numbers that are operands of one element
NUMBERS = {int: DType.INT64, float: DType.FLOAT32}


def move_attributes(graph: Graph) -> Graph:
    """Return a graph of any opset, with a note for each attribute that is now an operand.

    An attribute beside the operand stays, to be refused, and one whose element type is not known.
    """
    if not any(_may_move(body) for body in (graph, *(f.body for f in graph.functions))):
        return graph
    notes: list[str] = []
    moved = _move_all(graph, graph.opset, used_names(graph), notes)
    functions = tuple(_move_in_function(f, notes) for f in graph.functions)
    return replace(moved, functions=functions, notes=(*graph.notes, *notes)) if notes else graph


def _may_move(graph: Graph) -> bool:
    """Whether a node has an attribute that its operator takes as an operand."""
    return any(
        n.attrs and not find_operands(n.op, graph.opset).keys().isdisjoint(n.attrs)
        for n in graph.all_nodes()
    )


def _move_in_function(function: Function, notes: list[str]) -> Function:
    body = function.body
    return replace(function, body=_move_all(body, body.opset, used_names(body), notes))


def _move_all(graph: Graph, opset: int, names: Names, notes: list[str]) -> Graph:
    return map_nodes(graph, lambda node: _move(node, opset, names, notes))


def _move(node: Node, opset: int, names: Names, notes: list[str]) -> Node:
    """The node with operands in place of attributes that have become these."""
    places = {} if node.domain else find_operands(node.op, opset)
    for name in sorted(node.attrs.keys() & places.keys()):
        place, attribute = places[name], node.attrs[name]
        inputs = [*node.inputs, *[None] * (place + 1 - len(node.inputs))]
        tensor = _to_tensor(node, place, name, opset, attribute)
        if tensor is None or inputs[place] is not None:
            continue
        inputs[place] = make_constant(names.fresh(f"{node.name}/{name}"), tensor)
        attrs = {k: v for k, v in node.attrs.items() if k != name}
        node = replace(node, inputs=tuple(inputs), attrs=attrs)
        notes.append(
            f"node {node.name!r} ({node.op}): the attribute {name!r}, which opset {opset} has as "
            "an operand, is read as that"
        )
    return node


@lru_cache(schema.KEPT)
def find_operands(op: str, opset: int) -> Mapping[str, int]:
    """The attributes of older opsets that ``op`` takes as operands, and the places of these."""
    operator = schema.find(op, opset)
    if operator is None:
        return {}
    places = {formal.name: place for place, formal in enumerate(operator.inputs)}
    older = (o for version in range(1, operator.since) if (o := schema.find(op, version)))
    attributes = {name for o in older for name in o.attributes} - operator.attributes
    named = {name: RENAMED.get((op, name), name) for name in attributes}
    return {name: places[operand] for name, operand in named.items() if operand in places}


def _to_tensor(node: Node, place: int, name: str, opset: int, attribute: Attr) -> Tensor | None:
    """An attribute as the operand at ``place``, None where its element type is not known."""
    operator = schema.operator(node.op, opset)
    formal, x = operator.input(place), node.inputs[0] if node.inputs else None
    items = attribute if isinstance(attribute, tuple) else (attribute,)
    kinds = {type(item) for item in items} or {int}
    dtype = NUMBERS.get(kinds.pop())
    if formal.tie == operator.input(0).tie:
        dtype = None if x is None else x.dtype
    if kinds or dtype is None or dtype not in formal.types:
        return None
    is_list = isinstance(attribute, tuple) or (node.op, name) in LISTED
    return Tensor.of(np.array(items if is_list else items[0], dtype.numpy))
