"""Constants named after the layer and the operand that they are for."""

from __future__ import annotations

import re
from dataclasses import replace

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_values
from serde.spec import schema

GENERATED = re.compile(r"(axes|const|ones|picks|shape|steps|value)(_\d+)*")


def name_constants(graph: Graph) -> Graph:
    """Return ``graph`` with constants that rules have made named ``layer/operand``.

    The operand is called as the operator's schema calls it: ``pool0/axes``. A constant of several
    nodes is named after the first. Names of the source stay.
    """
    unnamed = (v for v in graph.constants() if not v.name_is_original)
    generated = {v for v in unnamed if GENERATED.fullmatch(v.name)}.difference(graph.outputs)
    if not generated:
        return graph
    names = Names()
    names.used.update(v.name for v in graph.all_values() if v not in generated)
    renamed: dict[Value, Value] = {}
    for node in graph.ordered_nodes():
        for index, value in enumerate(node.inputs):
            if value in generated and value not in renamed:
                name = names.fresh(f"{_layer(node)}/{_operand(node, index, graph.opset)}")
                renamed[value] = replace(value, name=name)
    return replace_values(graph, renamed)


def name_constants_apart(graph: Graph) -> Graph:
    """Return ``graph`` with a name of its own for each constant; the first of a name keeps it."""
    names, first = Names(), {v.name: v for v in reversed(list(graph.constants()))}
    names.used.update(v.name for v in graph.all_values())
    others = [v for v in graph.constants() if first[v.name] is not v]
    return replace_values(graph, {v: replace(v, name=names.fresh(v.name)) for v in others})


def _layer(node: Node) -> str:
    return node.name or (node.outputs[0].name if node.outputs else node.op)


def _operand(node: Node, index: int, opset: int) -> str:
    operator = schema.find(node.op, opset) if not node.domain else None
    return operator.input(index).name if operator is not None and operator.inputs else "constant"
