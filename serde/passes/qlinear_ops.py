"""Products between dequantisations and a quantisation, as the one operator that they stand for.

Runtimes make kernels of them by themselves, with a scale for each channel of the weights from opset
13 on, which is the first whose ``DequantizeLinear`` has an axis. Before it the weights would be
floats, which ONNX Runtime rounds again, by one scale for all.

Of data and results in units of 1 the product is exact only as that operator, which adds up int32
and multiplies once: a runtime that makes no kernel rounds each weight times its scale, and each
sum, so that one integer in some 100,000 is one off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from serde.ir.graph import BYTES, DType, Graph, Node, Value
from serde.rewrite.rules import RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder

from .dce import drop_dead
from .regions import Quantization, Quantized, Region, find_region, find_regions

Takes = Callable[[Quantization, Quantization, Quantization], bool]


def use_qlinear_ops(graph: Graph, units: bool, by_channel: bool) -> Graph:
    """``graph`` with ``QLinearConv`` and ``QLinearMatMul`` for integers in units of 1, for weights
    of a scale by channel, or for both.
    """

    def takes(x: Quantization, w: Quantization, y: Quantization) -> bool:
        return (units and x.is_unit and y.is_unit) or (by_channel and w.is_by_channel)

    if not find_regions(graph):
        return graph
    kernels = RuleTable("integer kernels", fallback=keep)
    kernels("QuantizeLinear")(partial(quantize, takes))
    done = kernels.rewrite(graph, OnnxBuilder(graph.name))
    return drop_dead(replace(done, opset=graph.opset))


def quantize(
    takes: Takes, g: Any, y: Value, scale: Value, zero: Value | None = None, **attrs: Any
) -> Any:
    """What a quantisation ends, where there is an operator for all of it.

    ``takes`` tells by the quantizations of data, weights and result.
    """
    region = find_region(g.producer, Node("QuantizeLinear", (y, scale, zero), (), attrs))
    result = None if region is None else _fuse_region(g, takes, region)
    return g.QuantizeLinear(y, scale, zero, **attrs) if result is None else result


def _fuse_region(g: Any, takes: Takes, region: Region) -> Any:
    """The operator for a region, None where there is none."""
    node, activation, result = region.layer, region.activation, region.result
    operands = [v for v in region.operands if v is not None]
    if activation is not None and not (activation.op == "Relu" and region.cuts_negative):
        return None
    if node.op not in ("Conv", "Gemm", "MatMul") or region.dtype not in BYTES:
        return None
    parts = [v for v in operands if isinstance(v, Quantized)]
    if len(parts) != len(operands) or not all(
        q.is_plain for q in (result, *(v.form for v in parts))
    ):
        return None
    (x, x_form), (w, w_form), *bias = parts
    is_per_tensor = result.scale.shape == () == x_form.scale.shape
    has_kernel = x.dtype is region.dtype and w.dtype in (x.dtype, DType.INT8)  # in ONNX Runtime
    if not (is_per_tensor and has_kernel):
        return None
    if not takes(x_form, w_form, result) or not region.has_counted_bias:
        return None
    zeros = (
        result.emit_zero(g, DType.UINT8),
        x_form.emit_zero(g, x.type),
        w_form.emit_zero(g, w.type),
    )
    data = x, x_form.scale, zeros[1]
    quantities = (w_form.scale, zeros[2], result.scale, zeros[0])
    counts = [b.value for b in bias]
    if node.op == "Conv" and w_form.is_along(0):
        return g.QLinearConv(*data, w, *quantities, *counts, **node.attrs)
    if node.op == "MatMul" and w.rank == 2 and w_form.is_along(1):
        return g.QLinearMatMul(*data, w, *quantities)
    attrs = node.attrs
    is_product = node.op == "Gemm" and not attrs["transA"] and attrs["alpha"] == attrs["beta"] == 1
    if not is_product or not w_form.is_along(0 if attrs["transB"] else 1):
        return None
    w = w if attrs["transB"] else g.Transpose(w, perm=(1, 0))
    image, kernel = (g.Unsqueeze(v, [2, 3]) for v in (x, w))
    y = g.QLinearConv(image, *data[1:], kernel, *quantities, *counts, kernel_shape=(1, 1))
    return g.Squeeze(y, [2, 3])
