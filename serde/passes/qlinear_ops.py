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

import numpy as np

from serde.ir import arrays
from serde.ir.graph import BYTES, DType, Graph, Node, Value
from serde.rewrite.rules import RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder

from .dce import drop_dead

Takes = Callable[[Value, Value, Value], bool]


def use_qlinear_ops(graph: Graph, units: bool, by_channel: bool) -> Graph:
    """``graph`` with ``QLinearConv`` and ``QLinearMatMul`` for integers in units of 1, for weights
    of a scale by channel, or for both.
    """

    def takes(x: Value, w: Value, y: Value) -> bool:
        return (units and _is_one(x) and _is_one(y)) or (by_channel and _is_by_channel(w))

    if not any(n.op == "QuantizeLinear" and not n.domain for n in graph.nodes):
        return graph
    kernels = RuleTable("integer kernels", fallback=keep)
    kernels("QuantizeLinear")(partial(quantize, takes))
    done = kernels.rewrite(graph, OnnxBuilder(graph.name))
    return drop_dead(replace(done, opset=graph.opset))


def quantize(
    takes: Takes, g: Any, y: Value, scale: Value, zero: Value | None = None, **attrs: Any
) -> Any:
    """What a quantisation ends, where there is an operator for all of it.

    ``takes`` tells by the scales of data, weights and result.
    """
    is_one_number = _is_plain(scale, attrs) and scale.shape == ()
    result = _kernel(g, takes, y, scale, zero) if is_one_number else None
    return g.QuantizeLinear(y, scale, zero, **attrs) if result is None else result


def _kernel(g: Any, takes: Takes, y: Value, scale: Value, zero: Value | None) -> Any:
    zero = _zero(g, scale, zero, DType.UINT8)
    relu = g.maker(y, "Relu") if _is_type_minimum(zero) else None
    node = g.maker(y if relu is None else relu.inputs[0], "Conv", "Gemm", "MatMul")
    if node is None or zero.dtype not in BYTES:
        return None
    operands: list[Any] = [_match_dequantize(g, v) for v in node.inputs if v is not None]
    if len(operands) < 2 or None in operands:
        return None
    (_, x_scale, *_), (_, w_scale, *_), *_ = operands
    return (
        _fuse_product(g, node, operands, (scale, zero)) if takes(x_scale, w_scale, scale) else None
    )


def _fuse_product(g: Any, node: Node, operands: list[Any], result: tuple[Value, Value]) -> Any:
    """The operator for a node of dequantised operands, None where there is none."""
    (x, x_scale, x_zero, _), (w, w_scale, w_zero, axis), *bias = operands
    fitting = x.dtype in BYTES and w.dtype in BYTES and x_scale.shape == ()
    counted = not bias or _has_product_scale(bias[0], x_scale, w_scale)
    if not fitting or not counted:
        return None
    quantities, counts = (w_scale, w_zero, *result), [b for b, *_ in bias]
    if node.op == "Conv" and _is_along(axis, 0, w_scale):
        return g.QLinearConv(x, x_scale, x_zero, w, *quantities, *counts, **node.attrs)
    if node.op == "MatMul" and w.rank == 2 and _is_along(axis, 1, w_scale):
        return g.QLinearMatMul(x, x_scale, x_zero, w, *quantities)
    attrs = node.attrs
    if (
        node.op == "MatMul"
        or node.op == "Conv"
        or attrs["transA"]
        or (attrs["alpha"], attrs["beta"]) != (1, 1)
    ):
        return None
    if not _is_along(axis, 0 if attrs["transB"] else 1, w_scale):
        return None
    w = w if attrs["transB"] else g.Transpose(w, perm=(1, 0))
    x, w = (g.Unsqueeze(v, [2, 3]) for v in (x, w))
    y = g.QLinearConv(x, x_scale, x_zero, w, *quantities, *counts, kernel_shape=(1, 1))
    return g.Squeeze(y, [2, 3])


def _match_dequantize(g: Any, v: Value) -> tuple[Value, Value, Value, Any] | None:
    """The integers that floats were, their scale and zero point, and the axis of these."""
    node = g.maker(v, "DequantizeLinear")
    if node is None or not _is_plain(node.inputs[1], node.attrs):
        return None
    q, scale, zero = (*node.inputs, None)[:3]
    assert q is not None and scale is not None
    return q, scale, _zero(g, scale, zero, q.type), node.attrs["axis"]


def _zero(g: Any, scale: Value, zero: Value | None, dtype: DType) -> Value:
    """The zero point, which is 0 where there is none."""
    if zero is not None:
        return zero
    return g.const(arrays.zeros(scale.static_shape, dtype.numpy))  # type: ignore[no-any-return]


def _is_plain(scale: Value | None, attrs: Any) -> bool:
    """Whether there are no blocks, and scales of float32."""
    has_scale = scale is not None and scale.dtype is DType.FLOAT32
    return has_scale and not any(attrs.get(n) for n in ("block_size", "output_dtype", "precision"))


def _is_by_channel(scale: Value | None) -> bool:
    return scale is not None and scale.shape is not None and len(scale.shape) == 1


def _is_along(axis: int, expected: int, scale: Value) -> bool:
    """Whether scales are those of slices along an axis, or one for all."""
    return scale.shape == () or (_is_by_channel(scale) and axis == expected)


def _is_one(scale: Value | None) -> bool:
    """Whether integers stand for themselves."""
    if scale is None or scale.tensor is None or not _is_plain(scale, {}):
        return False
    return scale.shape == () and bool(scale.array() == 1)


def _is_type_minimum(zero: Value) -> bool:
    """Whether no integer of a type is less than ``zero``, so that it cuts off what is negative."""
    if zero.tensor is None or zero.dtype not in BYTES:
        return False
    return bool((zero.array() == np.iinfo(zero.type.numpy).min).all())


def _has_product_scale(bias: tuple[Value, Value, Value, Any], data: Value, weights: Value) -> bool:
    """Whether a bias is counted in the unit of the products."""
    b, scale, zero, _ = bias
    if b.dtype is not DType.INT32 or zero.tensor is None or zero.array().any():
        return False
    if scale is weights:
        return _is_one(data)
    if any(v.tensor is None for v in (scale, data, weights)):
        return False
    return np.array_equal(scale.array(), data.array() * weights.array())
