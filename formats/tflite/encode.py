"""Writes a graph of TensorFlow Lite's operators as a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from serde.io.atomic_write import Replacing, Sources
from serde.ir.graph import Graph, Node, Tensor, Value

from .io.schema import enums, unions
from .io.sources import ORIGIN, list_sources
from .io.write_flatbuffer import ALIGNMENT, LARGEST, Layout, union_number, write_tensor
from .target import BODIES, STATES, QuantizedValue
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
    "CONV_3D_TRANSPOSE": "Conv3DOptions", "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
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
        self.data: dict[Tensor, int] = {}  # the numbers of buffers
        self.codes: dict[tuple[int, int], int] = {}
        self.subgraphs: list[_Subgraph] = []
        self.main = self.subgraphs[self.add(graph)]
        self.metadata: list[dict[str, Any]] = []
        if text := list_sources(graph):
            tensor = Tensor.of(np.frombuffer(text.encode(), np.uint8))
            self.metadata.append({"name": ORIGIN, "buffer": number_buffer(tensor, self.data)})

    def add(self, graph: Graph) -> int:
        """The number of a subgraph."""
        number = len(self.subgraphs)
        self.subgraphs.append(_Subgraph(graph))
        self.subgraphs[number].fill(self)
        return number

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
        codes = [
            {"builtin_code": c, "deprecated_builtin_code": min(c, LAST_OLD_CODE), "version": v}
            for c, v in self.codes
        ]
        signature = {
            "inputs": self._name(self.graph.inputs), "outputs": self._name(self.graph.outputs),
            "signature_key": SIGNATURE, "subgraph_index": 0,
        }  # fmt: skip
        return {
            "version": VERSION, "operator_codes": codes, "description": "serde",
            "subgraphs": [subgraph.table() for subgraph in self.subgraphs],
            "buffers": [{}, *buffers], "signature_defs": [signature], "metadata": self.metadata,
        }  # fmt: skip

    def _name(self, values: tuple[Value, ...]) -> list[dict[str, Any]]:
        return [{"name": v.name, "tensor_index": self.main.numbers[v]} for v in values]


class _Subgraph:
    """The tables of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.numbers: dict[Value, int] = {}
        self.tensors: list[dict[str, Any]] = []
        self.operators: list[dict[str, Any]] = []

    def fill(self, model: _Model) -> None:
        """Enter tensors and operators; buffers and other subgraphs are the model's."""
        for value in self.graph.inputs:
            self.number(value, model)
        self.operators = [self.operator(node, model) for node in self.graph.nodes]
        for value in self.graph.outputs:
            self.number(value, model)

    def table(self) -> dict[str, Any]:
        """The table of the graph."""
        graph = self.graph
        return {
            "tensors": self.tensors, "operators": self.operators, "name": graph.name or "main",
            "inputs": [self.numbers[v] for v in graph.inputs],
            "outputs": [self.numbers[v] for v in graph.outputs],
        }  # fmt: skip

    def number(self, value: Value | None, model: _Model) -> int:
        """The number of a tensor; -1 for an operand that is left out."""
        if value is None:
            return -1
        if value not in self.numbers:
            self.numbers[value] = len(self.tensors)
            self.tensors.append(make_tensor(value, model.data))
        return self.numbers[value]

    def operator(self, node: Node, model: _Model) -> dict[str, Any]:
        code = enums()["BuiltinOperator"][node.op]
        key = code, find_version(node)
        entry: dict[str, Any] = {
            "opcode_index": model.codes.setdefault(key, len(model.codes)),
            "inputs": [self.number(v, model) for v in node.inputs],
            "outputs": [self.number(v, model) for v in node.outputs],
        }
        for at in STATES.get(node.op, ()):
            self.tensors[entry["inputs"][at]]["is_variable"] = True
        options = options_of(node.op)
        if options is not None:
            fields = [
                (BODIES[name], model.add(value)) if isinstance(value, Graph) else (name, value)
                for name, value in node.attrs.items()
            ]
            entry["builtin_options"] = options, dict(fields)
            entry["builtin_options_type"] = union_number("BuiltinOptions", options)
        return entry


def make_tensor(value: Value, buffers: dict[Tensor, int]) -> dict[str, Any]:
    """The table of a tensor; what a constant has is one of the model's buffers."""
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
        form = value.scales
        entry["quantization"] = {
            "scale": form.scale.tolist(), "zero_point": form.zero.tolist(),
            "quantized_dimension": form.axis,
        }  # fmt: skip
    if value.tensor is not None:
        entry["buffer"] = number_buffer(value.tensor, buffers)
    return entry


def number_buffer(tensor: Tensor, buffers: dict[Tensor, int]) -> int:
    """The number of the buffer that holds a tensor's bytes."""
    return buffers.setdefault(tensor, len(buffers) + 1)


def options_of(op: str) -> str | None:
    """The table of an operator's options, if it has one."""
    name = OPTIONS.get(op) or "".join(p.capitalize() for p in op.split("_")) + "Options"
    return name if name in unions()["BuiltinOptions"] else None
