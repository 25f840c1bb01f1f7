"""Which layers of floats become integers again.

What is off by the last bit of a float may lie on the other side of a half, and be the next integer.
Rules that can add up in the order in which MXNet does declare ``requantized``, and are told.
"""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph, Value
from serde.rewrite.rules import RuleTable

SAID = "requantized"
INTO_INTEGERS = ("_contrib_quantize", "_contrib_quantize_v2", "_contrib_quantize_asym")


def told_requantized(graph: Graph, table: RuleTable) -> Graph:
    """``graph``, in which each layer that integers are made of says so where its rule asks."""
    becoming: set[Value] = set()
    told = []
    for node in reversed(graph.nodes):
        if node.op in INTO_INTEGERS or not becoming.isdisjoint(node.outputs):
            becoming.update(v for v in node.inputs if v is not None)
            rule = table.rules.get(node.op)
            if rule is not None and SAID in rule.attributes:
                node = replace(node, attrs={**node.attrs, SAID: True})
        told.append(node)
    return replace(graph, nodes=tuple(reversed(told)))
