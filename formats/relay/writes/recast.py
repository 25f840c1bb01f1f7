"""Operators Relay has not, or not in such a form, as operators of the IR that it has.

A rule here is like a rule of ``serde/steps``: a function from a builder of the IR's operators, the
operands and the attributes to what the node becomes. None leaves the node as it is, for the rule in
``writes`` of its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from serde import schema
from serde.builder import Builder, Operand
from serde.errors import ConversionError
from serde.graph import IR_OPSET, Graph, Node, Value
from serde.opset import Stepping, lower_to
from serde.rules import RuleTable
from serde.steps import below

from .table import REFUSED, writes

recasts = RuleTable("ir → relay", defaults=lambda op: schema.operator(op).defaults)


class Recasting(Stepping):
    """Emits operators of the IR as those Relay has a call for."""

    def _settle(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        rule = recasts.rules.get(op)
        if rule is None:
            return super()._settle(op, inputs, attrs, outputs)
        made = super()._settle(op, inputs, attrs, outputs)
        first = made[0] if isinstance(made, tuple) else made
        node = self.made(first)
        if node is None or not self.nodes or self.nodes[-1] is not node or node.op != op:
            return made  # folded, simplified, or recast on the way
        self.nodes.pop()
        bound = recasts.bind(rule, op, node.attrs)
        if "outputs" in rule.attributes:
            bound["outputs"] = outputs
        became = rule.function(self, *node.inputs, **bound)
        if became is None:
            self.nodes.append(node)
            return made
        if outputs == 1 and isinstance(became, tuple):
            became = became[0]
        return _typed(became, made)


def _typed(became: Any, made: Any) -> Any:
    """What a node became, with what is known of the type of the node's own outputs."""
    pairs = zip(became, made, strict=False) if isinstance(made, tuple) else [(became, made)]
    for new, old in pairs:
        if new is not None and new.tensor is None:
            new.dtype = new.dtype or old.dtype
            closer = new.shape is None or (old.shape is not None and None in new.shape)
            new.shape = old.shape if closer else new.shape
    return became


def recast(graph: Graph) -> Graph:
    """Rewrite an IR graph into one whose operators, but those without any way, Relay has."""
    if graph.functions:
        graph = lower_to(graph, IR_OPSET, keep_functions=False)
    builder = Recasting(graph.name, IR_OPSET, IR_OPSET, spelled_out=spelled_out())
    return RuleTable("ir → relay", fallback=_recast_node).rewrite(graph, builder)


@cache
def spelled_out() -> frozenset[str]:
    """Operators that came after opset 1 and which Relay has not: older ones stand for them."""
    newer = {op for v, t in below.items() for op in t.rules if schema.first_version(op) == v}
    return frozenset(newer - set(writes.rules) - set(recasts.rules))


def _recast_node(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    if node.domain:
        return builder.keep(node, inputs)
    assert isinstance(builder, Recasting)
    if node.op not in recasts and builder.next_step(node.op) is None:
        return builder.keep(node, inputs)
    mark = len(builder.nodes)
    try:
        return builder.emit(node.op, inputs, node.attrs, len(node.outputs))
    except ConversionError as error:
        del builder.nodes[mark:]
        refused = replace(node, domain=REFUSED + error.reason)
        return builder.keep(refused, inputs)


__all__ = ["Recasting", "recast", "recasts", "spelled_out"]
