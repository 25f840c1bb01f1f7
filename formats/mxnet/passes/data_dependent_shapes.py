"""Tensors of data-dependent length, for MXNet's executor (``Symbol.bind``, ``Module``).

Once an operator of a graph finds how long its result is, the executor knows the shapes of variables
and of what comes of such operators, and refuses to compute with both that and any other result.
`propagate_dynamic` routes such results through a data-dependent operator too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value

from ..ops.dynamic_shapes import FINDS

# Ones for the rows of a tensor.
MASK: tuple[tuple[str, dict[str, object]], ...] = (
    ("Cast", {"dtype": "float32"}), ("_contrib_arange_like", {"axis": 0}), ("ones_like", {}),
)  # fmt: skip


def propagate_dynamic(graph: Graph) -> Graph:
    """The graph of MXNet's operators, what is computed with a found tensor being found as well."""
    if not any(node.op in FINDS for node in graph.nodes):
        return graph
    names = Names()
    names.reserved.update(v.name for node in graph.nodes for v in node.outputs)
    dynamic: set[Value] = set()
    computed: set[Value] = set()
    kept: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op not in FINDS and any(v in dynamic for v in node.inputs):
            for value in node.inputs:
                if value in computed and value not in dynamic and value not in kept:
                    nodes += _keep_all_rows(value, names)
                    kept[value] = nodes[-1].outputs[0]
            inputs = tuple(v if v in dynamic or v is None else kept.get(v, v) for v in node.inputs)
            node = replace(node, inputs=inputs)
            dynamic.update(node.outputs)
        elif node.op in FINDS:
            dynamic.update(node.outputs)
        computed.update(node.outputs)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _keep_all_rows(value: Value, names: Names) -> Iterator[Node]:
    """All rows of a tensor, as a mask of ones keeps them."""
    mask = value
    for op, attrs in MASK:
        yield (node := _node(op, names, mask, **attrs))
        (mask,) = node.outputs
    yield _node("_contrib_boolean_mask", names, value, mask)


def _node(op: str, names: Names, *inputs: Value, **attrs: Any) -> Node:
    name = names.fresh(f"{inputs[0].name}/found")
    return Node(op, inputs, (Value(name, inputs[0].dtype),), attrs, "mxnet", name)
