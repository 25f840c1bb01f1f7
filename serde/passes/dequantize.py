"""A model of quantised numbers as one of floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_inputs


def dequantize(graph: Graph) -> Graph:
    """Return ``graph`` without the pairs that quantise a tensor and take it back.

    Weights that are held as integers become floats. Numbers are no longer rounded, nor cut off at
    the ends of their ranges; what is computed with integers between the pairs stays as it is.
    Outputs keep their names.
    """
    makers = {v: node for node in graph.nodes for v in node.outputs}
    instead: dict[Value, Value] = {}
    named = set(graph.outputs)
    kept: list[Node] = []
    for node in graph.nodes:
        node = replace_inputs(node, instead) if instead else node
        found = _float(node, makers, instead) if node.op == "DequantizeLinear" else None
        if found is None or node.domain:
            kept.append(node)
        elif named.isdisjoint(node.outputs):
            instead[node.outputs[0]] = found
        else:
            kept.append(Node("Identity", (found,), node.outputs, {}, "", node.name, node.sources))
    return replace(graph, nodes=tuple(kept))


def _float(node: Node, makers: dict[Value, Node], instead: dict[Value, Value]) -> Value | None:
    """What a DequantizeLinear node gives, without it."""
    q, output = node.inputs[0], node.outputs[0]
    assert q is not None
    if q.tensor is not None:
        return _weight(node, output)
    maker = makers.get(q)
    if maker is None or maker.op != "QuantizeLinear" or maker.inputs[0] is None:
        return None
    x = instead.get(maker.inputs[0], maker.inputs[0])
    return x if x.dtype is output.dtype else None


def _weight(node: Node, output: Value) -> Value | None:
    """A constant's numbers, computed when they are written; None where their scale is computed."""
    q, scale, *rest = node.inputs
    zero = rest[0] if rest else None
    if q is None or scale is None or node.attrs.get("block_size"):
        return None
    assert output.dtype is not None
    tensor = dequantize_constant(q, scale, zero, node.attrs["axis"], output.dtype)
    return None if tensor is None else Value(output.name, output.dtype, tensor.shape, tensor)


def dequantize_constant(
    q: Value, scale: Value, zero: Value | None, axis: Any, dtype: DType
) -> Tensor | None:
    """The numbers of a constant, computed when they are written; None where one is no constant."""
    if any(v is not None and v.tensor is None for v in (q, scale, zero)):
        return None
    assert q.tensor is not None

    def load() -> np.ndarray[Any, Any]:
        numbers, steps = q.array().astype("float32"), _align_to_axis(scale.array(), q.rank, axis)
        middle = 0 if zero is None else _align_to_axis(zero.array().astype("float32"), q.rank, axis)
        return np.asarray((numbers - middle) * steps, dtype.numpy)

    return Tensor(dtype, q.tensor.shape, load)


def _align_to_axis(v: np.ndarray[Any, Any], rank: int, axis: Any) -> np.ndarray[Any, Any]:
    """Numbers along one axis of a tensor of ``rank``; a single one as it is."""
    if v.size == 1:
        return v.reshape(())
    return v.reshape([-1 if a == axis % rank else 1 for a in range(rank)])
