"""Quantized regions: a layer between the dequantizations of its operands and a quantization.

``x → DequantizeLinear → Conv → Relu → QuantizeLinear`` stands for one operator on integers.
``emit_region`` writes that form, and ``find_regions`` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from serde.ir import arrays
from serde.ir.graph import BYTES, DType, Graph, Node, Value

ACTIVATIONS = frozenset({"Clip", "Relu"})  # that a quantization may make a part of its bounds
OTHER_TYPES = ("output_dtype", "precision")  # attributes for types other than those of operands


class Quantization(NamedTuple):
    """How integers stand for real numbers: by ``scale * (q - zero)``, by axis or block."""

    scale: Value
    zero: Value | None = None
    axis: int = 1
    block_size: int = 0

    @classmethod
    def of(cls, node: Node) -> Quantization:
        """The quantization of a QuantizeLinear or DequantizeLinear node."""
        scale, zero = (*node.inputs, None)[1:3]
        assert scale is not None
        attrs: Mapping[str, Any] = node.attrs
        return cls(scale, zero, attrs.get("axis", 1), attrs.get("block_size", 0))

    @property
    def is_per_tensor(self) -> bool:
        """Whether one scale is that of all elements."""
        return is_single(self.scale) and (self.zero is None or is_single(self.zero))

    @property
    def is_plain(self) -> bool:
        """Whether there are no blocks, and scales of float32: one, or one for each slice."""
        return self.scale.dtype is DType.FLOAT32 and not self.block_size

    @property
    def is_unit(self) -> bool:
        """Whether integers stand for themselves, but for the zero point."""
        return self.is_plain and self.scale.shape == () and _is_all(self.scale, 1)

    def is_along(self, axis: int) -> bool:
        """Whether scales are those of slices along an axis, or one for all."""
        return self.scale.shape == () or (self.is_by_channel and self.axis == axis)

    @property
    def is_by_channel(self) -> bool:
        """Whether there is a scale for each slice along an axis."""
        return self.scale.shape is not None and len(self.scale.shape) == 1

    def is_same(self, other: Quantization, rank: int | None) -> bool:
        """Whether the other one stands for the same numbers."""
        if not (_is_equal(self.scale, other.scale) and is_same_zero(self.zero, other.zero)):
            return False
        if self.is_per_tensor and other.is_per_tensor:
            return True
        axes = {a % rank if rank else a for a in (self.axis, other.axis)}
        return len(axes) == 1 and self.block_size == other.block_size

    def emit_zero(self, g: Any, dtype: DType) -> Value:
        """The zero point, also where it is left out, which stands for 0."""
        if self.zero is not None:
            return self.zero
        return g.const(arrays.zeros(self.scale.static_shape, dtype.numpy))  # type: ignore[no-any-return]


class Quantized(NamedTuple):
    """Integers, and how they stand for real numbers."""

    value: Value
    form: Quantization

    def dequantize(self, g: Any) -> Value:
        """The real numbers."""
        attrs = {"axis": self.form.axis, "block_size": self.form.block_size}
        return g.DequantizeLinear(self.value, *self.form[:2], **attrs)  # type: ignore[no-any-return]


class Region(NamedTuple):
    """A layer on quantized operands; others are as they are, such as axes, or left out.

    ``activation`` is the node between the layer and the quantization to ``result``.
    """

    layer: Node
    operands: tuple[Quantized | Value | None, ...]
    activation: Node | None
    result: Quantization
    dtype: DType

    @property
    def cuts_negative(self) -> bool:
        """Whether the range of the result begins at 0, so that it needs no Relu."""
        zero = self.result.zero
        if zero is None:
            return self.dtype.kind == "u"
        return zero.dtype in BYTES and _is_all(zero, np.iinfo(zero.type.numpy).min)

    @property
    def has_counted_bias(self) -> bool:
        """Whether the third operand counts in the unit of products of the other two, or is none."""
        if len(self.operands) < 3 or self.operands[2] is None:
            return True
        if not all(isinstance(v, Quantized) for v in self.operands):
            return False
        (_, data), (_, weights), (bias, form) = cast("tuple[Quantized, ...]", self.operands)
        if bias.dtype is not DType.INT32 or not is_same_zero(form.zero, None):
            return False
        if form.scale is weights.scale:
            return data.is_unit
        if any(v.tensor is None for v in (form.scale, data.scale, weights.scale)):
            return False
        return np.array_equal(form.scale.array(), data.scale.array() * weights.scale.array())


Operand = Quantized | Value | None


def emit_region(
    g: Any, layer: Callable[..., Value], operands: Sequence[Operand], result: Quantization
) -> Value:
    """Quantize what ``layer`` computes of the real numbers of its operands."""
    y = layer(*(v.dequantize(g) if isinstance(v, Quantized) else v for v in operands))
    attrs = {"axis": result.axis, "block_size": result.block_size}
    return g.QuantizeLinear(y, *result[:2], **attrs)  # type: ignore[no-any-return]


def emit_qlinear_conv(  # type: ignore[no-untyped-def]
    dequantize, g, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b=None, **frame
):
    """The region of a QLinearConv, whose bias counts in the unit of the products."""
    if b is not None:
        b = dequantize(Quantized(b, Quantization(g.Mul(x_scale, w_scale), None, 0)), g)
    w = dequantize(Quantized(w, Quantization(w_scale, w_zero, 0)), g)
    x = Quantized(x, Quantization(x_scale, x_zero))
    y = g.Conv(dequantize(x, g), w, b, **frame)
    return g.QuantizeLinear(y, y_scale, y_zero)


def find_regions(graph: Graph) -> dict[Value, Region]:
    """The regions of a graph and its subgraphs, by what they end in."""
    makers = {v: node for node in graph.all_nodes() for v in node.outputs}
    ends = (node for node in makers.values() if node.op == "QuantizeLinear" and not node.domain)
    pairs = ((node.outputs[0], find_region(makers.get, node)) for node in ends)
    return {value: region for value, region in pairs if region is not None}


def find_region(producer: Callable[[Any], Node | None], end: Node) -> Region | None:
    """The region that ends in a QuantizeLinear node."""
    layer, activation = producer(end.inputs[0]), None
    if layer is not None and layer.op in ACTIVATIONS and not layer.domain:
        before = producer(layer.inputs[0])
        if before is not None and before.op != "DequantizeLinear":
            layer, activation = before, layer
    if layer is None or layer.domain or any(end.attrs.get(n) for n in OTHER_TYPES):
        return None
    operands = tuple(_find_quantized(producer, v) for v in layer.inputs)
    if not any(isinstance(v, Quantized) for v in operands):
        return None
    result = Quantization.of(end)
    dtype = DType.UINT8 if result.zero is None else result.zero.type
    return Region(layer, operands, activation, result, dtype)


def _find_quantized(producer: Callable[[Any], Node | None], v: Value | None) -> Operand:
    """The integers that a value was dequantized from; another value as it is."""
    node = None if v is None else producer(v)
    is_found = node is not None and node.op == "DequantizeLinear" and not node.domain
    if node is None or not is_found or any(node.attrs.get(n) for n in OTHER_TYPES):
        return v
    assert node.inputs[0] is not None
    return Quantized(node.inputs[0], Quantization.of(node))


def is_single(value: Value) -> bool:
    """Whether a value is known to have one element."""
    return value.shape is not None and all(d == 1 for d in value.shape)


def is_same_zero(a: Value | None, b: Value | None) -> bool:
    """Whether two zero points are the same; one that is left out is 0."""
    if a is not None and b is not None:
        return _is_equal(a, b)
    one = b if a is None else a
    return one is None or _is_all(one, 0)


def _is_all(value: Value, number: int) -> bool:
    """Whether all elements of a constant are a number."""
    return value.tensor is not None and bool((value.array() == number).all())


def _is_equal(a: Value, b: Value) -> bool:
    if a is b:
        return True
    if a.tensor is None or b.tensor is None:
        return False
    x, y = a.array(), b.array()
    return np.array_equal(x.ravel(), y.ravel()) and (x.shape == y.shape or x.size == 1)
