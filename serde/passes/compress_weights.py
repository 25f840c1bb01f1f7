"""Weights in fewer bits, from which the graph makes float32 again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.passes.half_precision import cast, halve_constant

Array = np.ndarray[Any, Any]
KINDS = {"fp16": DType.FLOAT16, "bf16": DType.BFLOAT16, "int8": DType.INT8}
LEAST = 4096  # elements of a weight that is worth it
# Operators, the operand that is the weight, and what tells the axis of its channels.
WEIGHTED = {"Conv": 1, "ConvTranspose": 1, "Gather": 0, "Gemm": 1, "MatMul": 1}


def compress_weights(graph: Graph, kind: str) -> Graph:
    """Return ``graph`` with its large float32 weights as ``fp16``, ``bf16`` or ``int8``.

    ``int8`` is for the weights of ``WEIGHTED``: symmetric, with a scale for each channel of the
    result. Arithmetic stays in float32. Subgraphs are left as they are.
    """
    weights: dict[tuple[Value, int], Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = list(node.inputs)
        for at, value in enumerate(inputs):
            axis = _axis_of(node, at) if kind == "int8" else 0
            if value is None or axis is None or not _is_large(value):
                continue
            key = (value, axis % value.rank)
            if key not in weights:
                nodes.append(_restore(value, axis % value.rank, kind))
                weights[key] = nodes[-1].outputs[0]
            inputs[at] = weights[key]
        nodes.append(node if inputs == list(node.inputs) else replace(node, inputs=tuple(inputs)))
    return replace(graph, nodes=tuple(nodes)) if weights else graph


def _is_large(value: Value) -> bool:
    held = value.tensor is not None and value.dtype is DType.FLOAT32
    return held and value.tensor is not None and value.tensor.size >= LEAST


def _axis_of(node: Node, at: int) -> int | None:
    """The axis of a weight's channels; None where an operand is no weight."""
    if node.domain or WEIGHTED.get(node.op) != at:
        return None
    if node.op in ("Conv", "Gather"):
        return 0
    if node.op == "ConvTranspose":
        return 1 if node.attrs.get("group", 1) == 1 else 0
    return 0 if node.op == "Gemm" and node.attrs.get("transB") else -1


def _restore(value: Value, axis: int, kind: str) -> Node:
    """The node that makes a weight again."""
    y = Value(f"{value.name}/{kind}", DType.FLOAT32, value.shape)
    dtype = KINDS[kind]
    if kind == "fp16":
        return cast(halve_constant(value), y)
    if kind == "bf16":
        return cast(_retype(value, dtype, lambda w: w.astype(dtype.numpy)), y)
    rest = tuple(a for a in range(value.rank) if a != axis)

    def load_scale() -> Array:
        largest = np.abs(value.array().astype(np.float64)).max(rest)
        return np.where(largest > 0, largest / 127, 1).astype(np.float32)

    def round_to_int8(w: Array) -> Array:
        steps = np.expand_dims(load_scale().astype(np.float64), rest)
        return np.clip(np.rint(w / steps), -127, 127).astype(np.int8)

    shape = (value.static_shape[axis],)
    scale = Value(
        f"{value.name}/scale", DType.FLOAT32, shape, Tensor(DType.FLOAT32, shape, load_scale)
    )
    attrs = {"axis": axis, "block_size": 0, "output_dtype": 0}
    operands = (_retype(value, dtype, round_to_int8), scale)
    return Node("DequantizeLinear", operands, (y,), attrs, "", y.name)


def _retype(value: Value, dtype: DType, change: Any) -> Value:
    tensor = Tensor(dtype, value.static_shape, lambda: change(value.array()))
    return replace(value, dtype=dtype, tensor=tensor)
