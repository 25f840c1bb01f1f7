"""Operators MXNet does not define itself: read by rules of the user's, or taken along.

A rule for ``Custom`` operators of one kind stands under ``Custom:`` and their ``op_type``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from serde.errors import UsageError
from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.map_nodes import map_nodes
from serde.ir.replace_uses import replace_values
from serde.passes.cut_inputs import spec_of
from serde.rewrite.rules import RuleTable, add_rules

from ..bind.op_names import CANONICAL

CUSTOM, KIND = "Custom", "op_type"
LASTING = "Dropout:always"  # a sampler, where that of training is none
Rules = RuleTable | Mapping[str, Callable[..., Any]]


def add_custom_rules(table: RuleTable, graph: Graph, rules: Rules | None) -> RuleTable:
    """``table`` with the rules that callers and plug-ins have for operators of the graph."""
    here = {name for node in graph.ordered_nodes() for name in (node.op, kind_of(node))}
    if not isinstance(rules, RuleTable):
        names = {n: CANONICAL.get(n, n) for n in rules or ()}
        rules = {op: rules[n] for n, op in names.items() if rules and op in here}
    return add_rules(table, rules, here)


def collect_custom_ops(rules: Rules | None) -> set[str]:
    """The operators that are read by rules of callers and plug-ins."""
    if isinstance(rules, RuleTable):
        return {n for n in rules.rules if n.partition(":")[0] == CUSTOM}
    return {CANONICAL.get(n, n) for n in rules or ()}


def kind_of(node: Node) -> str:
    """What a rule for the node may stand under besides its operator."""
    if node.op == "Dropout" and node.attrs.get("mode") == "always":
        return LASTING
    return f"{CUSTOM}:{node.attrs.get(KIND, '')!s}" if node.op == CUSTOM else node.op


def rename_by_kind(graph: Graph, table: RuleTable) -> Graph:
    """The graph, with nodes under the name the table has for their kind, if it has one."""
    known = {*table.rules, *table.reasons}

    def rename(node: Node) -> Node:
        if kind_of(node) != node.op and kind_of(node) in known:
            attrs = {n: v for n, v in node.attrs.items() if n != KIND}
            return replace(node, op=kind_of(node), attrs=MappingProxyType(attrs))
        return node

    return map_nodes(graph, rename)


def keep_custom_nodes(
    graph: Graph, table: RuleTable, domain: str, types: Mapping[str, Any]
) -> tuple[Graph, RuleTable]:
    """Nodes no rule reads are kept, as operators of ``domain`` with their attributes as strings.

    Operators of MXNet's own, for which there is a reason why they are not read, are not. ``types``
    are the shapes, or shapes and element types, of what such nodes compute, by name.

    Raises:
        UsageError: for a type of something else.
    """
    emitters: dict[str, Callable[..., Any]] = {}
    typed_values: dict[Value, Value] = {}

    def keep(node: Node) -> Node:
        if node.op in table.rules or (node.op in table.reasons and node.op != CUSTOM):
            return node
        op, attrs = node.op, dict(node.attrs)
        if op == CUSTOM:
            op = str(attrs.pop(KIND, CUSTOM))
        name = f"{domain}::{op}/{len(node.outputs)}"
        emitters[name] = partial(emit_foreign, domain, op, len(node.outputs))
        outputs = tuple([declare_type(v, types) for v in node.outputs])
        typed_values.update(zip(node.outputs, outputs, strict=True))
        return replace(node, op=name, outputs=outputs, attrs=MappingProxyType(attrs))

    done = replace_values(map_nodes(graph, keep), typed_values)
    if unknown := sorted(set(types) - {v.name for v in typed_values}):
        raise UsageError(
            f"{', '.join(map(repr, unknown))}: no custom operator computes that; those that are "
            f"kept compute {', '.join(repr(v.name) for v in typed_values) or 'nothing'}"
        )
    if not emitters:
        return done, table
    return replace(done, imports={**done.imports, domain: 1}), table.extend(emitters)


def declare_type(value: Value, types: Mapping[str, Any]) -> Value:
    """The value as it is said to be; float32 where only a shape is said."""
    if value.name not in types:
        return value
    shape, dtype = spec_of(value.name, types[value.name])
    return Value(value.name, dtype or DType.FLOAT32, shape)


def emit_foreign(
    domain: str, op: str, count: int, g: Any, *operands: Value | None, **attrs: Any
) -> tuple[Value, ...]:
    """A node of another domain, of whose results nothing is known but what callers say."""
    return g.foreign(domain, op, operands, attrs, count)  # type: ignore[no-any-return]
