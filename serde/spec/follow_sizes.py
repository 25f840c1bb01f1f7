"""Sizes followed through a graph by rules alone: much faster than to infer all types again.

Sizes that are not known are None here. A rule then leaves open what onnx would, but tells every
number that inference tells: where all nodes have a rule that takes their operands, none fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from serde.ir.dim_expr import evaluate
from serde.ir.graph import Graph, Node, Shape, Value
from serde.spec.static_shapes import SHAPES, are_possible, infer_conv, infer_pool, reshape

Rule = Callable[[Sequence[Any], Mapping[str, Any]], "Shape | None"]


def follow_sizes(graph: Graph, sizes: Mapping[str, int]) -> dict[Value, Shape] | None:
    """The shapes of all values with these sizes for names of the inputs'.

    None where rules do not tell all of them, or a node does not take its operands. ``graph`` is one
    of the IR, so that its nodes are right but for sizes.
    """
    shapes: dict[Value, Shape] = {}
    for v in graph.inputs:
        if v.shape is None or v.container:
            return None
        dims = [evaluate(d, sizes) if isinstance(d, str) else d for d in v.shape]
        shapes[v] = tuple([d if isinstance(d, int) else None for d in dims])
    for node in graph.nodes:
        shape = None if node.domain else _infer_result(node, shapes)
        if shape is None or len(node.outputs) != 1 or not are_possible(shape):
            return None
        shapes[node.outputs[0]] = shape
    return shapes


def _infer_result(node: Node, known: Mapping[Value, Shape]) -> Shape | None:
    operands: list[Any] = []
    types = set()
    for v in node.inputs:
        if v is None or v.container:
            return None
        shape = known.get(v) if v.tensor is None else v.shape
        if shape is None:
            return None
        operands.append(shape)
        types.add(v.dtype)
    if node.op == "Reshape":
        x, target = node.inputs
        is_constant = target is not None and target.tensor is not None and target.shape != ()
        if x is None or x.tensor is not None or not is_constant or target is None:
            return None
        return reshape(operands[0], target.array().tolist(), node.attrs.get("allowzero"))
    rule = OPEN.get(node.op) or SHAPES.get(node.op)
    return None if rule is None or len(types) != 1 else rule(operands, node.attrs)


def _broadcast(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    a, b = sorted(shapes, key=len, reverse=True)
    lead = len(a) - len(b)
    out = [_merge(x, y) for x, y in zip(a[lead:], b, strict=True)]
    return None if -1 in out else (*a[:lead], *out)


def _merge(a: int | None, b: int | None) -> int | None:
    """The size of two that are broadcast; -1 where these differ."""
    if a == b or b == 1:
        return a
    if a == 1 or a is None:
        return b
    return a if b is None else -1


def _flatten(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    (x,), axis = shapes, attrs.get("axis", 1)
    if not 0 <= axis <= len(x):
        return None
    parts = x[:axis], x[axis:]
    return tuple([None if None in part else math.prod(part) for part in parts])


def _concat(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    ranks, axis = {len(shape) for shape in shapes}, attrs.get("axis", -1)
    if len(ranks) != 1 or not 0 <= axis < max(ranks) or any(0 in shape for shape in shapes):
        return None
    out: list[int | None] = []
    for at, dims in enumerate(zip(*shapes, strict=True)):
        numbers = {d for d in dims if d is not None}
        if at == axis:
            out.append(None if None in dims else sum(dims))
        elif len(numbers) > 1:
            return None
        else:
            out.append(next(iter(numbers), None))
    return tuple(out)


def _gemm(shapes: Sequence[Any], attrs: Mapping[str, Any]) -> Shape | None:
    a, b, *bias = shapes
    if len(a) != 2 or len(b) != 2:
        return None
    m, k = (a[1], a[0]) if attrs.get("transA") else a
    j, n = (b[1], b[0]) if attrs.get("transB") else b
    fits = k is None or j is None or k == j
    return (m, n) if fits and all(c in ((n,), (1,), ()) for c in bias) else None


OPEN: dict[str, Rule] = {
    "Conv": partial(infer_conv, is_open=True), "Flatten": _flatten, "Concat": _concat,
    **dict.fromkeys(("AveragePool", "MaxPool"), partial(infer_pool, is_open=True)),
    **dict.fromkeys(("Add", "And", "Div", "Mul", "Or", "Sub", "Xor"), _broadcast), "Gemm": _gemm,
}  # fmt: skip
