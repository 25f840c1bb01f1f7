"""Operands for which the standard leaves the result open: the generator keeps away from them.

Each rule has the reason. What ONNX Runtime refuses itself (indices out of range, sizes that do not
fit) needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serde.ir.graph import DType
from serde.spec.schema import ELEMENT_TYPES

Array = Any
Attrs = Mapping[str, Any]
Rule = Callable[[Sequence[Array], Attrs], bool]
LARGEST = 2_000  # elements of a value


def has_nan(x: Array) -> bool:
    """Whether a float array has NaN."""
    return is_float(x) and bool(np.isnan(x).any())


def is_float(x: Array) -> bool:
    """Whether an array is of floats, bfloat16 and 8-bit floats included."""
    return isinstance(x, np.ndarray) and x.dtype != object and DType.of(x.dtype).kind == "f"


def is_finite(x: Array) -> bool:
    """Whether all floats of an array are finite; true of other arrays."""
    return not is_float(x) or bool(np.isfinite(x).all())


def fits(x: Array, dtype: DType) -> bool:
    """Whether a cast to ``dtype`` is defined: floats have to be in the range of an integer type."""
    if not is_float(x):
        return True
    if dtype.kind in "iu":
        ends = range_of(dtype)
        if not is_finite(x):
            return False
        integers = np.trunc(x.astype(np.float64))
        return bool((integers >= ends[0]).all() and (integers <= ends[1]).all())
    return dtype.bits > 8 or dtype.kind == "b" or is_finite(x)


def range_of(dtype: DType) -> tuple[float, float]:
    """The least and the largest float64 within an integer type."""
    bits = dtype.bits - (dtype.kind == "i")
    low = -(2.0**bits) if dtype.kind == "i" else 0.0
    return low, np.nextafter(2.0**bits, 0) if bits > 52 else 2.0**bits - 1


def cast_is_defined(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Casts of floats out of the range of an integer type are undefined; so are odd strings."""
    to = ELEMENT_TYPES[attrs["to"]]
    if xs[0].dtype == object and to.kind != "S":
        return False
    if to.kind == "S" and is_float(xs[0]):
        return False  # how floats are printed is no part of the standard
    return fits(xs[0], to)


def divides(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Integers: division by 0, and of the least by -1, are undefined (the process ends)."""
    a, b = xs
    if is_float(b):
        return True
    least = np.iinfo(a.dtype).min
    overflow = np.logical_and(a == least, b == -1).any() if least < 0 else False
    return not (b == 0).any() and not bool(overflow)


def remainder_is_defined(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Integers: a division by 0, and of the least by -1 (the process ends)."""
    return divides(xs, attrs)


def shift_is_defined(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Shifts by the width of the type or more are undefined in C."""
    return bool((xs[1] < xs[1].dtype.itemsize * 8).all())


def power_is_defined(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Of integers: negative exponents, and results out of the range of the type."""
    a, b = xs
    if is_float(a):
        return True
    with np.errstate(all="ignore"):
        if not is_finite(b) or (b < 0).any():
            return False
        exact = np.power(a.astype(np.float64), b.astype(np.float64))
    return bool(
        np.isfinite(exact).all()
        and (np.abs(exact) < min(2.0**52, range_of(DType.of(a.dtype))[1])).all()
    )


def has_order(xs: Sequence[Array], attrs: Attrs) -> bool:
    """NaN has no place in an order."""
    return not any(has_nan(x) for x in xs)


def is_all_finite(xs: Sequence[Array], attrs: Attrs) -> bool:
    """What is not finite has no place in an image, and is NaN or not by the order of a sum."""
    return all(is_finite(x) for x in xs if isinstance(x, np.ndarray))


def quantizes(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Scales have to be normal positive numbers, and the quotients integers that exist."""
    with np.errstate(all="ignore"):
        small = float(np.finfo(np.float32).tiny)
        scale = xs[1].astype(np.float64)
        return is_all_finite(xs, attrs) and bool((scale > small).all())


def is_unsigned_negation(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Neg has signed types only; the least integer has no negative."""
    return is_float(xs[0]) or not (xs[0] == np.iinfo(xs[0].dtype).min).any()


def clip_is_ordered(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Bounds that are NaN have no meaning; a lower one above the upper one has."""
    return not any(has_nan(x) for x in xs[1:] if isinstance(x, np.ndarray))


def range_is_short(xs: Sequence[Array], attrs: Attrs) -> bool:
    """A step of 0, ends that are not finite, and results that are too long."""
    if not is_all_finite(xs, attrs):
        return False
    start, end, step = (float(x) for x in xs)
    return step != 0 and abs((end - start) / step) < LARGEST


def is_small(x: Array, updates: Array) -> bool:
    """Whether no product of an element and all updates overflows."""
    bits = 8 * x.dtype.itemsize - 1
    with np.errstate(all="ignore"):
        return float(magnitude(x) * max(magnitude(updates), 1.0) ** updates.size) < 2.0 ** min(
            bits, 52
        )


def are_plain_factors(xs: Sequence[Array]) -> bool:
    """Whether no product of some floats overflows or loses digits."""
    sizes = [np.abs(x.astype(np.float64)) for x in xs if is_float(x)]
    return all(((s == 0) | ((s > 1e-3) & (s < 1e3))).all() for s in sizes)


def reduces_exactly(xs: Sequence[Array], how: str) -> bool:
    """Whether the order of updates makes no difference."""
    if how in ("max", "min"):
        return has_order(xs, {})
    if xs[0].dtype == bool:
        return False
    if how == "mul":
        return are_plain_factors(xs) if is_float(xs[0]) else is_small(xs[0], xs[2])
    return how != "add" or adds_exactly(xs[0], xs[2])


def adds_exactly(x: Array, updates: Array) -> bool:
    """Whether no sum of an element and some updates overflows or loses digits."""
    if is_float(x):
        return all(sums_fit([y], {}) for y in (x, updates))
    return magnitude(x) + magnitude(updates) * updates.size < exact_top(x)


def exact_top(x: Array) -> float:
    """The end of the integers of a type that ONNX Runtime's ReduceSum adds up exactly.

    It adds in float64: [2**62 - 1] of int64 is 2**62, and what overflows ends at the last integer.
    """
    return min(2.0**52, range_of(DType.of(x.dtype))[1])


def scatters_once(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Which of several updates of one element stays is open, unless they are reduced.

    Products that overflow are, too, sums that do so on the way and of booleans, and what is the
    largest of NaN.
    """
    if attrs.get("reduction", "none") != "none":
        return reduces_exactly(xs, attrs["reduction"])
    data, index = xs[0], xs[1]
    if index.size == 0:
        return True
    axis = attrs.get("axis", 0) % data.ndim
    at = np.where(index < 0, index + data.shape[axis], index)
    ordered = np.sort(at, axis=axis)
    return not bool((np.diff(ordered, axis=axis) == 0).any())


def scatters_slices_once(xs: Sequence[Array], attrs: Attrs) -> bool:
    """The same of ScatterND, whose indices are rows."""
    if attrs.get("reduction", "none") != "none":
        return reduces_exactly(xs, attrs["reduction"])
    data, index = xs[0], xs[1]
    if index.size == 0:
        return True
    rows = index.reshape(-1, index.shape[-1])
    rows = np.where(rows < 0, rows + np.array(data.shape[: rows.shape[1]]), rows)
    return len(np.unique(rows, axis=0)) == len(rows)


def labels_exist(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Labels that are no class are undefined, but for the one that is ignored.

    A mean with weights that add up to 0 is 0 / 0.
    """
    classes, ignored = xs[0].shape[1], attrs.get("ignore_index")
    if not xs[1].size or (len(xs) > 2 and (np.abs(xs[2]) < 1e-3).any()):
        return False
    return bool((((xs[1] >= 0) & (xs[1] < classes)) | (xs[1] == ignored)).all())


def squares_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Sums of squares and products on the way that overflow or are NaN depend on their order.

    A mean of none is 0 / 0.
    """
    if not xs[0].size:
        return False
    limit = 100 if xs[0].dtype.itemsize == 2 else 1e15
    with np.errstate(all="ignore"):
        return all((np.abs(x) < limit).all() for x in xs if is_float(x))


def norm_is_defined(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Squares that overflow, or that underflow: a norm of 0 divides what is not 0."""
    with np.errstate(all="ignore"):
        largest = np.abs(xs[0].astype(np.float64)).max(attrs.get("axis", -1), initial=0)
        tiny = 1e-3 if xs[0].dtype.itemsize == 2 else 1e-15
        return squares_fit(xs, attrs) and bool(((largest == 0) | (largest > tiny)).all())


def sums_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Sums that overflow on the way depend on their order; of integers, a mean of none is 0 / 0.

    What integers add up to wraps around in their own type or in a wider one, or loses digits.
    """
    x = xs[0]
    if not is_float(x):
        return x.size > 0 and magnitude(x) * x.size < exact_top(x)
    top = 1e30 if x.dtype.itemsize > 2 else 1e3
    with np.errstate(all="ignore"):
        return all(not (np.isfinite(y) & (np.abs(y) > top)).any() for y in xs if is_float(y))


def mean_is_defined(xs: Sequence[Array], attrs: Attrs) -> bool:
    """A mean of none (the standard: undefined), and sums that overflow on the way."""
    return xs[0].size > 0 and sums_fit(xs, attrs)


def windows_hold_elements(xs: Sequence[Array], attrs: Attrs) -> bool:
    """A mean of padding only is 0 / 0, and sums that overflow on the way."""
    kernel, pads = attrs["kernel_shape"], attrs.get("pads")
    if pads and not attrs.get("count_include_pad"):
        gaps = attrs.get("dilations", [1] * len(kernel))
        reach = [d * (k - 1) + 1 for k, d in zip(kernel, gaps, strict=True)]
        if any(pad >= size for pad, size in zip(pads, reach * 2, strict=True)):
            return False
    return sums_fit(xs, attrs)


def sums_of_squares_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Sums of squares that overflow: of floats their order, of integers all."""
    x = xs[0]
    fits = is_float(x) or magnitude(x) ** 2 * x.size < exact_top(x)
    return fits and sums_fit(xs, attrs)


def products_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Sums of products that overflow: of floats their order, of integers all."""
    a, b = xs[0], xs[min(1, len(xs) - 1)]
    if is_float(a):
        return sums_fit(xs, attrs)
    bits = 31 if a.dtype.itemsize <= 4 else 52
    rest = magnitude(xs[2]) if len(xs) > 2 else 0.0
    return magnitude(a) * magnitude(b) * max(a.size, 1) + rest < 2.0**bits


def product_fits(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Products of integers that overflow: they wrap around, or end at the least number."""
    x = xs[0]
    if is_float(x):
        return sums_fit(xs, attrs)
    factors = np.maximum(np.abs(x.astype(np.float64)), 1)
    return x.size > 0 and float(np.log2(factors).sum()) < 8 * x.dtype.itemsize - 2


def magnitude(x: Array) -> float:
    """The largest absolute value."""
    return float(np.abs(x.astype(np.float64)).max(initial=0))


def has_range(xs: Sequence[Array], attrs: Attrs) -> bool:
    """A range of nothing, or one that rounding may make 0, has no scale."""
    x = xs[0]
    return x.size > 0 and is_finite(x) and magnitude(x) > 1e-6


def has_largest(xs: Sequence[Array], attrs: Attrs) -> bool:
    """The largest of no elements, or of NaN, has no place."""
    return xs[0].size > 0 and has_order(xs, attrs)


def window_fits(xs: Sequence[Array], attrs: Attrs) -> bool:
    """A window larger than the padded input gives a size below 1, which is rounded variously."""
    sizes = xs[0].shape[2:]
    weight = xs[3] if len(xs) > 5 else xs[-1]  # QLinearConv has scales between
    kernel = attrs.get("kernel_shape") or (xs[1] if xs[1].ndim > 1 else weight).shape[2:]
    dilations = attrs.get("dilations", [1] * len(kernel))
    pads = attrs.get("pads", [0] * 2 * len(kernel))
    if attrs.get("auto_pad", "NOTSET").startswith("SAME"):
        return True
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    room = [s + pads[i] + pads[i + len(kernel)] for i, s in enumerate(sizes)]
    return all(r <= s for r, s in zip(reach, room, strict=True))


def corners_are_apart(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Corners that are aligned are two: an axis of size 1 divides by 0."""
    return not attrs.get("align_corners") or not (xs[1][2:] == 1).any()


def lengths_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Lengths that are negative or more than there is."""
    time, batch = attrs.get("time_axis", 0), attrs.get("batch_axis", 1)
    return time != batch and bool(((xs[1] >= 0) & (xs[1] <= xs[0].shape[time])).all())


def blocks_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Blocks that are no part of the sizes."""
    return all(size % attrs["blocksize"] == 0 for size in xs[0].shape[2:])


def flags_fit(xs: Sequence[Array], attrs: Attrs) -> bool:
    """A flag for no element, which ONNX Runtime leaves out."""
    axis = attrs.get("axis")
    return len(xs[1]) <= (xs[0].size if axis is None else xs[0].shape[axis])


def is_moderate(xs: Sequence[Array], attrs: Attrs) -> bool:
    """Whether all floats are finite and no sum or product of some overflows."""
    with np.errstate(all="ignore"):
        return all(
            not is_float(x) or bool((np.isfinite(x) & (np.abs(x) < 1e4)).all())
            for x in xs if isinstance(x, np.ndarray)
        )  # fmt: skip


RULES: dict[str, Rule] = {
    "AffineGrid": corners_are_apart,
    "NegativeLogLikelihoodLoss": labels_exist,
    "SoftmaxCrossEntropyLoss": labels_exist,
    **dict.fromkeys(
        "LayerNormalization RMSNormalization GroupNormalization InstanceNormalization LRN "
        "BatchNormalization MeanVarianceNormalization".split(),
        squares_fit,
    ),
    **dict.fromkeys(
        "ReduceL1 ReduceLogSum ReduceLogSumExp "
        "Mean LpPool GlobalLpPool Attention Softmax LogSoftmax "
        "CumSum CumProd ReduceSum Col2Im".split(),
        sums_fit,
    ),
    **dict.fromkeys(["GlobalAveragePool", "ReduceMean"], mean_is_defined),
    "LpNormalization": norm_is_defined,
    "AveragePool": windows_hold_elements,
    **dict.fromkeys(["ReduceL2", "ReduceSumSquare"], sums_of_squares_fit),
    **dict.fromkeys("Gemm MatMul Einsum".split(), products_fit),
    **dict.fromkeys("Conv ConvTranspose".split(), is_moderate),
    "Det": is_moderate,
    "ReduceProd": product_fits,
    "DFT": is_all_finite,
    "STFT": is_all_finite,
    "Cast": cast_is_defined,
    "Compress": flags_fit,
    "ReverseSequence": lengths_fit,
    "SpaceToDepth": blocks_fit,
    "Div": divides,
    "Mod": remainder_is_defined,
    "BitShift": shift_is_defined,
    "Pow": power_is_defined,
    "TopK": has_order,
    "Unique": has_order,
    "ArgMax": has_order,
    "MaxPool": has_order,
    "GlobalMaxPool": has_order,
    "MaxUnpool": has_order,
    "ArgMin": has_order,
    "ReduceMax": has_order,
    "ReduceMin": has_order,
    "Sign": has_order,
    "Hardmax": has_largest,
    "Clip": clip_is_ordered,
    "Range": range_is_short,
    "QuantizeLinear": quantizes,
    "DequantizeLinear": quantizes,
    "DynamicQuantizeLinear": has_range,
    "ScatterElements": scatters_once,
    "ScatterND": scatters_slices_once,
    "Neg": is_unsigned_negation,
    "Abs": is_unsigned_negation,
    "NonMaxSuppression": is_all_finite,
    "GridSample": is_all_finite,
    "RoiAlign": is_all_finite,
    "MaxRoiPool": is_all_finite,
    "Resize": is_all_finite,
    "DeformConv": is_all_finite,
}


WINDOWS = frozenset("AveragePool Conv ConvInteger LpPool MaxPool QLinearConv".split())
