"""A model of quantised numbers as one of floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_inputs

MOST_STEPS = 16  # nodes that are followed back
NOT_NEGATIVE = frozenset({"Abs", "Exp", "HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus"})
PASSING = frozenset(
    "AveragePool Dropout Expand Flatten GlobalAveragePool GlobalMaxPool Identity MaxPool Reshape "
    "Slice Split Squeeze Transpose Unsqueeze".split()
)


def dequantize(graph: Graph) -> Graph:
    """Return ``graph`` without the pairs that quantise a tensor and take it back.

    Weights that are held as integers become floats. Numbers are no longer rounded, nor cut off at
    the ends of their ranges, unless 0 is an end: quantizers leave out a Relu before such a range,
    and it stays as a Clip where numbers may be negative. What is computed with integers between
    the pairs stays as it is. Outputs keep their names.
    """
    makers = {v: node for node in graph.nodes for v in node.outputs}
    instead: dict[Value, Value] = {}
    named = set(graph.outputs)
    kept: list[Node] = []
    for node in graph.nodes:
        if instead:
            node = replace_inputs(node, instead)
            makers.update((v, node) for v in node.outputs)
        value = _float(node, makers, instead) if node.op == "DequantizeLinear" else None
        if value is not None and not node.domain and (bounds := _find_bounds(node, makers, value)):
            clipped = replace(node.outputs[0], name=f"{node.outputs[0].name}/Clip")
            kept.append(Node("Clip", (value, *bounds), (clipped,), {}, "", node.name, node.sources))
            makers[clipped], value = kept[-1], clipped
        if value is None or node.domain:
            kept.append(node)
        elif named.isdisjoint(node.outputs):
            instead[node.outputs[0]] = value
        else:
            kept.append(Node("Identity", (value,), node.outputs, {}, "", node.name, node.sources))
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


def _find_bounds(
    node: Node, makers: dict[Value, Node], x: Value
) -> tuple[Value | None, Value | None] | None:
    """The ends of a range of which one is 0, where ``x`` may lie beyond it."""
    q, scale, *rest = node.inputs
    zero = rest[0] if rest else None
    if q is None or q.dtype is None or q.tensor is not None or scale is None:
        return None
    if (zero is not None and zero.tensor is None) or q.dtype.bits > 16 or x.dtype is None:
        return None
    limits = np.iinfo(q.dtype.numpy)
    middle = np.unique(0 if zero is None else zero.array().astype(np.int64))
    if middle.size != 1 or middle[0] not in (limits.min, limits.max):
        return None
    if middle[0] == limits.min and _is_not_negative(x, makers):
        return None
    steps = scale.array() if scale.tensor is not None else np.array([])
    ends = []
    for end, part in ((limits.min, "min"), (limits.max, "max")):
        number = 0.0 if end == middle[0] else None
        if number is None and steps.size == 1:
            number = float((end - middle[0]) * steps.ravel()[0].astype(np.float64))
        held = None if number is None else np.asarray(number, x.dtype.numpy)
        name = f"{node.outputs[0].name}/{part}"
        ends.append(None if held is None else Value(name, x.dtype, (), Tensor.of(held)))
    return ends[0], ends[1]


def _is_not_negative(x: Value, makers: dict[Value, Node]) -> bool:
    """Whether no number of ``x`` can be less than 0."""
    for _ in range(MOST_STEPS):
        node = makers.get(x)
        if node is None or node.domain or not node.inputs or node.inputs[0] is None:
            return False
        if node.op in NOT_NEGATIVE:
            return True
        if node.op == "Clip":
            low = node.inputs[1] if len(node.inputs) > 1 else None
            return low is not None and low.tensor is not None and bool((low.array() >= 0).all())
        if node.op not in PASSING:
            return False
        x = node.inputs[0]
    return False


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
