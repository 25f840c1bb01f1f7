"""The builder that meets operators a target lacks with rules in the IR's own operators.

A rule of such a table is like a rule of ``serde/version_converter/adapters``: a function from a
builder of the IR's operators, the operands and the attributes to what the node becomes. None leaves
the node as it is, for the target's own rule of its name.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from serde.decompositions.onnx_ml import DOMAIN, learned
from serde.errors import REFUSED, ConversionError
from serde.ir.builder import Builder, Operand
from serde.ir.graph import IR_OPSET, Graph, Node, Value
from serde.legalize.convert import Stepping, lower_to
from serde.rewrite.rules import RuleTable
from serde.spec import schema
from serde.version_converter.adapters import below


class Recasting(Stepping):
    """Emits operators of the IR as those a target has, by the rules of ``table``."""

    table: ClassVar[RuleTable]
    loops: ClassVar[bool] = False  # whether the target turns as often as data says

    def _settle(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        rule = self.table.rules.get(op)
        if rule is None:
            return super()._settle(op, inputs, attrs, outputs)
        made = super()._settle(op, inputs, attrs, outputs)
        first = made[0] if isinstance(made, tuple) else made
        node = self.made(first)
        if node is None or not self.nodes or self.nodes[-1] is not node or node.op != op:
            return made  # folded, simplified, or recast on the way
        self.nodes.pop()
        bound = self.table.bind(rule, op, node.attrs)
        if "outputs" in rule.attributes:
            bound["outputs"] = outputs
        became = rule.function(self, *node.inputs, **bound)
        if became is None:
            self.nodes.append(node)
            return made
        if outputs == 1 and isinstance(became, tuple):
            became = became[0]
        return _typed(became, made)

    def stays(self, node: Node, inputs: Sequence[Value | None]) -> bool:
        """Whether the target takes a node of an operator without a rule as it is."""
        return True

    def as_is(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Emit an operator past the rule of its name, for that rule."""
        return super()._settle(op, inputs, attrs, outputs)


def _typed(became: Any, made: Any) -> Any:
    """What a node became, with what is known of the type of the node's own outputs."""
    pairs = zip(became, made, strict=False) if isinstance(made, tuple) else [(became, made)]
    for new, old in pairs:
        if new is not None and new.tensor is None:
            new.dtype = new.dtype or old.dtype
            closer = new.shape is None or (old.shape is not None and None in new.shape)
            new.shape = old.shape if closer else new.shape
    return became


def recasting_table(name: str) -> RuleTable:
    """An empty table of such rules, with the standard's own defaults of attributes."""
    return RuleTable(name, defaults=lambda op: schema.operator(op).defaults)


def recast(graph: Graph, kind: type[Recasting], has: Container[str]) -> Graph:
    """Rewrite an IR graph into one whose operators, but those without any way, a target has.

    ``has`` are those it has a rule or a name for. A node no way was found for stays, in a domain
    that begins with ``REFUSED`` and says why.
    """
    if graph.functions:
        graph = lower_to(graph, IR_OPSET, keep_functions=False)
    newer = {op for v, t in below.items() for op in t.rules if schema.first_version(op) == v}
    lacking = frozenset(op for op in newer if op not in has and op not in kind.table)
    builder = kind(graph.name, IR_OPSET, IR_OPSET, spelled_out=lacking)
    return RuleTable(kind.table.name, fallback=_recast_node).rewrite(graph, builder)


def _recast_node(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    assert isinstance(builder, Recasting)
    is_learned = node.domain == DOMAIN and node.op in learned
    fits = not node.domain and node.op not in builder.table and builder.next_step(node.op) is None
    unchanged = fits and not _untyped(node) and builder.stays(node, inputs)
    if unchanged or (node.domain and not is_learned):
        return builder.keep(node, inputs)
    mark = len(builder.nodes)
    try:
        if is_learned:
            return learned.apply(node, builder, inputs)
        return builder.emit(node.op, inputs, node.attrs, len(node.outputs))
    except ConversionError as error:
        del builder.nodes[mark:]
        refused = replace(node, op=node.qualified_op, domain=REFUSED + error.reason)
        return builder.keep(refused, inputs)


def _untyped(node: Node) -> bool:
    """Whether types can be told of it now: it reads what comes of another domain's operators."""
    untold = any(v.name and (v.dtype is None or v.shape is None) for v in node.outputs)
    return untold and not any(True for _ in node.graphs())


def refusal(node: Node) -> ConversionError | None:
    """Why a node was left as it was, if it could not be recast."""
    if not node.domain.startswith(REFUSED):
        return None
    return ConversionError(node.domain.removeprefix(REFUSED))
