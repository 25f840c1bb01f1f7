"""Bytes between quantization and dequantization that OpenVINO computes wrongly or does not load.

Convolutions of what a Concat puts together have other numbers where it is int8. Products of
matrices do not load where what was quantized was put together along another axis than the last.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.ir import arrays
from serde.ir.builder import Names
from serde.ir.constants import is_constant, make_constant, shift_bytes
from serde.ir.graph import BYTES, DType, Graph, Node, Tensor, Value
from serde.passes.dce import drop_dead
from serde.rewrite.patterns import Neighbours

from ..used_names import used_names

FOLDED = frozenset({"Add", "BatchNormalization", "Mul", "Relu"})  # into the quantization
FARTHEST = 8  # of these behind a Concat
PRODUCTS = frozenset({"Gemm", "MatMul"})
LARGEST = np.finfo(np.float32).max


def retype_bytes(graph: Graph) -> Graph:
    """Return ``graph`` with uint8 for the int8 that a quantization makes.

    Each dequantization has the zero point that its type needs, other readers keep what they read.
    Products of matrices read what they did; of what was put together, behind a ``Clip`` that
    changes no number. Subgraphs stay as they are.
    """
    makers = {node.outputs[0]: node for node in graph.nodes if _makes_bytes(node)}
    if not makers:
        return graph
    near, names = Neighbours(graph), used_names(graph)
    retyped: dict[Value, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        q = node.inputs[0] if node.op == "DequantizeLinear" and not node.domain else None
        if q is None or q not in makers or not is_constant(node.inputs[1:]):
            nodes.append(node)
        elif any(n.op in PRODUCTS for n in near.readers.get(node.outputs[0], ())):
            nodes += _clip(node, names) if _is_of_concat(makers[q], near) else [node]
        elif q.dtype is DType.UINT8:
            nodes.append(node)
        else:
            if q not in retyped:
                retyped[q] = _quantize_to_uint8(makers[q], names)
                nodes.append(retyped[q])
            inputs = (retyped[q].outputs[0], node.inputs[1], _shift_zero(node, names))
            nodes.append(replace(node, inputs=inputs))
    return drop_dead(replace(graph, nodes=tuple(nodes)))


def _makes_bytes(node: Node) -> bool:
    """Whether a node quantizes to int8 or uint8, by a constant zero point."""
    is_plain = node.op == "QuantizeLinear" and not node.domain
    return is_plain and node.outputs[0].dtype in BYTES and is_constant(node.inputs[1:])


def _is_of_concat(node: Node, near: Neighbours) -> bool:
    """Whether a quantization is of a Concat along another axis than the last.

    Operators that OpenVINO makes part of the quantization may be between.
    """
    for _ in range(FARTHEST):
        makers = [near.maker(v, "Concat", *FOLDED) for v in node.inputs]
        first = next((maker for maker in makers if maker is not None), None)
        if first is None or first.op == "Concat":
            rank = len(first.outputs[0].shape or ()) if first is not None else 0
            return first is not None and first.attrs["axis"] not in (-1, rank - 1)
        node = first
    return False


def _clip(node: Node, names: Names) -> list[Node]:
    """A dequantization, and what it makes between the least and the largest finite numbers."""
    (y,) = node.outputs
    x = replace(y, name=names.fresh(f"{y.name}/finite"))
    ends = [
        make_constant(names.fresh(f"{y.name}/{part}"), Tensor.of(np.asarray(number, y.type.numpy)))
        for part, number in (("least", -LARGEST), ("most", LARGEST))
    ]
    clip = Node("Clip", (x, *ends), (y,), {}, "", names.fresh(f"{y.name}/Clip"), node.sources)
    return [replace(node, outputs=(x,)), clip]


def _quantize_to_uint8(node: Node, names: Names) -> Node:
    """The same quantization as one to int8."""
    q = node.outputs[0]
    result = Value(names.fresh(f"{q.name}/uint8"), DType.UINT8, q.shape)
    attrs = {n: v for n, v in node.attrs.items() if n != "output_dtype"}
    inputs = (*node.inputs[:2], _shift_zero(node, names))
    return replace(node, inputs=inputs, outputs=(result,), attrs=attrs)


def _shift_zero(node: Node, names: Names) -> Value:
    """The zero point of uint8 for that of int8, which is 0 where it is left out."""
    scale, zero = (*node.inputs, None)[1:3]
    assert scale is not None
    of_zeros = Tensor.of(arrays.zeros(scale.static_shape, np.int8))
    tensor = of_zeros if zero is None or zero.tensor is None else zero.tensor
    return make_constant(names.fresh(f"{node.outputs[0].name}/zero_point"), shift_bytes(tensor))
