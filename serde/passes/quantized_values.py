"""The real numbers that quantized integers stand for, found at what the integers were made of."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from serde.ir.graph import DType, Node, Tensor, Value
from serde.passes.regions import Quantization, is_same_zero
from serde.passes.value_ranges import find_range, may_be_nan
from serde.spec.traits import ARRANGES, CHOOSES, MOVES, ZERO_FILLS
from serde.spec.weight_origins import mark_dequantized

Array = np.ndarray[Any, Any]
MOST_STEPS = 16  # nodes that are followed back
# Operators whose results are elements of operands, or means of these, and the places of these.
MOVING = {op: MOVES[op] for op in ARRANGES | CHOOSES | ZERO_FILLS | {"Concat", "Where"}}
MOVING["Resize"] = (0,)


def find_real(g: Any, q: Value, form: Quantization, dtype: DType) -> Value | None:
    """The numbers that ``q`` stands for in ``form``, without integers; None where there are none.

    Roundings are left out, and ends of ranges that cut off nothing.
    """
    if q.tensor is not None:
        tensor = dequantize_constant(q, form, dtype)
        return None if tensor is None else mark_dequantized(g.const(tensor, name=q.name), q)
    node = g.producer(q)
    if node is None or node.domain:
        return None
    if node.op == "QuantizeLinear" and q is node.outputs[0]:
        return _find_quantized(g, q, node, form, dtype)
    if node.op == "DynamicQuantizeLinear" and q is node.outputs[0]:
        is_own = form.scale is node.outputs[1] and form.zero is node.outputs[2]
        return g.cast(node.inputs[0], dtype) if is_own else None
    if node.op in MOVING and form.is_per_tensor:
        return _move_real(g, q, node, form, dtype)
    return None


def find_source(g: Any, q: Value) -> Node | None:
    """The node that quantized the numbers of ``q``, by way of nodes that only move elements."""
    for _ in range(MOST_STEPS):
        node = g.maker(q, "QuantizeLinear", "DynamicQuantizeLinear", *MOVING)
        if node is None or node.op not in MOVING:
            return node  # type: ignore[no-any-return]
        moved = [v for v in _list_moved(node) if v.tensor is None]
        if not moved:
            return None
        q = moved[0]
    return None


def is_of_constants(g: Any, q: Value) -> bool:
    """Whether the elements of ``q`` are those of constants, moved."""
    if q.tensor is not None:
        return True
    node = g.maker(q, *MOVING)
    return node is not None and all(is_of_constants(g, v) for v in _list_moved(node))


def _find_quantized(g: Any, q: Value, node: Node, form: Quantization, dtype: DType) -> Value | None:
    """What a QuantizeLinear node quantizes, as another quantization reads it."""
    source_form, x = Quantization.of(node), node.inputs[0]
    assert x is not None
    rank = None if x.shape is None else len(x.shape)
    bounded = _keep_bounds(g, x, q, source_form)
    if bounded is not None and may_be_nan(g, x):
        bounded = _keep_numbers(g, x, bounded, q, source_form)
    if bounded is None or source_form.is_same(form, rank):
        return bounded and g.cast(bounded, dtype)
    is_plain = (
        source_form.is_per_tensor and form.is_per_tensor and source_form.scale.tensor is not None
    )
    if not is_plain or q.dtype is None or q.dtype.kind == "f":
        return None
    scale = _as_number(g, form.scale, dtype)
    x = g.Mul(g.cast(bounded, dtype), g.Div(scale, _as_number(g, source_form.scale, dtype)))
    if is_same_zero(source_form.zero, form.zero):
        return x  # type: ignore[no-any-return]
    zeros = [g.scalar(0.0, x) if z is None else _as_number(g, z, dtype)
             for z in (source_form.zero, form.zero)]  # fmt: skip
    return g.Add(x, g.Mul(g.Sub(*zeros), scale))  # type: ignore[no-any-return]


def _as_number(g: Any, value: Value, dtype: DType) -> Value:
    """One number without axes."""
    value = value if value.shape == () else g.Reshape(value, np.zeros(0, np.int64))
    return g.cast(value, dtype)  # type: ignore[no-any-return]


def _list_moved(node: Node) -> list[Value]:
    places = MOVING[node.op]
    values = [node.inputs[i] for i in places] if places else node.inputs
    return [v for v in values if v is not None]


def _move_real(g: Any, q: Value, node: Node, form: Quantization, dtype: DType) -> Value | None:
    """The real numbers of moved elements: those of the elements, moved."""
    is_positive = form.scale.tensor is not None and bool((form.scale.array() > 0).all())
    is_offset = not is_same_zero(form.zero, None)
    if (node.op in CHOOSES and not is_positive) or (node.op in ZERO_FILLS and is_offset):
        return None
    is_extended = node.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    if is_extended or (node.op == "MaxPool" and len(node.outputs) > 1):
        return None
    reals = {v: find_real(g, v, form, dtype) for v in _list_moved(node)}
    if all(r is None or r.tensor is not None for r in reals.values()) and None in reals.values():
        return None
    for v, real in reals.items():
        reals[v] = g.DequantizeLinear(v, form.scale, form.zero) if real is None else real
    inputs = [v and reals.get(v, v) for v in node.inputs]
    results = g.emit(node.op, inputs, node.attrs, len(node.outputs))
    if len(node.outputs) == 1:
        return results  # type: ignore[no-any-return]
    return results[node.outputs.index(q)]  # type: ignore[no-any-return]


def _keep_bounds(g: Any, x: Value, q: Value, form: Quantization) -> Value | None:
    """``x`` within the range of its integers; None where that cannot be written.

    The range may stand for a Relu or a Clip, which quantizers leave out before it. An end that
    cuts off nothing is left out.
    """
    if q.dtype is None or x.dtype is None or q.dtype.kind not in "iu" or q.dtype.bits > 16:
        return x
    limits: Any = ml_dtypes.iinfo(q.dtype.numpy)  # type: ignore[no-untyped-call]
    low, high = (_find_end(g, n, x, form) for n in (limits.min, limits.max))
    if low is None or high is None:
        return None
    least, most = find_range(g, x)
    low = low if _cuts(low, least, form, 1) else None
    high = high if _cuts(high, most, form, -1) else None
    if low is None and high is None:
        return x
    relu = g.maker(x, "Relu")
    if low is None and relu is not None:
        x, low = relu.inputs[0], g.scalar(0.0, x)
    if high is None and low is not None and low.tensor is not None and not low.array().any():
        return g.Relu(x)  # type: ignore[no-any-return]
    if form.is_per_tensor:
        return g.Clip(x, low, high)  # type: ignore[no-any-return]
    x = x if low is None else g.Max(x, low)
    return x if high is None else g.Min(x, high)  # type: ignore[no-any-return]


def _keep_numbers(g: Any, x: Value, bounded: Value, q: Value, form: Quantization) -> Value:
    """The least number that integers stand for in place of NaN, as ONNX Runtime quantizes it."""
    if q.dtype is None or q.dtype.kind not in "iu":
        return bounded
    limits: Any = ml_dtypes.iinfo(q.dtype.numpy)  # type: ignore[no-untyped-call]
    low = _find_end(g, limits.min, x, form)
    return bounded if low is None else g.Where(g.IsNaN(x), low, bounded)  # type: ignore[no-any-return]


def _find_end(g: Any, limit: int, x: Value, form: Quantization) -> Value | None:
    """The number that an end of the integers stands for, along the axes of ``x``."""
    end = g.const(np.float32(limit))
    if form.zero is not None:
        end = g.Sub(end, g.cast(form.zero, DType.FLOAT32))
    if end.tensor is not None and not end.array().any():
        return g.scalar(0.0, x)  # type: ignore[no-any-return]
    end = g.cast(g.Mul(end, g.cast(form.scale, DType.FLOAT32)), x.dtype)
    if form.is_per_tensor:
        return _as_number(g, end, x.type)
    if x.shape is None:
        return None
    if not form.block_size:
        behind = x.rank - 1 - form.axis % x.rank
        return g.Reshape(end, [-1, *[1] * behind])  # type: ignore[no-any-return]
    if end.tensor is None or not all(isinstance(d, int) for d in x.shape):
        return None
    return g.const(_align(end.array(), x.static_shape, form))  # type: ignore[no-any-return]


def _cuts(end: Value, number: float, form: Quantization, sign: int) -> bool:
    """Whether a number lies below an end, with sign -1 above it, by more than a rounding."""
    if end.tensor is None or form.scale.tensor is None:
        return True
    gap = sign * (end.array().astype(np.float64) - number)
    return bool((gap.max() > form.scale.array().astype(np.float64) / 2).any())


def dequantize_constant(q: Value, form: Quantization, dtype: DType) -> Tensor | None:
    """The numbers of a constant, computed when they are written; None where one is no constant."""
    scale, zero = form.scale, form.zero
    if any(v is not None and v.tensor is None for v in (q, scale, zero)):
        return None
    assert q.tensor is not None
    shape = q.tensor.shape

    def load() -> Array:
        numbers, steps = q.array().astype("float32"), _align(scale.array(), shape, form)
        middle = 0 if zero is None else _align(zero.array().astype("float32"), shape, form)
        return np.asarray((numbers - middle) * steps, dtype.numpy)

    return Tensor(dtype, shape, load)


def _align(v: Array, shape: tuple[int, ...], form: Quantization) -> Array:
    """Numbers along one axis of a shape, or of its blocks; a single one as it is."""
    if v.size == 1:
        return v.reshape(())
    axis = form.axis % len(shape)
    if form.block_size:
        elements = np.repeat(v, form.block_size, axis=axis)
        return elements[tuple(slice(n) for n in shape)]
    return v.reshape([-1 if a == axis else 1 for a in range(len(shape))])
