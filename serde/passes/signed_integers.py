"""uint8 between a quantization and its dequantizations, as int8."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from serde.ir import arrays
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.spec.traits import ARRANGES

QMAX, MIDDLE = 127.0, 128
MOVING = ARRANGES | {"Concat", "MaxPool"}  # which keep the order of numbers


def make_signed(graph: Graph) -> Graph:
    """Return ``graph`` with int8 of zero point 0 where uint8 stand for floats by constant scales.

    uint8 of zero point 128 are the same numbers. Of zero point 0 they are the same range in half as
    many steps. What is computed with uint8 otherwise stays.
    """
    zeros = _convertible(graph)
    signed = {v: Value(v.name, DType.INT8, v.shape) for v in zeros}
    if not signed:
        return graph
    return replace(graph, nodes=tuple(_convert(n, zeros, signed) for n in graph.nodes))


def _convertible(graph: Graph) -> dict[Value, int]:
    """The uint8 values that can be int8, with their zero points."""
    readers = defaultdict(list)
    for node in graph.all_nodes():
        for v in node.inputs:
            if v is not None:
                readers[v].append(node)
    zeros: dict[Value, int] = {}
    for node in graph.nodes:
        zero = _zero_point(node) if node.op == "QuantizeLinear" else None
        if node.op in MOVING and not node.domain and len(node.outputs) == 1:
            points = {zeros.get(v) for v in _bytes(node)}
            zero = points.pop() if len(points) == 1 else None
        if zero is not None and node.outputs[0].dtype is DType.UINT8:
            zeros[node.outputs[0]] = zero
    while True:
        wrong = {v for v, zero in zeros.items() if v in graph.outputs
                 or not all(_takes(n, v, zero, zeros) for n in readers[v])}  # fmt: skip
        moved = (n for n in graph.nodes if n.op in MOVING and n.outputs[0] in zeros)
        wrong |= {n.outputs[0] for n in moved if not all(v in zeros for v in _bytes(n))}
        if not wrong:
            return zeros
        zeros = {v: zero for v, zero in zeros.items() if v not in wrong}


def _bytes(node: Node) -> list[Value]:
    return [v for v in node.inputs if v is not None and v.dtype is DType.UINT8]


def _takes(node: Node, value: Value, zero: int, zeros: dict[Value, int]) -> bool:
    """Whether a reader of uint8 takes them as int8 as well."""
    if node.op == "DequantizeLinear" and not node.domain:
        return node.inputs[0] is value and _zero_point(node) == zero
    return node.op in MOVING and not node.domain and node.outputs[0] in zeros


def _zero_point(node: Node) -> int | None:
    """The zero point, 0 or 128, of a node with a constant scale of uint8; else None."""
    scale, zero = (*node.inputs, None)[1:3]
    if node.domain or scale is None or scale.tensor is None or node.attrs.get("block_size"):
        return None
    if zero is None:
        return 0 if node.op == "DequantizeLinear" or node.outputs[0].dtype is DType.UINT8 else None
    if zero.tensor is None or zero.dtype is not DType.UINT8:
        return None
    points = set(zero.array().ravel().tolist())
    return points.pop() if len(points) == 1 and points <= {0, MIDDLE} else None


def _convert(node: Node, zeros: dict[Value, int], signed: dict[Value, Value]) -> Node:
    if node.outputs and node.outputs[0] in signed:
        outputs: tuple[Value, ...] = (signed[node.outputs[0]],)
        if node.op == "QuantizeLinear":
            inputs = (node.inputs[0], *_parameters(node, zeros[node.outputs[0]]))
            attrs = {n: v for n, v in node.attrs.items() if n != "output_dtype"}
            return replace(node, inputs=inputs, outputs=outputs, attrs=attrs)
        return replace(node, inputs=tuple([v and signed.get(v, v) for v in node.inputs]),
                       outputs=outputs)  # fmt: skip
    q = node.inputs[0] if node.inputs else None
    if q is None or q not in signed:
        return node
    return replace(node, inputs=(signed[q], *_parameters(node, zeros[q])))


def _parameters(node: Node, zero: int) -> tuple[Value, Value]:
    """The scale and the zero point of int8."""
    scale = node.inputs[1]
    assert scale is not None
    name, shape = f"{node.name or node.outputs[0].name}/zero_point", scale.static_shape
    zeros = Value(name, DType.INT8, shape, Tensor.of(arrays.zeros(shape, np.int8)))
    if zero == MIDDLE:
        return scale, zeros
    wider = np.asarray(scale.array() * np.float32(255 / QMAX), scale.type.numpy)
    return Value(f"{name}/scale", scale.dtype, shape, Tensor.of(wider)), zeros
