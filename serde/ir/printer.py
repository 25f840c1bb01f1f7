"""A graph as text. The classes it prints are in ``serde.ir.graph``, which calls it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from serde.errors import escape_controls

SHORT = 8  # constants up to this many elements are printed in place


def print_graph(graph: Any, indent: str = "") -> str:
    """Print ``graph``: one node a line, every value with its type."""
    inputs = ", ".join(map(show_value, graph.inputs))
    lines = [escape_controls(f"{indent}graph {graph.name}({inputs}):")]
    for node in graph.nodes:
        lines += _print_node(node, indent + "  ")
    lines.append(escape_controls(f"{indent}  return {', '.join(map(_operand, graph.outputs))}"))
    lines += [print_graph(f.body, indent) for f in graph.functions]
    return "\n".join(lines)


def list_first(texts: Sequence[str], most: int) -> str:
    """The first of several texts, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def show_value(value: Any) -> str:
    """``%name: float32[N,3]``, containers around it outermost first."""
    dims = (
        "?" if value.shape is None else ",".join("?" if d is None else str(d) for d in value.shape)
    )
    text = f"{value.dtype.title if value.dtype else '?'}[{dims}]"
    for around in reversed(value.container):
        text = f"{around}({text})"
    return f"%{value.name}: {text}"


def _print_node(node: Any, indent: str) -> list[str]:
    outputs = ", ".join(map(show_value, node.outputs))
    op = f"{node.domain}.{node.op}" if node.domain else node.op
    operands = [*map(_operand, node.inputs), *_attributes(node.attrs)]
    lines = [escape_controls(f"{indent}{outputs} = {op}({', '.join(operands)})")]
    bodies = (v for _, v in sorted(node.attrs.items()) if _is_graph(v))
    lines += [print_graph(g, indent + "  ") for g in bodies]
    return lines


def _operand(value: Any) -> str:
    if value is None:
        return "_"
    if value.tensor is not None and math.prod(d or 1 for d in value.tensor.shape) <= SHORT:
        return str(value.tensor.load().tolist())
    return f"%{value.name}"


def _attributes(attrs: Mapping[str, Any]) -> list[str]:
    shown = []
    for name, value in sorted(attrs.items()):
        if _is_graph(value):
            value = f"<{value.name}>"
        elif hasattr(value, "load"):
            value = f"<{value.dtype.title}{list(value.shape)}>"
        elif isinstance(value, str):
            value = repr(value)
        elif isinstance(value, tuple):
            value = list(value)
        shown.append(f"{name}={value}")
    return shown


def _is_graph(value: Any) -> bool:
    return hasattr(value, "nodes")


# What a shell or a debugger shows of one object: a line, whatever it holds. Nothing is loaded.

MOST_ENDS, MOST_CHARACTERS = 4, 200


def describe_graph(graph: Any) -> str:
    """``<Graph 'net': 12 nodes, x: float32[N,3] -> y: float32[N]>``."""
    ends = (_list_ends(graph.inputs), _list_ends(graph.outputs))
    return _frame(f"Graph {graph.name!r}: {len(graph.nodes)} nodes, {' -> '.join(ends)}")


def describe_node(node: Any) -> str:
    """``<Node y: float32[N] = Gemm(x, w, b, transB=1)>``."""
    op = f"{node.domain}.{node.op}" if node.domain else node.op
    operands = ["_" if v is None else v.name for v in node.inputs]
    operands += _attributes(node.attrs)
    return _frame(f"Node {_list_ends(node.outputs)} = {op}({', '.join(operands)})")


def describe_value(value: Any) -> str:
    """``<Value x: float32[N,3]>``."""
    return _frame(f"Value {show_value(value)[1:]}{'' if value.tensor is None else ', constant'}")


def describe_tensor(tensor: Any) -> str:
    """``<Tensor float32[3,4]>``, and the file that its bytes lie in."""
    place = "" if tensor.where is None else f" in {tensor.where.path!r}"
    return _frame(f"Tensor {tensor.dtype.title}[{','.join(map(str, tensor.shape))}]{place}")


def _list_ends(values: Any) -> str:
    shown = [show_value(v)[1:] for v in values[:MOST_ENDS]]
    return ", ".join([*shown, *["…"] * (len(values) > MOST_ENDS)])


def _frame(text: str) -> str:
    short = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
    return f"<{escape_controls(short)}>"
