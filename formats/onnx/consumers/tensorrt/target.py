"""What TensorRT accepts, by its documentation: it cannot be measured without a GPU.

``documented_operators.py`` names the release.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.decompositions.table import add_decompositions
from serde.ir.graph import DType, Node
from serde.legalize.target import Target
from serde.spec import schema

from . import legalizations
from .documented_operators import DOCUMENTED

OPSET = 17
MOST_CHOSEN = 3840  # elements that TopK can find
COORDINATES = "half_pixel pytorch_half_pixel tf_half_pixel_for_nn asymmetric align_corners".split()


def _types(text: str) -> frozenset[DType]:
    dtypes = {DType(np.dtype(t).name) for t in text.split(",")}
    return frozenset(dtypes | ({DType.FLOAT64} if DType.FLOAT32 in dtypes else set()))


def _constraints(op: str, types: str) -> dict[str, frozenset[DType]]:
    operands = schema.operator(op, OPSET).inputs
    if op in ("RandomNormal", "RandomUniform") or not operands:
        return {}
    return {operands[0].tie: _types(types)}


SUPPORTED = {op: _constraints(op, types) for types, ops in DOCUMENTED.items() for op in ops.split()}
SUPPORTED["QuantizeLinear"]["T2"] = frozenset({DType.INT8})


for _op in legalizations.MOVING:  # rewritten in floats
    tie = schema.operator(_op, OPSET).inputs[0].tie
    SUPPORTED[_op] = {tie: SUPPORTED[_op][tie] | {DType.INT8}}


def check_moved(node: Node) -> str | None:
    """Movement of elements: no int8."""
    is_quantized = any(v is not None and v.dtype is DType.INT8 for v in node.inputs)
    return f"TensorRT has no {node.op} of int8 elements" if is_quantized else None


def check_dilations(node: Node) -> str | None:
    """Pools: no dilations."""
    gaps: Any = node.attrs.get("dilations", ())
    return "TensorRT has no dilations of pools" if any(d != 1 for d in gaps) else None


def check_pooled_axes(node: Node) -> str | None:
    """Pools: of images and volumes."""
    kernel: Any = node.attrs["kernel_shape"]
    return None if len(kernel) in (2, 3) else "TensorRT pools images and volumes only"


def check_outputs(node: Node) -> str | None:
    """MaxPool: no indices. LayerNormalization: no statistics."""
    return f"TensorRT has the first output of {node.op} only" if len(node.outputs) > 1 else None


def check_resize(node: Node) -> str | None:
    """Resize: some coordinates, no cubic."""
    mode: Any = node.attrs.get("mode")
    how: Any = node.attrs.get("coordinate_transformation_mode")
    if mode not in ("nearest", "linear"):
        return f"TensorRT has no Resize of mode {mode}"
    return None if how in (None, *COORDINATES) else f"TensorRT has no Resize with {how}"


def check_top_k(node: Node) -> str | None:
    """TopK: sorted, and not too many."""
    k = node.inputs[1] if len(node.inputs) > 1 else None
    if not node.attrs.get("sorted", 1):
        return "TensorRT's TopK is sorted"
    is_known = k is not None and k.tensor is not None
    if is_known and k is not None and k.array().item() >= MOST_CHOSEN:
        return f"TensorRT's TopK finds less than {MOST_CHOSEN} elements"
    return None


def check_scatter(node: Node) -> str | None:
    """ScatterND: no reduction."""
    way: Any = node.attrs.get("reduction", "none")
    return None if way == "none" else f"TensorRT's ScatterND has no reduction={way}"


def check_lstm(node: Node) -> str | None:
    """LSTM: time first, forget gates of their own."""
    if node.attrs.get("input_forget") or node.attrs.get("layout"):
        return "TensorRT's LSTM has no input_forget and no layout=1"
    return None


TENSORRT = Target(
    name="tensorrt",
    opset=OPSET,
    supports=SUPPORTED,
    illegal={
        **{op: [check_moved] for op in legalizations.MOVING},
        "AveragePool": [check_pooled_axes, check_dilations],
        "MaxPool": [check_moved, check_pooled_axes, check_dilations, check_outputs],
        "LpPool": [check_dilations],
        "LayerNormalization": [check_outputs],
        "Resize": [check_resize],
        "TopK": [check_top_k],
        "ScatterND": [check_scatter],
        "LSTM": [check_lstm],
    },
    legalizations=add_decompositions(legalizations.legalize, SUPPORTED),
    sequences=False,
)
