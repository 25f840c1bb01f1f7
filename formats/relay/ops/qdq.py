"""Quantized operators as real ones between DequantizeLinear and QuantizeLinear: ``integers="qdq"``.

Compilers for hardware look for this form. ``QuantizeLinear`` rounds halves to even and the product
of scales is a float, where TVM multiplies in fixed point: an integer may differ by one. Products in
fixed point that do not end in bytes are those of floats, too.

An int32 tensor between two operators, such as the sum of a convolution, has no form of its own in
ONNX. Its rule makes the exact integers, and notes the real tensor that they stand for; the operator
that quantizes it again reads that instead, and what nothing reads is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np

from serde.ir.geometry import Ints, axis_of
from serde.ir.graph import BYTES, DType, Value
from serde.passes.regions import Quantization
from serde.rewrite.rules import Rule

from .binary import IGNORED
from .cast import read_cast
from .convolution import TUNING, unpack_kernel, window
from .fixed_point import saturate
from .fixed_point_floats import RULES as FIXED_POINT_FLOATS
from .layouts import pack_layout, unpack_layout
from .linear import read_bias_add, swap_last_axes
from .quantization import (
    FUNCTIONS,
    is_representable,
    read_concatenate,
    read_dequantize,
    read_function,
    read_leaky_relu,
    read_mul,
    read_quantize,
    read_requantize,
    read_sum,
)
from .quantized_matmul import average, read_qnn_avg_pool2d, read_qnn_conv2d, read_qnn_dense
from .unary import read_clip

Array = np.ndarray[Any, Any]
# Functions of which no result is NaN, which QuantizeLinear does not define.
REAL_FUNCTIONS = {
    "abs": "Abs", "erf": "Erf", "exp": "Exp", "hardswish": "HardSwish", "sigmoid": "Sigmoid",
    "tanh": "Tanh",
}  # fmt: skip
NONE = np.zeros((), np.int32)


@dataclass(frozen=True)
class Real:
    """The real tensor that integers stand for: ``(integers - zero) * scale``.

    ``emit(g, bias)`` makes it; ``scale`` and ``zero`` are single or along ``axis``. A product takes
    a ``bias`` of int32 for each of its ``channels``. ``bounds`` are those that the integers
    were clipped to.
    """

    emit: Callable[[Any, Value | None], Value]
    scale: Array
    zero: Array
    axis: int
    channels: int = 0
    bias: Array | None = None
    bounds: tuple[int, int] | None = None

    def make(self, g) -> Value:
        """Emit the tensor."""
        if self.bias is None:
            return self.emit(g, None)
        return self.emit(g, g.DequantizeLinear(g.const(self.bias), self.scale, axis=0))

    def has(self, scale: Array, zero: Array) -> bool:
        """Whether the integers are taken for what they are."""
        same = self.scale.size == scale.size or 1 in (self.scale.size, scale.size)
        return same and np.allclose(self.scale, scale, rtol=1e-5, atol=0) and bool(
            np.all(self.zero == zero)
        )  # fmt: skip


class QdqRules:
    """The rules of one conversion, and the real tensors they have noted."""

    def __init__(self) -> None:
        self.real: dict[Value, Real] = {}

    def rules(self) -> dict[str, Rule]:
        """Rules by operator, to be taken before those of ``reads``."""
        follow = self.follow
        rules = {
            "qnn.quantize": Rule.of(self.quantize),
            "qnn.dequantize": Rule.of(self.dequantize),
            "qnn.requantize": Rule.of(self.requantize),
            "qnn.conv2d": Rule.of(follow(read_qnn_conv2d, self.note_conv), TUNING),
            "qnn.dense": Rule.of(follow(read_qnn_dense, self.note_dense), ("units",)),
            "nn.bias_add": Rule.of(follow(read_bias_add, self.note_bias)),
            "add": Rule.of(self.add, IGNORED),
            "clip": Rule.of(self.clip),
            "cast": Rule.of(self.cast),
            "qnn.concatenate": Rule.of(self.concatenate),
            "qnn.leaky_relu": Rule.of(self.leaky_relu),
            "qnn.avg_pool2d": Rule.of(self.avg_pool2d),
        }
        binary = {"qnn.add": "Add", "qnn.subtract": "Sub", "qnn.mul": "Mul"}
        rules |= {name: Rule.of(partial(self.binary, op)) for name, op in binary.items()}
        return (
            rules
            | FIXED_POINT_FLOATS
            | {f"qnn.{name}": Rule.of(partial(self.function, name)) for name in REAL_FUNCTIONS}
        )

    def follow(self, exact, note):
        """The exact rule, of whose result the real tensor is noted."""

        @wraps(exact)
        def rule(g, *operands, **attributes):
            y = exact(g, *operands, **attributes)
            real = note(*operands, **attributes)
            if real is not None:
                self.real[y] = real
            return y

        return rule

    # To integers, from integers, and between them

    def quantize(self, g, x, scale, zero, *, out_dtype: DType, axis=-1):
        if out_dtype not in BYTES or not is_known(scale, zero):
            return read_quantize(g, x, scale, zero, out_dtype=out_dtype, axis=axis)
        x = g.cast(x, DType.FLOAT32)
        return self.emit_quantize(g, x, scale.array(), zero.array(), axis, out_dtype)

    def dequantize(self, g, x, scale, zero, *, out_dtype: DType | None = None, axis=-1):
        y = self.find_real(g, x, scale, zero, axis)
        return g.cast(y, out_dtype or DType.FLOAT32)

    def requantize(
        self, g, x, in_scale, in_zero, out_scale, out_zero, *, axis=-1, rounding="None",
        compute_dtype="None", out_dtype: DType | None = None,
    ):  # fmt: skip
        operands, dtype = (in_scale, in_zero, out_scale, out_zero), out_dtype or DType.INT8
        if dtype in BYTES and is_known(*operands):
            real = self.find_real(g, x, in_scale, in_zero, axis)
            return self.emit_quantize(g, real, out_scale.array(), out_zero.array(), axis, dtype)
        y = read_requantize(
            g, x, *operands, axis=axis, rounding=rounding, out_dtype=out_dtype,
            compute_dtype="float32" if compute_dtype in ("None", "int64") else compute_dtype,
        )  # fmt: skip
        if dtype is DType.INT32 and is_known(*operands):

            def emit(g, bias):
                return self.find_real(g, x, in_scale, in_zero, axis)

            self.real[y] = Real(emit, out_scale.array(), out_zero.array(), axis)
        return y

    def find_real(self, g, x: Value, scale: Value, zero: Value, axis: int) -> Value:
        """The real tensor that ``x`` stands for."""
        real = self.real.get(x)
        is_product = real is not None and real.channels > 0  # others were rounded
        known = is_known(scale, zero)
        if real is not None and is_product and known and real.has(scale.array(), zero.array()):
            return real.make(g)
        is_sum = x.type is DType.INT32 and x.tensor is None  # a constant is a bias: floats
        if is_sum and is_known(scale, zero) and not zero.array().any():
            scales = scale.array().reshape(()) if scale.array().size == 1 else scale.array()
            return g.DequantizeLinear(x, scales, axis=axis_of(axis, x.rank))
        return read_dequantize(g, x, scale, zero, axis=axis)

    def emit_quantize(
        self, g, real: Value, scale: Array, zero: Array, axis: int, dtype: DType
    ) -> Value:
        """Quantize, and note what was quantized."""
        scale, zero = (v.reshape(()) if v.size == 1 else v for v in (scale, zero))
        limits = np.iinfo(dtype.numpy)
        zeros = np.clip(zero, limits.min, limits.max).astype(dtype.numpy)
        shape = np.broadcast_shapes(scale.shape, zero.shape)
        if (zeros != zero).any():  # a zero point that the type does not hold
            quantized = read_quantize(
                g, real, g.const(scale), g.const(zero), out_dtype=DType.INT32, axis=axis
            )
            return saturate(g, quantized, dtype)
        operands = (g.const(np.broadcast_to(v, shape).copy()) for v in (scale, zeros))
        y = g.QuantizeLinear(real, *operands, axis=axis_of(axis, real.rank))
        self.real[y] = Real(lambda g, bias: real, scale, zero, axis)
        return y

    # Sums of products, which a bias follows and activations as bounds of the integers

    def note_conv(
        self, x, w, x_zero, w_zero, x_scale, w_scale, *, strides=(1, 1), padding=(0, 0),
        dilation=(1, 1), groups=1, data_layout="NCHW", kernel_layout="OIHW", out_layout="",
        out_dtype=None,
    ) -> Real | None:  # fmt: skip
        scales = combine_scales(x, w, x_zero, w_zero, x_scale, w_scale)
        if scales is None or not w.is_static:
            return None
        out_layout = out_layout or data_layout

        def emit(g, bias):
            real = unpack_layout(g, dequantize_all(g, x, x_scale, x_zero), data_layout, "NCHW")
            kernel = unpack_kernel(g, w, kernel_layout, 2, groups, real)
            weights = dequantize_all(g, kernel, w_scale, w_zero, axis=0)
            frame = window(kernel, strides, dilation, padding)
            bias = () if bias is None else (bias,)
            y = g.Conv(real, weights, *bias, group=groups, **frame)
            return pack_layout(g, y, "NCHW", out_layout)

        channels = channels_of(w, kernel_layout, groups)
        if scales.size not in (1, channels):
            return None
        return Real(emit, scales, NONE, out_layout.index("C"), channels)

    def note_dense(self, x, w, x_zero, w_zero, x_scale, w_scale, *, out_dtype=None) -> Real | None:
        scales = combine_scales(x, w, x_zero, w_zero, x_scale, w_scale)
        channels = w.ranked_shape[0]
        if scales is None or scales.size not in (1, channels) or not isinstance(channels, int):
            return None

        def emit(g, bias):
            real = dequantize_all(g, x, x_scale, x_zero)
            if x.rank == 2:
                weights = dequantize_all(g, w, w_scale, w_zero, axis=0)
                return g.Gemm(real, weights, *(() if bias is None else (bias,)), transB=1)
            weights = dequantize_all(g, swap_last_axes(g, w), w_scale, w_zero, axis=1)
            y = g.MatMul(real, weights)
            return y if bias is None else g.Add(y, bias)

        return Real(emit, scales, NONE, x.rank - 1, channels)

    def note_bias(self, x, b, *, axis=1) -> Real | None:
        real = self.real.get(x)
        if real is None or not real.channels or b.tensor is None or b.rank != 1:
            return None
        return add_bias(real, b.array()) if axis_of(axis, x.rank) == real.axis else None

    def add(self, g, a, b):
        y = g.Add(a, b)
        for x, bias in ((a, b), (b, a)):
            real = self.real.get(x)
            if real is None or not real.channels or bias.tensor is None:
                continue
            shape = (1,) * (x.rank - bias.rank) + bias.static_shape
            along = (1,) * real.axis + (real.channels,) + (1,) * (x.rank - real.axis - 1)
            if shape in (along, (1,) * x.rank):
                self.real[y] = add_bias(real, bias.array().ravel())
        return y

    def clip(self, g, x, *, a_min: float, a_max: float):
        real = self.real.get(x)
        if real is None or real.channels or real.scale.size > 1 or real.zero.size > 1:
            return read_clip(g, x, a_min=a_min, a_max=a_max)
        low, high = int(a_min), max(int(a_min), int(a_max))  # which are cut off
        if x.type in BYTES:
            return self.quantize_within(g, real, (low, high), x.type)
        if real.bounds is not None:
            low, high = (int(np.clip(v, *real.bounds)) for v in (low, high))
        y = read_clip(g, x, a_min=a_min, a_max=a_max)
        self.real[y] = replace(real, bounds=(low, high))
        return y

    def cast(self, g, x, *, dtype: DType):
        real = self.real.get(x)
        if real is not None and real.bounds is not None and dtype in BYTES:
            limits = np.iinfo(dtype.numpy)
            if limits.min <= real.bounds[0] and real.bounds[1] <= limits.max:
                return self.quantize_within(g, real, real.bounds, dtype)
        return read_cast(g, x, dtype=dtype)

    def quantize_within(self, g, real: Real, bounds: tuple[int, int], dtype: DType) -> Value:
        """Bytes within bounds, which those of the type are anyway."""
        limits = np.iinfo(dtype.numpy)
        low, high = (np.float32((v - real.zero) * real.scale) for v in bounds)
        y = real.make(g)
        if bounds[1] < limits.max:
            y = g.Clip(y, low if bounds[0] > limits.min else None, high)
        elif bounds[0] > limits.min:
            y = g.Relu(y) if low == 0 else g.Clip(y, low)
        return self.emit_quantize(g, y, real.scale, real.zero, real.axis, dtype)

    # Other operators of bytes

    def apply(self, g, layer, exact, operands, *quantities, axes=(-1, -1)):
        """``layer`` of real tensors, quantized; ``exact`` integers where these are not known."""
        *pairs, scale, zero = quantities
        if not is_known(*quantities) or any(x.type not in BYTES for x in operands):
            return exact(g, *operands, *quantities)
        parts = zip(operands, pairs[::2], pairs[1::2], axes, strict=False)
        y = layer(*(read_dequantize(g, x, *pair, axis=axis) for x, *pair, axis in parts))
        return self.emit_quantize(g, y, scale.array(), zero.array(), -1, operands[0].type)

    def binary(self, op, g, a, b, *quantities, lhs_axis=-1, rhs_axis=-1):
        rules: dict[str, Any] = {
            "Add": partial(read_sum, 1),
            "Sub": partial(read_sum, -1),
            "Mul": read_mul,
        }
        exact: Any = partial(rules[op], lhs_axis=lhs_axis, rhs_axis=rhs_axis)
        return self.apply(g, g[op], exact, (a, b), *quantities, axes=(lhs_axis, rhs_axis))

    def concatenate(self, g, *operands, axis=0):
        count = (len(operands) - 2) // 3
        tensors, scales, zeros = (operands[i * count : (i + 1) * count] for i in range(3))
        result, pairs = Quantization(*operands[-2:]), list(zip(scales, zeros, strict=True))

        def exact(g, *_):
            return read_concatenate(g, *operands, axis=axis)

        is_same = all(result.is_same(Quantization(*pair), None) for pair in pairs)
        if is_known(*operands[count:]) and is_same:
            return exact(g)
        layer = partial(g.Concat, axis=axis_of(axis, tensors[0].rank))
        quantities = (v for pair in (*pairs, result[:2]) for v in pair)
        return self.apply(g, layer, exact, tensors, *quantities, axes=[-1] * count)

    def function(self, name, g, x, *quantities):
        exact = partial(read_function, FUNCTIONS[name])
        return self.apply(g, g[REAL_FUNCTIONS[name]], exact, [x], *quantities)

    def leaky_relu(self, g, x, *quantities, alpha=0.25):
        exact = partial(read_leaky_relu, alpha=alpha)
        return self.apply(g, partial(g.LeakyRelu, alpha=alpha), exact, [x], *quantities)

    def avg_pool2d(
        self, g, x, *quantities, pool_size: Ints, strides: Ints = (1, 1),
        dilation: Ints = (1, 1), padding: Ints = (0, 0), layout="NCHW", out_layout="",
        ceil_mode=False, count_include_pad=False,
    ):  # fmt: skip
        form = {
            "pool_size": pool_size, "strides": strides, "dilation": dilation, "padding": padding,
            "layout": layout, "out_layout": out_layout, "ceil_mode": ceil_mode,
            "count_include_pad": count_include_pad,
        }  # fmt: skip
        exact = partial(read_qnn_avg_pool2d, **form)
        if any(padding) or ceil_mode:
            return exact(g, x, *quantities)
        return self.apply(g, partial(average, g, **form), exact, [x], *quantities)


def is_known(*quantities: Value) -> bool:
    """Whether scales and zero points are constants."""
    return all(v.tensor is not None for v in quantities)


def combine_scales(x, w, x_zero, w_zero, x_scale, w_scale) -> Array | None:
    """The scale of sums of products of bytes, one or one for each channel, if it is known."""
    quantities = (x_zero, w_zero, x_scale, w_scale)
    if x.type not in BYTES or w.type not in BYTES or not is_known(*quantities):
        return None
    fits = is_representable(x_zero, x) and is_representable(w_zero, w)
    if x_scale.array().size != 1 or x_zero.array().size != 1 or not fits:
        return None
    if w_zero.array().size not in (1, w_scale.array().size):
        return None
    scale = x_scale.array().ravel() * w_scale.array().ravel()
    return scale.reshape(()) if scale.size == 1 else scale


def dequantize_all(g, x: Value, scale: Value, zero: Value, axis: int = 0) -> Value:
    """Bytes by constants, single or along an axis."""
    scales = scale.array().astype(np.float32).ravel()
    zeros = np.broadcast_to(zero.array().ravel(), scales.shape).astype(x.type.numpy)
    if scales.size == 1:
        return g.DequantizeLinear(x, scales.reshape(()), g.const(zeros.reshape(())))
    return g.DequantizeLinear(x, scales, g.const(zeros), axis=axis)


def channels_of(w: Value, layout: str, groups: int) -> int:
    """How many results for a place a kernel gives."""
    outputs, inputs = (w.static_shape[layout.index(a)] for a in "OI")
    is_depthwise = groups > 1 and outputs == groups and inputs != 1
    return outputs * inputs if is_depthwise else outputs


def add_bias(real: Real, bias: Array) -> Real:
    """The real tensor of sums and a bias."""
    before = real.bias if real.bias is not None else 0
    total = np.broadcast_to(bias, (real.channels,)) + before
    return replace(real, bias=total.astype(np.int32))
