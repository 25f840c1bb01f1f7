"""Scans whose bodies read nothing around them: OpenVINO fails to load others."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value
from serde.ir.map_nodes import map_nodes
from serde.ir.replace_uses import replace_values
from serde.ir.values_read import captured_values

from ..used_names import used_names


def carry_captured_values(graph: Graph) -> Graph:
    """Return a graph in which what the body of a ``Scan`` reads around it is a state of it."""
    if not any(node.op == "Scan" for node in graph.all_nodes()):
        return graph
    names = used_names(graph)
    return map_nodes(graph, lambda node: _carry(node, names))


def _carry(node: Node, names: Names) -> Node:
    body = node.attrs["body"] if node.op == "Scan" and not node.domain else None
    captured = dict.fromkeys(captured_values(body)) if isinstance(body, Graph) else {}
    if not isinstance(body, Graph) or not captured:
        return node

    def rename(what: str) -> dict[Value, Value]:
        return {v: replace(v, name=names.fresh(f"{v.name}/{what}")) for v in captured}

    states, kept, last = rename("state"), rename("kept"), rename("last")
    first = len(node.inputs) - int(str(node.attrs["num_scan_inputs"]))
    body = replace_values(body, states)
    copies = (Node("Identity", (states[v],), (kept[v],), {}, "", kept[v].name) for v in captured)
    body = replace(
        body,
        inputs=(*body.inputs[:first], *states.values(), *body.inputs[first:]),
        nodes=(*body.nodes, *copies),
        outputs=(*body.outputs[:first], *kept.values(), *body.outputs[first:]),
    )
    return replace(
        node,
        inputs=(*node.inputs[:first], *captured, *node.inputs[first:]),
        outputs=(*node.outputs[:first], *last.values(), *node.outputs[first:]),
        attrs={**node.attrs, "body": body},
    )
