"""Operands of which ONNX Runtime, which is compared with, departs from the standard.

The evidence is in the docstrings of the rules. The generator keeps away from these as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.ir.graph import DType
from serde.spec.schema import ELEMENT_TYPES

from .domains import (
    RULES,
    WINDOWS,
    Array,
    Attrs,
    Rule,
    cast_is_defined,
    has_nan,
    is_float,
    is_moderate,
    magnitude,
    squares_fit,
    window_fits,
)


def bytes_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: sums of two products of uint8 and int8 saturate at 16 bits (VPMADDUBSW).

    Its documentation of quantization says so; the standard has 32 bits. Sums of nothing stay
    unwritten.
    """
    if any(x is not None and not x.size for x in xs):
        return False
    first, second = (xs[0], xs[3]) if len(xs) > 5 else (xs[0], xs[1])
    mixed = first.dtype != second.dtype
    return not mixed or 2 * magnitude(first) * magnitude(second) < 2**15


def ends_are_plain(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: the largest integer as an end with a negative step is the front.

    The standard clamps it to the last element, and so the result is empty.
    """
    if len(xs) < 5:
        return True
    return not ((xs[4] < 0) & (xs[2] >= 2**31 - 1)).any()


def same_pads_are_plain(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: SAME pads forget the dilations; the standard gives size / stride.

    Pads below 0 are an error before opset 19, and 0 from there on.
    """
    if not attrs.get("auto_pad", "").startswith("SAME"):
        return True
    sizes, kernel = xs[0].shape[2:], attrs["kernel_shape"]
    strides = attrs.get("strides", [1] * len(kernel))
    dilated = any(d > 1 for d in attrs.get("dilations", ()))
    return not dilated and all(
        (-(-n // s) - 1) * s + k >= n for n, k, s in zip(sizes, kernel, strides, strict=True)
    )


def varies(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: the variance is a difference of sums, and the mean is subtracted scaled.

    What is constant along the axes has a variance below 0, or loses all digits of its bias.
    """
    x = xs[0].astype(np.float64)
    axes = attrs.get("axes", (0, 2, 3) if len(xs) == 1 else range(2, x.ndim))
    with np.errstate(all="ignore"):
        spread = np.var(x, tuple(axes)) if x.size else np.zeros(1)
        return squares_fit(xs, attrs) and bool((spread > 1e-4).all())


def has_no_nan(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: vector kernels take NaN for a number or not by its place in the tensor."""
    return not any(has_nan(x) for x in xs if isinstance(x, np.ndarray))


def has_elements(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: slices without elements are counted at random."""
    return xs[0].size > 0


def terms_have_elements(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: operands without elements are divided by their size (the process ends)."""
    return all(x.size for x in xs)


def is_in_float32(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: integers are computed in float32, which has 24 digits."""
    return is_float(xs[0]) or magnitude(xs[0]) < 2**24


def trains_precisely(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: training with halves is off by a tenth, in a variance of 1.

    What does not vary loses digits of its bias.
    """
    if not attrs.get("training_mode"):
        return True
    axes = (0, *range(2, xs[0].ndim))
    return xs[0].dtype.itemsize > 2 and varies(xs[:1], {"axes": axes})


def keeps_split_axis(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: keepdims counts where sizes are given, too; the standard ignores it there."""
    return len(xs) < 2 or bool(attrs.get("keepdims", 1))


def has_no_double_infinity(xs: Sequence[Array], attrs: Attrs) -> bool:
    """ONNX Runtime: numbers beside infinity give -inf in float64, and NaN in float32.

    onnx.reference has NaN in both.
    """
    return xs[0].dtype.itemsize < 8 or not bool((xs[0] == np.inf).any())


def quotients_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """onnx.reference, which alone has that of int32: what overflows it is not saturated."""
    return is_float(xs[0]) or magnitude(xs[0]) < 2**31 * float(xs[1].min(initial=1))


QUIRKS: dict[str, Rule] = {
    "Slice": ends_are_plain,
    "BatchNormalization": trains_precisely,
    "Einsum": terms_have_elements,
    "Scan": terms_have_elements,
    "Shrink": is_in_float32,
    "SplitToSequence": keeps_split_axis,
    "Unique": has_elements,
    "MeanVarianceNormalization": varies,
    "InstanceNormalization": varies,
    "MaxPool": same_pads_are_plain,
    "AveragePool": same_pads_are_plain,
    "LpPool": same_pads_are_plain,
    "Relu": has_no_nan,
    "QuantizeLinear": quotients_fit,
    "LogSoftmax": has_no_double_infinity,
    "QLinearConv": bytes_fit,
    "QLinearMatMul": bytes_fit,
    "ConvInteger": bytes_fit,
    "MatMulInteger": bytes_fit,
    "RNN": is_moderate,
    "GRU": is_moderate,
    "LSTM": is_moderate,
}


def is_defined(op: str, operands: Sequence[Array], attrs: Attrs) -> bool:
    """Whether the standard says what a node computes of these operands."""
    if op == "CastLike":
        code = next(c for c, d in ELEMENT_TYPES.items() if d is DType.of(operands[1].dtype))
        return cast_is_defined(operands[:1], {"to": code})
    rules = (RULES.get(op), QUIRKS.get(op), window_fits if op in WINDOWS else None)
    try:
        return all(rule is None or rule(operands, attrs) for rule in rules)
    except (ValueError, IndexError, ArithmeticError):  # operands that do not fit, or are too large
        return False
