"""What LiteRT's kernels compute of integers, and the scales that they ask of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from serde.ir.graph import DType, Node, Tensor, Value

from .quantization import Quantization
from .target import QuantizedValue

I8, U8, I16, I32, I64 = DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64
BYTES = frozenset({I8, U8})
STEPS = BYTES | {I16}
MIDDLE = 128  # what uint8 and int8 of the same number differ by
# Operators that move elements of the first operand, and the types that their kernels have.
MOVES: Mapping[str, frozenset[DType]] = {
    **dict.fromkeys(("RESHAPE", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "PAD", "GATHER"), STEPS),
    **dict.fromkeys(("MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN"), STEPS),
    "RESIZE_NEAREST_NEIGHBOR": STEPS,
    **dict.fromkeys(("BROADCAST_TO", "PADV2"), STEPS),
    **dict.fromkeys(("DEPTH_TO_SPACE", "MIRROR_PAD", "SPACE_TO_DEPTH", "TILE"), BYTES),
}
# Operators whose results are elements of operands that all have the same scales.
JOINS: Mapping[str, frozenset[DType]] = dict.fromkeys(
    ("CONCATENATION", "MAXIMUM", "MINIMUM"), STEPS
)
# Operators that read integers as such, whatever they stand for.
READS_INTEGERS = frozenset({"ARG_MAX", "ARG_MIN", "CAST", "IF", "SHAPE", "WHILE"})
# Steps of a sum that one step of an operand may be, in the bits that kernels shift by.
MOST_STEPS = {I8: 1 << 18, U8: 1 << 18, I16: 1 << 13}
NEAR = 1e-6  # relative difference of scales that are the same
EXTREME = 2.0**96  # what scales are below, but for those of masks
FIXED = {  # scales and zero points of int8 results
    **dict.fromkeys(("SOFTMAX", "LOGISTIC"), Quantization.of(1 / 256, -128)),
    **dict.fromkeys(("TANH", "L2_NORMALIZATION"), Quantization.of(1 / 128)),
    "LOG_SOFTMAX": Quantization.of(16 / 256, 127),
}
FIXED_16 = dict.fromkeys(("SOFTMAX", "LOGISTIC", "TANH"), Quantization.of(1 / 32768))
# Steps of a result that one step of its kernel may be: 1.25 off at most with those of 8 bits, which
# is less than a hundredth of their range, and far less of 16 bits.
COARSEST = {I8: 1.5, U8: 1.5, I16: 64}


class Layer(NamedTuple):
    """An operator whose operands are integers where they can be, and the scales of its result."""

    node: Node
    operands: tuple[Value | None, ...]
    dtype: DType
    scales: Quantization


Kernel = Callable[[Layer], Layer | None]


def read_real(integers: QuantizedValue) -> np.ndarray[Any, Any]:
    """The real numbers of constant integers."""
    assert integers.scales is not None
    return integers.scales.read_real(integers.array())


def move_constant(
    node: Node, tensor: Tensor, scales: Quantization
) -> tuple[Tensor, Quantization] | None:
    """A constant in another order or shape; None where its scales would be those of no axis."""
    operand, load = node.inputs[1], tensor.load
    if operand is None or operand.tensor is None or node.op not in ("RESHAPE", "TRANSPOSE"):
        return None
    shape = node.outputs[0].static_shape
    if node.op == "TRANSPOSE":
        order = operand.ints()
        axis = order.index(scales.axis)
        moved = Tensor(tensor.dtype, shape, lambda: np.ascontiguousarray(load().transpose(order)))
    else:
        new_axis = _find_axis(tensor.shape, scales.axis, shape)
        if new_axis is None and not scales.is_per_tensor:
            return None
        axis = new_axis or 0
        moved = Tensor(tensor.dtype, shape, lambda: load().reshape(shape))
    return moved, Quantization.of(scales.scale, scales.zero, axis)


def _find_axis(before: tuple[int, ...], axis: int, after: tuple[int, ...]) -> int | None:
    """The place of an axis in a shape of the same elements."""
    lead = math.prod(before[:axis])
    return next(
        (at for at, size in enumerate(after)
         if size == before[axis] and math.prod(after[:at]) == lead), None,
    )  # fmt: skip


def quantize_fill(fill: Value | None, integers: QuantizedValue) -> Tensor | None:
    """A constant number as an integer; None where no integer stands for it."""
    assert integers.scales is not None
    scale, zero = float(integers.scales.scale[0]), int(integers.scales.zero[0])
    if fill is None or fill.tensor is None:
        return None
    bounds = np.iinfo(integers.type.numpy)
    number = float(fill.array())
    if number == -math.inf:
        return Tensor.of(np.asarray(bounds.min, integers.type.numpy))
    steps = number / scale + zero
    if abs(steps - round(steps)) > 1e-4 or not bounds.min <= round(steps) <= bounds.max:
        return None
    return Tensor.of(np.asarray(round(steps), integers.type.numpy))


def scales_of(value: Value | None, *dtypes: DType) -> Quantization | None:
    """The scales of integers of some types, one for all elements; int16 have no zero point."""
    if not isinstance(value, QuantizedValue) or value.dtype not in dtypes or value.scales is None:
        return None
    if not value.scales.is_per_tensor or not fits(value.type, value.scales):
        return None
    return value.scales


def fits(dtype: DType, scales: Quantization) -> bool:
    """Whether kernels take the zero point."""
    return dtype in BYTES or scales.is_symmetric


def is_extreme(scales: Quantization) -> bool:
    """Whether products of a scale may be none of float32, in which kernels compute them."""
    return not bool(((scales.scale > 1 / EXTREME) & (scales.scale < EXTREME)).all())


# Layers with weights


def multiply(places: tuple[int, int, int], axis: int, layer: Layer) -> Layer | None:
    """Sums of products with constant weights of 8 bits, of a scale or one for each channel.

    ``places`` are those of the image, the weights and the bias, ``axis`` that of channels. Weights
    of uint8 may have a zero point, and are those of uint8 images.
    """
    at_x, at_w, at_b = places
    x, w = layer.operands[at_x], layer.operands[at_w]
    data = scales_of(x, *STEPS)
    if data is None or x is None or x.dtype is not layer.dtype:
        return None
    is_unsigned = layer.dtype is U8
    if not isinstance(w, QuantizedValue) or w.tensor is None:
        return None
    weights = w.scales
    if weights is None or w.dtype is not (U8 if is_unsigned else I8):
        return None
    if not (weights.is_per_tensor if is_unsigned else weights.is_symmetric):
        return None
    if not fits(layer.dtype, layer.scales) or (not weights.is_per_tensor and weights.axis != axis):
        return None
    units = data.scale * weights.scale
    operands = list(layer.operands)
    if at_b < len(operands) and (bias := operands[at_b]) is not None:
        bias_dtype = I64 if layer.dtype is I16 else I32
        counted = count_bias(bias, units, bias_dtype)
        if counted is None:
            return None
        operands[at_b] = counted
    return layer._replace(operands=tuple(operands))


def count_bias(bias: Value, units: np.ndarray[Any, Any], dtype: DType) -> QuantizedValue | None:
    """A bias in the unit of products; None where it is computed or too large."""
    if bias.tensor is None:
        return None
    scales = Quantization.of(units)
    if isinstance(bias, QuantizedValue):
        known = bias.scales
        is_counted = (
            known is not None and known.is_symmetric and len(known.scale) in (1, len(units))
            and np.allclose(known.scale, units, rtol=NEAR, atol=0)
        )  # fmt: skip
        if is_counted:
            load = bias.tensor.load
            tensor = Tensor(dtype, bias.tensor.shape, lambda: load().astype(dtype.numpy))
            return QuantizedValue("", dtype, bias.shape, tensor, scales=scales)
        real = read_real(bias)
    else:
        real = bias.array()
    counts = np.rint(real.astype(np.float64) / units.astype(np.float64))
    if np.abs(counts).max(initial=0) > np.iinfo(np.int32).max:
        return None
    tensor = Tensor.of(counts.astype(dtype.numpy))
    return QuantizedValue("", dtype, bias.shape, tensor, scales=scales)


# Other layers


def compute(types: frozenset[DType], layer: Layer) -> Layer | None:
    """An operator of any scales, whose operands are integers of the result's type."""
    forms = [v.scales for v in layer.operands if isinstance(v, QuantizedValue)]
    if any(s is not None and is_extreme(s) for s in (layer.scales, *forms)):
        return None
    return take_operands(types, layer)


def take_operands(types: frozenset[DType], layer: Layer) -> Layer | None:
    """An operator whose operands are integers of the result's type, also of numbers of masks."""
    if layer.dtype not in types or not fits(layer.dtype, layer.scales):
        return None
    operands = [_as_constant(v, layer.dtype) for v in layer.operands]
    if any(scales_of(v, layer.dtype) is None for v in operands):
        return None
    return layer._replace(operands=tuple(operands))


def _as_constant(value: Value | None, dtype: DType) -> Value | None:
    """A constant of one number as integers, which is exact."""
    if value is None or value.tensor is None or value.dtype is not DType.FLOAT32:
        return value
    array = value.array()
    number = float(array.flat[0]) if array.size else math.nan
    if not math.isfinite(number) or not (array == number).all():
        return value
    unit = 1 << (dtype.bits - 2)
    zero = MIDDLE if dtype is U8 else 0
    steps = np.full(array.shape, np.sign(number) * unit + zero, dtype.numpy)
    return QuantizedValue("", dtype, value.shape, Tensor.of(steps),
                          scales=Quantization.of(abs(number) / unit or 1.0, zero))  # fmt: skip


def read_factor(node: Node, value: Value) -> float | None:
    """The positive number that a MUL multiplies a value by, without an activation."""
    if node.op != "MUL" or any(node.attrs.values()):
        return None
    others = [v for v in node.inputs if v is not value]
    if len(others) != 1 or (factor := others[0]) is None or factor.tensor is None:
        return None
    if factor.dtype is not DType.FLOAT32 or factor.tensor.size != 1:
        return None
    number = float(factor.array().reshape(()))
    return number if 1 / EXTREME < number < EXTREME else None


def divide(layer: Layer) -> Layer | None:
    """A quotient by one constant number as a product: quotients have no kernel."""
    x, divisor = layer.operands
    if divisor is None or divisor.tensor is None:
        return None
    real = read_real(divisor) if isinstance(divisor, QuantizedValue) else divisor.array()
    with np.errstate(divide="ignore"):
        inverse = Value("", DType.FLOAT32, real.shape, Tensor.of(np.float32(1) / real))
    product = replace(layer.node, op="MUL")
    return compute(STEPS, layer._replace(node=product, operands=(x, inverse)))


def divide_by_root(layer: Layer) -> Layer | None:
    """One divided by a root; the kernel ends where an operand is below zero, as none may be."""
    computed, lowest = compute(frozenset({I8}), layer), np.iinfo(np.int8).min
    scaled = [] if computed is None else [v for v in computed.operands if v is not None]
    zeros = [v.scales.zero[0] for v in scaled if isinstance(v, QuantizedValue) and v.scales]
    return computed if all(zero == lowest for zero in zeros) else None


def add_up(layer: Layer) -> Layer | None:
    """A sum or a difference; kernels end where a step of an operand is far above the result's."""
    computed = compute(STEPS, layer)
    if computed is None:
        return None
    scaled = [v.scales for v in computed.operands if isinstance(v, QuantizedValue)]
    largest = max(float(s.scale[0]) for s in scaled if s is not None)
    return computed if largest < float(layer.scales.scale[0]) * MOST_STEPS[layer.dtype] else None


def compute_first(types: frozenset[DType], layer: Layer) -> Layer | None:
    """The same of the first operand alone; others are axes."""
    result = compute(types, layer._replace(operands=layer.operands[:1]))
    return None if result is None else result._replace(operands=layer.operands)


def keep_scales(layer: Layer) -> Layer | None:
    """An operator whose kernel has the scales of the operand for its results."""
    same = scales_of(layer.operands[0], layer.dtype)
    if same is None or is_coarse(same, layer):
        return None
    return compute_first(STEPS, layer._replace(scales=same))


def compute_fixed(layer: Layer) -> Layer | None:
    """An operator whose kernel has one scale for results."""
    fixed = (FIXED_16 if layer.dtype is I16 else FIXED).get(layer.node.op)
    if fixed is None or is_coarse(fixed, layer):
        return None
    if layer.dtype is U8:
        fixed = fixed.shift(MIDDLE)
    # of 16 bits those of masks are looked up wrong
    result = (compute if layer.dtype is I16 else take_operands)(STEPS, layer)
    return None if result is None else result._replace(scales=fixed)


def is_coarse(scales: Quantization, layer: Layer) -> bool:
    """Whether the steps of a kernel are too large for those of the model's result."""
    return bool(scales.scale[0] > layer.scales.scale[0] * COARSEST[layer.dtype])


WEIGHTED: Mapping[str, Kernel] = {
    "CONV_2D": partial(multiply, (0, 1, 2), 0),
    "DEPTHWISE_CONV_2D": partial(multiply, (0, 1, 2), 3),
    "FULLY_CONNECTED": partial(multiply, (0, 1, 2), 0),
    "TRANSPOSE_CONV": partial(multiply, (2, 1, 3), 0),
}
KERNELS: Mapping[str, Kernel] = {
    **WEIGHTED,
    **dict.fromkeys(("ADD", "SUB"), add_up),
    "DIV": divide,
    "RSQRT": divide_by_root,
    **dict.fromkeys(("MUL", "RELU", "RELU6", "LEAKY_RELU"), partial(compute, STEPS)),
    "BATCH_MATMUL": partial(compute, STEPS - {U8}),
    **dict.fromkeys(("HARD_SWISH", "GELU", "PRELU"), partial(compute, BYTES)),
    **dict.fromkeys(("ELU", "EXP"), partial(compute, BYTES - {U8})),
    "MEAN": partial(compute_first, STEPS),
    "SUM": partial(compute_first, BYTES),
    "AVERAGE_POOL_2D": keep_scales,
    "RESIZE_BILINEAR": keep_scales,
    **dict.fromkeys(("SOFTMAX", "LOGISTIC", "TANH", "LOG_SOFTMAX"), compute_fixed),
}
