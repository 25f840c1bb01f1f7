"""Writes a graph of TensorFlow Lite's operators as a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from serde.io.atomic_write import Replacing, Sources
from serde.ir.graph import Graph, Node, Tensor, Value

from .io.schema import enums, unions
from .io.write_flatbuffer import ALIGNMENT, LARGEST, Layout, union_number, write_tensor
from .target import QuantizedValue
from .versions import find_version

IDENTIFIER, VERSION, SIGNATURE = b"TFL3", 3, "serving_default"
LAST_OLD_CODE = 127  # the largest number that the older field of an operator's code holds
SPARE = 1 << 27  # bytes kept for what is not weights
# Options of operators that are not named after them.
OPTIONS = {
    "AVERAGE_POOL_2D": "Pool2DOptions", "MAX_POOL_2D": "Pool2DOptions", "PADV2": "PadV2Options",
    "CONCATENATION": "ConcatenationOptions", "MEAN": "ReducerOptions", "SUM": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions", "REDUCE_MIN": "ReducerOptions", "TOPK_V2": "TopKV2Options",
    "REDUCE_PROD": "ReducerOptions", "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions", "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions", "SELECT_V2": "SelectV2Options",
    "BATCH_MATMUL": "BatchMatMulOptions", "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions", "CONV_3D": "Conv3DOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
}  # fmt: skip


def encode(graph: Graph, path: str | os.PathLike[str]) -> list[str]:
    """Write a file at ``path``."""
    path = os.fspath(path)
    with Replacing(path) as files, files.open(path) as out, Sources() as sources:
        model = _Model(graph)
        layout, outside = model.lay_out()
        at = layout.write(out, sources)
        for place, tensor in outside:
            out.write(bytes(place - at))
            write_tensor(tensor, out, sources)
            at = place + tensor.nbytes
    return files.written


class _Model:
    """The tables of a file."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers: dict[Value, int] = {}
        self.tensors: list[dict[str, Any]] = []
        self.data: list[Tensor] = []
        self.codes: dict[tuple[int, int], int] = {}
        for value in graph.inputs:
            self.number(value)
        self.operators = [self.operator(node) for node in graph.nodes]
        self.outputs = [self.number(value) for value in graph.outputs]

    def number(self, value: Value | None) -> int:
        """The number of a tensor; -1 for an operand that is left out."""
        if value is None:
            return -1
        if value not in self.numbers:
            self.numbers[value] = len(self.tensors)
            self.tensors.append(self.tensor(value))
        return self.numbers[value]

    def tensor(self, value: Value) -> dict[str, Any]:
        shape = value.ranked_shape
        entry: dict[str, Any] = {
            "shape": [d if isinstance(d, int) else 1 for d in shape],
            "type": enums()["TensorType"][value.type.name],
            "name": value.name,
            "has_rank": True,
        }
        if not value.is_static:
            entry["shape_signature"] = [d if isinstance(d, int) else -1 for d in shape]
        if isinstance(value, QuantizedValue) and value.scales is not None:
            scale, zero, axis = value.scales
            entry["quantization"] = {
                "scale": scale, "zero_point": zero, "quantized_dimension": axis,
            }  # fmt: skip
        if value.tensor is not None:
            self.data.append(value.tensor)
            entry["buffer"] = len(self.data)
        return entry

    def operator(self, node: Node) -> dict[str, Any]:
        code = enums()["BuiltinOperator"][node.op]
        key = code, find_version(node)
        entry: dict[str, Any] = {
            "opcode_index": self.codes.setdefault(key, len(self.codes)),
            "inputs": [self.number(v) for v in node.inputs],
            "outputs": [self.number(v) for v in node.outputs],
        }
        options = options_of(node.op)
        if options is not None:
            entry["builtin_options"] = options, dict(node.attrs)
            entry["builtin_options_type"] = union_number("BuiltinOptions", options)
        return entry

    def lay_out(self) -> tuple[Layout, list[tuple[int, Tensor]]]:
        """The places of all parts, and the weights that lie behind them in a large file."""
        if sum(t.nbytes for t in self.data) < LARGEST - SPARE:
            buffers = [{"data": t} if t.nbytes else {} for t in self.data]
            return Layout(IDENTIFIER, "Model", self.model(buffers)), []
        end = Layout(
            IDENTIFIER, "Model", self.model([{"offset": 2, "size": 2}] * len(self.data))
        ).end
        outside = [*self._place_outside(end)]
        entries = [{"offset": at, "size": t.nbytes} for at, t in outside]
        return Layout(IDENTIFIER, "Model", self.model(entries)), outside

    def _place_outside(self, end: int) -> Iterator[tuple[int, Tensor]]:
        for tensor in self.data:
            end += -end % ALIGNMENT
            yield end, tensor
            end += tensor.nbytes

    def model(self, buffers: list[dict[str, Any]]) -> Mapping[str, Any]:
        """The root table."""
        graph = self.graph
        body = {
            "tensors": self.tensors, "operators": self.operators, "outputs": self.outputs,
            "inputs": [self.numbers[v] for v in graph.inputs], "name": graph.name or "main",
        }  # fmt: skip
        codes = [
            {"builtin_code": c, "deprecated_builtin_code": min(c, LAST_OLD_CODE), "version": v}
            for c, v in self.codes
        ]
        signature = {
            "inputs": self._name(graph.inputs), "outputs": self._name(graph.outputs),
            "signature_key": SIGNATURE, "subgraph_index": 0,
        }  # fmt: skip
        return {
            "version": VERSION, "operator_codes": codes, "subgraphs": [body],
            "description": "serde", "buffers": [{}, *buffers], "signature_defs": [signature],
        }  # fmt: skip

    def _name(self, values: tuple[Value, ...]) -> list[dict[str, Any]]:
        return [{"name": v.name, "tensor_index": self.numbers[v]} for v in values]


def options_of(op: str) -> str | None:
    """The table of an operator's options, if it has one."""
    name = OPTIONS.get(op) or "".join(p.capitalize() for p in op.split("_")) + "Options"
    return name if name in unions()["BuiltinOptions"] else None
