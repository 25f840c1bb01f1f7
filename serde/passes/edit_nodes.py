"""Edits of a source that a user gives by the names of layers: attributes, operators, constants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import UsageError, suggest
from serde.io.arrays import read_npy
from serde.io.tables import read_tables
from serde.ir.graph import Graph, Node, Tensor, Value
from serde.ir.map_nodes import map_nodes
from serde.ir.replace_uses import exchange_values, replace_values
from serde.ir.values_read import nodes_behind
from serde.passes.set_inputs import array_of

OF_NODE, OF_CONSTANT = ("attributes", "without", "operator", "domain"), ("value",)
KNOWN = (*OF_NODE, *OF_CONSTANT)


def read_edits(edits: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """The edits in a file, by name; those that name an ``.npy`` file, with its array.

    Raises:
        UsageError: for an entry that is no edit. MalformedFile: for a file of something else.
    """
    if isinstance(edits, Mapping):
        place, folder, tables = "edits", "", edits
    elif not isinstance(edits, (str, os.PathLike)):
        what = type(edits).__name__
        raise UsageError(f"edits are a mapping by name, or the path of a file, and no {what}")
    else:
        place = os.fspath(edits)
        folder, tables = os.path.dirname(os.path.abspath(place)), read_tables(place)
    by_name = {}
    for name, edit in tables.items():
        if not isinstance(edit, Mapping) or not edit:
            raise UsageError(f"{place}: {name!r} is {edit!r}: give one of {', '.join(KNOWN)}")
        if unknown := [key for key in edit if key not in KNOWN]:
            raise UsageError(
                f"{place}: {name!r}: there is no {unknown[0]!r}"
                f"{suggest(str(unknown[0]), KNOWN)}; an edit has "
                f"{', '.join(KNOWN)}"
            )
        value = edit.get("value")
        if isinstance(value, str) and value.endswith(".npy"):
            edit = {**edit, "value": read_npy(os.path.join(folder, value))}
        by_name[str(name)] = edit
    return by_name


def edit_nodes(graph: Graph, edits: Mapping[str, Any]) -> Graph:
    """The graph with its nodes and constants edited, those of subgraphs too.

    A node is found by its name, or by that of a value that it computes. What was said of the types
    of its results, of the sizes of what other domains compute of them, and of the shapes of the
    graph's results behind them, is dropped: they are inferred anew. Where all is as it was, the
    graph itself is returned.

    Raises:
        UsageError: for a name that nothing has, and for an edit that does not fit it.
    """
    constants = {v.name: v for v in graph.constants()}
    nodes: dict[str, list[Node]] = {}
    for node in graph.all_nodes():
        for name in dict.fromkeys((node.name, *(v.name for v in node.outputs))):
            nodes.setdefault(name, []).append(node)
    old: dict[int, Node] = {}
    changed: dict[int, Node] = {}
    new_constants: dict[Value, Value] = {}
    for name, edit in edits.items():
        if "value" in edit:
            if name not in constants:
                raise UsageError(_describe_absence("constant", name, constants))
            if others := [key for key in edit if key in OF_NODE]:
                raise UsageError(f"{name!r} is a constant, which has no {others[0]}")
            new_constants[constants[name]] = _make_constant(constants[name], edit["value"])
            continue
        if name not in nodes:
            raise UsageError(_describe_absence("layer", name, nodes))
        for node in nodes[name]:
            changed[id(node)] = _edit(changed.get(id(node), node), name, edit)
            old[id(node)] = node
    changed = {n: node for n, node in changed.items() if not _is_same(old[n], node)}
    new_constants = {v: new for v, new in new_constants.items() if not _is_equal(v, new)}
    if not changed and not new_constants:
        return graph
    graph = replace_values(_map_by_id(graph, changed), new_constants)
    results = {v: Value(v.name) for node in changed.values() for v in node.outputs}
    reshaped = [new for v, new in new_constants.items() if v.shape != new.shape]
    computed = set(results)
    for node in nodes_behind(graph, (*results, *reshaped)):
        computed.update(node.outputs)
        for v in node.outputs if node.domain else ():
            shape = None if v.shape is None else (None,) * len(v.shape)
            results.setdefault(v, Value(v.name, v.dtype, shape, container=v.container))
    for v in computed.intersection(graph.outputs):
        results.setdefault(v, Value(v.name, v.dtype, container=v.container))
    return exchange_values(graph, results)


def _is_same(a: Node, b: Node) -> bool:
    return (a.op, a.domain, a.attrs) == (b.op, b.domain, b.attrs)


def _is_equal(a: Value, b: Value) -> bool:
    """Whether two constants have the same numbers."""
    return a.shape == b.shape and a.array().tobytes() == b.array().tobytes()


def _map_by_id(graph: Graph, changed: Mapping[int, Node]) -> Graph:
    """The graph with some nodes changed; those with subgraphs keep what is changed there."""
    if not changed:
        return graph
    by_outputs = {node.outputs: node for node in changed.values()}

    def change(node: Node) -> Node:
        new = by_outputs.get(node.outputs)
        return node if new is None else replace(
            node, op=new.op, domain=new.domain, attrs={**new.attrs, **_bodies_of(node)}
        )  # fmt: skip

    return map_nodes(graph, change)


def _bodies_of(node: Node) -> dict[str, Any]:
    return {n: a for n, a in node.attrs.items() if isinstance(a, Graph)}


def _edit(node: Node, name: str, edit: Mapping[str, Any]) -> Node:
    attrs = dict(node.attrs)
    for attribute in edit.get("without", ()):
        if attribute not in attrs:
            raise UsageError(
                f"{name!r} ({node.op}) has no attribute {attribute!r}; it has "
                f"{', '.join(attrs) or 'none'}"
            )
        del attrs[attribute]
    for attribute, value in edit.get("attributes", {}).items():
        attrs[attribute] = _like(node.attrs.get(attribute), value)
    operator, domain = edit.get("operator", node.op), edit.get("domain", node.domain)
    return replace(node, op=operator, domain=domain, attrs=attrs)


def _like(old: Any, new: Any) -> Any:
    """A value of a file as an attribute has it: a text where formats write all as texts."""
    if isinstance(new, list):
        new = tuple(_like(None, each) for each in new)
    if isinstance(old, bool):
        return bool(new)
    if isinstance(old, str):
        return str(new)
    if isinstance(new, bool):
        return int(new)
    return float(new) if isinstance(old, float) and isinstance(new, int) else new


def _make_constant(value: Value, data: Any) -> Value:
    """A constant in place of one, of its type; a number fills its shape."""
    array = array_of(f"constant {value.name!r}", data, value.dtype)
    if array.ndim == 0 and value.shape is not None:
        array = np.full(value.static_shape, array, array.dtype)
    return replace(value, tensor=Tensor.of(array), shape=array.shape, shape_data=None, origins=())


def _describe_absence(kind: str, name: str, known: Mapping[str, Any]) -> str:
    hint = suggest(name, [n for n in known if n])
    return f"no {kind} is called {name!r}{hint} (serde inspect --values lists the names)"
