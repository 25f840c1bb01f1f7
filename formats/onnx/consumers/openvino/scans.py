"""Scans whose bodies read nothing around them: OpenVINO fails to load others."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_values
from serde.ir.values_read import captured_values

from ..used_names import used_names


def carry_captured_values(graph: Graph) -> Graph:
    """Return a graph in which what the body of a ``Scan`` reads around it is a state of it."""
    if not any(node.op == "Scan" for node in graph.all_nodes()):
        return graph
    return _carry_in(graph, used_names(graph))


def _carry_in(graph: Graph, names: Names) -> Graph:
    return replace(graph, nodes=tuple(_carry(node, names) for node in graph.nodes))


def _carry(node: Node, names: Names) -> Node:
    bodies = {n: _carry_in(a, names) for n, a in node.attrs.items() if isinstance(a, Graph)}
    node = replace(node, attrs={**node.attrs, **bodies}) if bodies else node
    captured = dict.fromkeys(captured_values(bodies["body"])) if node.op == "Scan" else {}
    if not captured:
        return node

    def rename(what: str) -> dict[Value, Value]:
        return {v: replace(v, name=names.fresh(f"{v.name}/{what}")) for v in captured}

    states, kept, last = rename("state"), rename("kept"), rename("last")
    first = len(node.inputs) - int(str(node.attrs["num_scan_inputs"]))
    body = replace_values(bodies["body"], states)
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
