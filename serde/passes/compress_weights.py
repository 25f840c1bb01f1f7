"""Weights in fewer bits, from which the graph makes float32 again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.builder import Names
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.passes.half_precision import cast, halve_constant
from serde.passes.name_constants import name_constants_apart

Array = np.ndarray[Any, Any]
KINDS = {"fp16": DType.FLOAT16, "bf16": DType.BFLOAT16, "int8": DType.INT8}
SMALLEST = float(np.finfo(np.float32).tiny)  # of scales
LEAST = 4096  # elements of a weight that is worth it
# Operators, their operands that are weights, and the axis of each that channels lie along.
WEIGHTS: Mapping[str, Mapping[int, int]] = {
    "Conv": {1: 0}, "ConvTranspose": {1: 1}, "Gather": {0: 0}, "Gemm": {0: 0, 1: 1},
    "GRU": {1: 1, 2: 1}, "LSTM": {1: 1, 2: 1}, "MatMul": {0: -2, 1: -1}, "RNN": {1: 1, 2: 1},
}  # fmt: skip


def compress_weights(graph: Graph, kind: str) -> Graph:
    """Return ``graph`` with its large float32 weights as ``fp16``, ``bf16`` or ``int8``.

    Weights are the operands in ``WEIGHTS``, in subgraphs too: other constants may be places, or
    tables of numbers that are compared. ``int8`` is symmetric, with a scale for each channel of the
    result. Arithmetic stays in float32. Where there is no such weight, a note says so.
    """
    compressor = _Compressor(graph, kind)
    nodes: list[Node] = []
    for node in graph.nodes:
        converted = compressor.convert_node(node)
        nodes += [*compressor.nodes, converted]
        compressor.nodes.clear()
    if not compressor.weights:
        note = (
            f"weights: none became {kind}: no {', '.join(sorted(WEIGHTS))} reads {LEAST:,} or more"
        )
        return replace(graph, notes=(*graph.notes, f"{note} constant float32"))
    return name_constants_apart(replace(graph, nodes=tuple(nodes)))


class _Compressor:
    """The weights so far, by their float32 and axis, and the ``nodes`` that make them again.

    These belong before the node of the main graph that reads them first, itself or in a subgraph:
    ONNX Runtime's optimizers look for the int8 of a product in the graph that the product is in.
    """

    def __init__(self, graph: Graph, kind: str) -> None:
        self.kind, self.nodes = kind, list[Node]()
        self.weights: dict[tuple[Value, int], Value] = {}
        self.names = Names()
        self.names.used.update(v.name for v in graph.all_values())

    def convert_node(self, node: Node) -> Node:
        """A node that reads the weights, in its subgraphs too."""
        bodies = {
            name: replace(body, nodes=tuple(map(self.convert_node, body.nodes)))
            for name, body in node.attrs.items() if isinstance(body, Graph)
        }  # fmt: skip
        inputs = tuple(self.restore(node, at, value) for at, value in enumerate(node.inputs))
        if not bodies and inputs == node.inputs:
            return node
        return replace(node, inputs=inputs, attrs={**node.attrs, **bodies})

    def restore(self, node: Node, at: int, value: Value | None) -> Value | None:
        """What stands for an operand."""
        axis = _find_axis(node, at, value) if value is not None else None
        if value is None or axis is None:
            return value
        key = (value, axis if self.kind == "int8" else 0)
        if key not in self.weights:
            self.nodes.append(_restore(value, axis, self.kind, self.names))
            self.weights[key] = self.nodes[-1].outputs[0]
        return self.weights[key]


def _find_axis(node: Node, at: int, value: Value) -> int | None:
    """The axis of a large weight's channels; None where an operand is none."""
    axis = None if node.domain else WEIGHTS.get(node.op, {}).get(at)
    tensor = value.tensor if value.dtype is DType.FLOAT32 else None
    if axis is None or tensor is None or value.rank < 2 or tensor.size < LEAST:
        return None
    if node.op == "ConvTranspose" and node.attrs.get("group", 1) != 1:
        return 0
    is_transposed = node.op == "Gemm" and node.attrs.get("transA" if at == 0 else "transB")
    return 1 - axis if is_transposed else axis % value.rank


def _restore(value: Value, axis: int, kind: str, names: Names) -> Node:
    """The node that makes a weight again."""
    y = Value(names.fresh(f"{value.name}/{kind}"), DType.FLOAT32, value.shape)
    dtype = KINDS[kind]
    if kind == "fp16":
        return cast(halve_constant(value), y)
    if kind == "bf16":
        return cast(_retype(value, dtype, lambda w: w.astype(dtype.numpy)), y)
    rest = tuple(a for a in range(value.rank) if a != axis)

    def load_scale() -> Array:
        largest = np.abs(value.array().astype(np.float64)).max(rest)
        if not np.isfinite(largest).all():
            raise ConversionError(
                f"the weight {value.name!r} has NaN or infinities, which int8 cannot hold: replace "
                "them (--edits), or give --weights fp16"
            )
        return np.where(largest > 0, np.maximum(largest / 127, SMALLEST), 1).astype(np.float32)

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
