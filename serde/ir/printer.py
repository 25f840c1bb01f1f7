"""The printed form of a graph, used by tests, docs and logs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from serde.ir.graph import Graph, Node, Tensor, Value

SHORT = 8  # constants up to this many elements are printed in place


def show(graph: Graph, indent: str = "") -> str:
    """Print ``graph``: one node a line, every value with its type."""
    inputs = ", ".join(map(typed, graph.inputs))
    lines = [f"{indent}graph {graph.name}({inputs}):"]
    for node in graph.nodes:
        lines += _node(node, indent + "  ")
    lines.append(f"{indent}  return {', '.join(map(_operand, graph.outputs))}")
    lines += [show(f.body, indent) for f in graph.functions]
    return "\n".join(lines)


def typed(value: Value) -> str:
    """``%name: float32[N,3]``, containers around it outermost first."""
    dims = (
        "?" if value.shape is None else ",".join("?" if d is None else str(d) for d in value.shape)
    )
    text = f"{value.dtype.value if value.dtype else '?'}[{dims}]"
    for around in reversed(value.wrap):
        text = f"{around}({text})"
    return f"%{value.name}: {text}"


def _node(node: Node, indent: str) -> list[str]:
    outputs = ", ".join(map(typed, node.outputs))
    op = f"{node.domain}.{node.op}" if node.domain else node.op
    operands = [*map(_operand, node.inputs), *_attributes(node.attrs)]
    lines = [f"{indent}{outputs} = {op}({', '.join(operands)})"]
    bodies = (v for _, v in sorted(node.attrs.items()) if isinstance(v, Graph))
    lines += [show(g, indent + "  ") for g in bodies]
    return lines


def _operand(value: Value | None) -> str:
    if value is None:
        return "_"
    if value.tensor is not None and math.prod(d or 1 for d in value.tensor.shape) <= SHORT:
        return str(value.tensor.load().tolist())
    return f"%{value.name}"


def _attributes(attrs: Mapping[str, Any]) -> list[str]:
    shown = []
    for name, value in sorted(attrs.items()):
        if isinstance(value, Graph):
            value = f"<{value.name}>"
        elif isinstance(value, Tensor):
            value = f"<{value.dtype.value}{list(value.shape)}>"
        elif isinstance(value, str):
            value = repr(value)
        elif isinstance(value, tuple):
            value = list(value)
        shown.append(f"{name}={value}")
    return shown
