"""Small models of TensorFlow Lite for tests, written with the schema's table alone."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from serde.formats.tflite.encode import options_of
from serde.formats.tflite.io.schema import enums, unions
from serde.formats.tflite.io.write_flatbuffer import Layout, union_number
from serde.io.atomic_write import Sources
from serde.ir.graph import DType, Tensor

Array = np.ndarray[Any, Any]
OPTIONS = {
    "L2_NORMALIZATION": "L2NormOptions", "L2_POOL_2D": "Pool2DOptions", "SVDF": "SVDFOptions",
    "RNN": "RNNOptions", "LSTM": "LSTMOptions", "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions", "CONV_3D": "Conv3DOptions", "SPACE_TO_BATCH_ND":
    "SpaceToBatchNDOptions", "BATCH_TO_SPACE_ND": "BatchToSpaceNDOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "BidirectionalSequenceLSTMOptions",
    "BIDIRECTIONAL_SEQUENCE_RNN": "BidirectionalSequenceRNNOptions",
}  # fmt: skip


@dataclass
class Operand:
    """A tensor: an input with the array that is fed, or a constant, or a variable."""

    array: Array
    is_constant: bool = False
    scale: Sequence[float] = ()
    zero: Sequence[int] = ()
    axis: int = 0
    is_variable: bool = False
    signature: Sequence[int] = ()


@dataclass
class Result:
    """A tensor that is computed."""

    dtype: str = "float32"
    scale: Sequence[float] = ()
    zero: Sequence[int] = ()


@dataclass
class Case:
    """A model of one operator, and what it is fed with."""

    op: str
    operands: Sequence[Operand | None]
    results: Sequence[Result] = field(default_factory=lambda: [Result()])
    options: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    bodies: Sequence[Mapping[str, Any]] = ()

    def feeds(self) -> list[Array]:
        """The arrays of the inputs."""
        return [v.array for v in self.operands if v and not v.is_constant and not v.is_variable]


def name_options(op: str) -> str | None:
    """The table of an operator's options."""
    name = OPTIONS.get(op) or options_of(op)
    return name if name in unions()["BuiltinOptions"] else None


def describe_tensor(name: str, dtype: Any, operand: Operand | Result) -> dict[str, Any]:
    """The table of a tensor."""
    entry: dict[str, Any] = {"name": name, "type": enums()["TensorType"][DType.of(dtype).name]}
    if len(operand.scale):
        zero = [*operand.zero] or [0] * len(operand.scale)
        entry["quantization"] = {"scale": [*operand.scale], "zero_point": zero}
    if isinstance(operand, Operand):
        entry |= {"shape": operand.array.shape, "has_rank": True}
        if operand.is_variable:
            entry["is_variable"] = True
        if operand.axis:
            entry["quantization"]["quantized_dimension"] = operand.axis
        if operand.signature:
            entry["shape_signature"] = [*operand.signature]
    return entry


def build(case: Case) -> dict[str, Any]:
    """The root table of a case's model."""
    tensors: list[dict[str, Any]] = []
    buffers: list[dict[str, Any]] = [{}]
    places, inputs = [], []
    for operand in case.operands:
        if operand is None:
            places.append(-1)
            continue
        entry = describe_tensor(f"x{len(tensors)}", operand.array.dtype, operand)
        if operand.is_constant and operand.array.size:
            entry["buffer"] = len(buffers)
            buffers.append({"data": Tensor.of(np.ascontiguousarray(operand.array))})
        elif not operand.is_constant and not operand.is_variable:
            inputs.append(len(tensors))
        places.append(len(tensors))
        tensors.append(entry)
    outputs = [len(tensors) + k for k in range(len(case.results))]
    tensors += [describe_tensor(f"y{k}", r.dtype, r) for k, r in enumerate(case.results)]
    code = enums()["BuiltinOperator"][case.op]
    operator: dict[str, Any] = {"inputs": places, "outputs": outputs}
    if (options := name_options(case.op)) is not None:
        operator["builtin_options"] = options, dict(case.options)
        operator["builtin_options_type"] = union_number("BuiltinOptions", options)
    graph = {"tensors": tensors, "operators": [operator], "inputs": inputs, "outputs": outputs}
    codes = [{"deprecated_builtin_code": min(code, 127), "builtin_code": code,
              "version": case.version}]  # fmt: skip
    return {
        "version": 3, "operator_codes": codes, "subgraphs": [graph, *case.bodies],
        "buffers": buffers,
    }  # fmt: skip


def write(model: Mapping[str, Any]) -> bytes:
    """The bytes of a model."""
    out = io.BytesIO()
    with Sources() as sources:
        Layout(b"TFL3", "Model", model).write(out, sources)
    return out.getvalue()
