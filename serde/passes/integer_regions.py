"""Linear layers between dequantizations and a quantization, computed of integers in floats.

A target without kernels of integers would round each weight times its scale, and each sum: results
halfway between two integers fall to either, by the order of the sum. Sums of integers are
exact in float32 below 2**24, in any order. They are multiplied once, as kernels of integers do
(ONNX Runtime's, XNNPACK's): by the float32 ``x_scale * w_scale / y_scale``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from serde.ir.graph import DType, Graph, Node, Value
from serde.rewrite.rules import RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.traits import RESHAPES

from .cse import merge_repeats
from .dce import drop_dead
from .regions import Quantization, Quantized, Region, find_region, find_regions

MOVES = RESHAPES | {"Transpose"}  # between a dequantization and a layer
# Linear layers, and how many operands count in steps.
LINEAR = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul"), 2),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum"), 1),
}
WIDEST = 16  # bits of integers that stand for real numbers
F32 = DType.FLOAT32
Array = np.ndarray[Any, Any]


class Step(NamedTuple):
    """What one step of the sums of a layer is in steps of its result, along its last axes."""

    factor: Array
    result: np.float32  # one step of the result as a real number


def compute_with_integers(graph: Graph) -> Graph:
    """Return ``graph`` with the sums of quantized layers as those of integers."""
    regions, ends = find_regions(graph), set()
    uses = graph.uses() if regions else {}
    for value, region in regions.items():
        between = [n for n in (region.layer, region.activation) if n is not None]
        if region.layer.op in LINEAR and all(uses[n.outputs[0]] == 1 for n in between):
            ends.add(value)
    if not ends:
        return graph

    def rewrite(g: Any, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        result = None
        if node.outputs and node.outputs[0] in ends:
            region = find_region(g.producer, replace(node, inputs=inputs))
            result = None if region is None else _sum_region(g, region)
        return keep(g, node, inputs) if result is None else result

    done = RuleTable("integer regions", fallback=rewrite).rewrite(graph, OnnxBuilder(graph.name))
    return merge_repeats(drop_dead(replace(done, opset=graph.opset)))


def _sum_region(g: Any, region: Region) -> Value | None:
    """The integers of a region, None where scales are computed, or not those of one sum."""
    layer, activation = region.layer, region.activation
    operands = tuple([_find_moved(g, v) for v in region.operands])
    region = region._replace(operands=operands)
    step = _find_step(region)
    if step is None or (LINEAR[layer.op] == 2 and not region.has_counted_bias):
        return None
    bounds = [] if activation is None else list(activation.inputs[1:])
    if any(v is not None and v.tensor is None for v in bounds):
        return None
    numbers = [_count(g, v) if isinstance(v, Quantized) else v for v in operands]
    y = g.Mul(g.emit(layer.op, numbers, layer.attrs), step.factor)
    if activation is not None:
        ends = [None if v is None else (v.array() / step.result).astype("f") for v in bounds]
        y = g.emit(activation.op, [y, *ends], {})
    zero = region.result.emit_zero(g, region.dtype)
    return g.QuantizeLinear(y, np.float32(1), zero)  # type: ignore[no-any-return]


def _find_moved(g: Any, v: Any) -> Any:
    """The integers of a value that was dequantized before its elements were moved."""
    move = g.maker(v, *MOVES) if isinstance(v, Value) else None
    if move is None:
        return v
    node, source = g.maker(move.inputs[0], "DequantizeLinear"), None
    if node is None:
        source = _find_moved(g, move.inputs[0])
    else:
        source = Quantized(node.inputs[0], Quantization.of(node))
    if not isinstance(source, Quantized) or not source.form.is_per_tensor:
        return v
    return source._replace(value=g.emit(move.op, [source.value, *move.inputs[1:]], move.attrs))


def _find_step(region: Region) -> Step | None:
    """What the sums of a region count in; None where no constants tell."""
    layer, result = region.layer, region.result
    parts = region.operands[: LINEAR[layer.op]]
    forms = [v.form for v in parts if isinstance(v, Quantized) and _is_whole(v)]
    if len(forms) < len(parts) or region.dtype.kind == "f" or region.dtype.bits > WIDEST:
        return None
    if not (_is_constant(result) and result.is_per_tensor and forms[0].is_per_tensor):
        return None
    unit = forms[0].scale.array().reshape(())
    if len(forms) == 2:
        behind = _count_axes_behind(layer, forms[1])
        if behind is None:
            return None
        scales = forms[1].scale.array()
        unit = unit * (scales.reshape(-1, *[1] * behind) if scales.size > 1 else scales.reshape(()))
    step = result.scale.array().reshape(())
    return Step((unit / step).astype(np.float32), np.float32(step))


def _count_axes_behind(layer: Node, weights: Quantization) -> int | None:
    """How many axes of the result lie behind that of the scales of weights; None for others."""
    if weights.is_per_tensor:
        return 0
    rank, shape = (layer.outputs[0].shape, layer.inputs[1].shape)  # type: ignore[union-attr]
    if rank is None or shape is None:
        return None
    axis = weights.axis % len(shape)
    if layer.op == "Conv" and axis == 0:
        return len(rank) - 2
    if layer.op == "ConvTranspose" and axis == 1 and layer.attrs["group"] == 1:
        return len(rank) - 2
    if layer.op == "Gemm" and axis == (0 if layer.attrs["transB"] else 1):
        return 0
    return 0 if layer.op == "MatMul" and axis == len(shape) - 1 > 0 else None


def _is_whole(v: Quantized) -> bool:
    """Whether a value is of integers with constant scales."""
    dtype = v.value.dtype
    return (
        dtype is not None and dtype.kind in "iu" and dtype.bits <= WIDEST and _is_constant(v.form)
    )


def _is_constant(form: Quantization) -> bool:
    zero = form.zero
    return form.is_plain and all(v is None or v.tensor is not None for v in (form.scale, zero))


def _count(g: Any, v: Quantized) -> Value:
    """The steps that integers are from what stands for 0, as floats."""
    counts, zero = g.cast(v.value, F32), v.form.zero
    if zero is None or not zero.array().any():
        return counts  # type: ignore[no-any-return]
    numbers = zero.array().astype(np.float32)
    if numbers.size > 1:
        axis = v.form.axis % v.value.rank
        numbers = numbers.reshape(-1, *[1] * (v.value.rank - 1 - axis))
    return g.Sub(counts, numbers.reshape(()) if numbers.size == 1 else numbers)  # type: ignore[no-any-return]
