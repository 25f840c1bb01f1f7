"""Which layers of floats become integers again.

What is off by the last bit of a float may lie on the other side of a half, and be the next integer.
Rules that can add up in the order in which MXNet does take a hint ``requantized``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serde.ir.graph import Graph, Value
from serde.rewrite.rules import RuleTable

REQUANTIZED = "requantized"
INTO_INTEGERS = ("_contrib_quantize", "_contrib_quantize_v2", "_contrib_quantize_asym")


def requantized_hints(graph: Graph, table: RuleTable) -> dict[Value, Mapping[str, Any]]:
    """A hint for each layer of floats that integers are made of, where its rule takes it."""
    becoming: set[Value] = set()
    hints: dict[Value, Mapping[str, Any]] = {}
    for node in reversed(graph.nodes):
        if node.op in INTO_INTEGERS or not becoming.isdisjoint(node.outputs):
            becoming.update(v for v in node.inputs if v is not None)
            rule = table.rules.get(node.op)
            if rule is not None and REQUANTIZED in rule.hints:
                hints[node.outputs[0]] = {REQUANTIZED: True}
    return hints
