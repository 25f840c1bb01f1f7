"""Fourier transforms and what goes with them."""

from __future__ import annotations

import math

import numpy as np

from serde.ir import arrays
from serde.ir.graph import IR_OPSET, DType, Value
from serde.spec.schema import ELEMENT_TYPES

from . import decomposition, downgrades, upgrades
from .common import cast, count_range, size, widen_float
from .dynamic_axes import apply_along, known_ints
from .padding import fill_axis

MOST_WEIGHTS = 1 << 24  # of the kernels of STFT: 64 MiB


@downgrades[20]("DFT")
def dft_axis_as_attribute(g, x: Value, length=None, axis=None, *, inverse: int, onesided: int):
    known = (-2,) if axis is None else known_ints(axis)
    if known is not None:
        return g.DFT(x, length, axis=known[0] % x.rank, inverse=inverse, onesided=onesided)
    with g.at_opset(IR_OPSET):
        how = {"inverse": inverse, "onesided": onesided}
        return apply_along(g, x, axis, lambda v: g.DFT(v, length, 1, **how), kept=1, resized=True)


@upgrades[20]("DFT")
def dft_axis_as_operand(g, x: Value, length=None, *, axis: int, inverse: int, onesided: int):
    return g.DFT(x, length, g.const(axis, DType.INT64), inverse=inverse, onesided=onesided)


def resize_to_length(g, x: Value, axis: int, length: Value):
    """One axis cut, or filled up with zeros, to ``length``."""
    more = g.Sub(length, size(g, x, axis))
    nothing = g.const([0], DType.INT64)
    return fill_axis(g, x, axis, nothing, more, g.const(0.0, x.type))


def twiddle_factors(g, rows: Value, columns: Value, length: Value, dtype: DType):
    """Cosines and sines of ``2π · row · column / length``, for each pair."""
    steps = g.Mul(g.Unsqueeze(count_range(g, rows), [1]), g.Unsqueeze(count_range(g, columns), [0]))
    part = g.Div(cast(g, g.Mod(steps, length), dtype), cast(g, length, dtype))
    angle = g.Mul(part, 2 * math.pi)
    return g.Cos(angle), g.Sin(angle)


def transform_axis(g, x: Value, at: int, length: Value, inverse: int, onesided: int):
    """The transform of a real or complex tensor along axis ``at``, by a matrix product."""
    u = widen_float(g, x)
    depth = x.ranked_shape[-1]
    if depth not in (1, 2):  # real or complex dynamically: made complex
        u, depth = resize_to_length(g, u, x.rank - 1, g.const([2], DType.INT64)), 2
    half = g.Add(g.Div(length, 2), 1)
    back = bool(inverse and onesided)
    u = resize_to_length(g, u, at, half if back else length)
    order = (*(a for a in range(x.rank - 1) if a != at), at)
    again = tuple(sorted(range(x.rank - 1), key=order.__getitem__))
    real, *rest = (g.Transpose(g.Gather(u, i, axis=x.rank - 1), perm=order) for i in range(depth))
    imaginary = rest[0] if rest else None
    out = half if onesided and not inverse else length
    cosine, sine = twiddle_factors(g, half if back else length, out, length, u.type)
    if back:  # what is left out of the spectrum mirrors what is there
        index = count_range(g, half)
        ends = g.Or(g.Equal(index, 0), g.Equal(g.Mul(index, 2), length))
        twice = g.Where(ends, g.const(1.0, u.type), g.const(2.0, u.type))
        real, imaginary = (None if v is None else g.Mul(v, twice) for v in (real, imaginary))
    sine = sine if inverse else g.Neg(sine)
    parts = [g.MatMul(real, cosine), g.MatMul(real, sine)]
    if imaginary is not None:
        parts[0] = g.Sub(parts[0], g.MatMul(imaginary, sine))
        parts[1] = g.Add(parts[1], g.MatMul(imaginary, cosine))
    if inverse:
        parts = [g.Div(v, cast(g, length, u.type)) for v in parts]
    shaped = [g.Unsqueeze(g.Transpose(v, perm=again), [x.rank - 1]) for v in parts]
    return cast(g, shaped[0] if back else g.Concat(*shaped, axis=x.rank - 1), x.dtype)


@decomposition(17, "DFT")
def dft(g, x: Value, length=None, *, axis: int, inverse: int, onesided: int):
    at = axis % x.rank
    if length is None:
        axis_length = size(g, x, at)
        length = g.Mul(g.Sub(axis_length, 1), 2) if inverse and onesided else axis_length
    count = g.Reshape(cast(g, length, DType.INT64), [1])
    return transform_axis(g, x, at, count, inverse, onesided)


def make_stft_kernels(
    g, x: Value, step: Value, window: Value | None, length: Value | None, onesided: int
):
    """The kernels whose products with frames are ``STFT``: shape (2 * bins, parts, frame), float32.

    The first half of them gives the real parts, the second the imaginary ones; a signal has one
    part, or a real and an imaginary one. None where frames or steps are computed, and of float64,
    for which runtimes have no convolutions.
    """
    parts = x.ranked_shape[2] if x.rank == 3 else 1
    is_wide = x.type not in (DType.FLOAT16, DType.FLOAT32)
    computed = any(v is not None and v.tensor is None for v in (step, window, length))
    if is_wide or computed or parts not in (1, 2) or not _are_numbers(step, length):
        return None
    weights = None if window is None else window.array().ravel().astype(np.float64)
    frames = {int(length.array().item())} if length is not None else set()
    frames |= {len(weights)} if weights is not None else set()
    if len(frames) != 1:
        return None
    (frame,) = frames
    bins = frame // 2 + 1 if onesided else frame
    if not 0 < 2 * parts * bins * frame <= MOST_WEIGHTS:
        return None
    turns = np.outer(arrays.arange(bins), arrays.arange(frame)) % frame
    waves = np.exp(-2j * np.pi / frame * turns) * (1 if weights is None else weights)
    kernels = [np.concatenate([waves.real, waves.imag])]
    if parts == 2:  # i times the waves
        kernels.append(np.concatenate([-waves.imag, waves.real]))
    return g.const(np.stack(kernels, axis=1).astype(np.float32), name="kernels")


def _are_numbers(*values: Value | None) -> bool:
    """Whether each constant that is there is one number, of 1 or more."""
    numbers = [v.array() for v in values if v is not None]
    return all(a.size == 1 and a.item() >= 1 for a in numbers)


def convolve_signal(g, x: Value, kernels: Value, step: int):
    """``STFT`` as a convolution of the signal with the kernels of ``make_stft_kernels``."""
    signal = g.Unsqueeze(x, [1]) if x.rank == 2 else g.Transpose(x, perm=(0, 2, 1))
    (size,) = kernels.static_shape[2:]
    y = g.Conv(widen_float(g, signal), kernels, kernel_shape=(size,), strides=(step,))
    spectra = g.Reshape(y, [0, 2, kernels.static_shape[0] // 2, -1])
    return cast(g, g.Transpose(spectra, perm=(0, 3, 2, 1)), x.dtype)


@decomposition(17, "STFT")
def stft(g, x: Value, step: Value, window=None, length=None, *, onesided: int):
    """A convolution; where frames are not known, gather them, weigh them, and transform each."""
    if (kernels := make_stft_kernels(g, x, step, window, length, onesided)) is not None:
        return convolve_signal(g, x, kernels, step.ints()[0])
    frame = size(g, window, 0) if length is None else g.Reshape(length, [1])
    frame, step = (cast(g, v, DType.INT64) for v in (frame, g.Reshape(step, [1])))
    count = g.Add(g.Div(g.Sub(size(g, x, 1), frame), step), 1)
    starts = g.Mul(count_range(g, count), step)
    where = g.Add(g.Unsqueeze(starts, [1]), g.Unsqueeze(count_range(g, frame), [0]))
    signal = g.Unsqueeze(x, [2]) if x.rank == 2 else x
    frames = g.Gather(signal, where, axis=1)
    if window is not None:
        frames = g.Mul(frames, g.Reshape(window, [1, 1, -1, 1]))
    return transform_axis(g, frames, 2, frame, 0, onesided)


def zero_mask(g, x: Value):
    """1 where ``x`` is 0."""
    return g.Add(x, cast(g, g.Equal(x, 0.0), x.type))


@decomposition(17, "MelWeightMatrix")
def mel_weights(
    g, bins: Value, length: Value, rate: Value, low: Value, high: Value, *, output_datatype: int
):
    """Triangles between frequencies that are equally far apart on the mel scale."""
    bins, length = (g.Reshape(cast(g, v, DType.INT64), [1]) for v in (bins, length))
    rate, low, high = (g.Reshape(cast(g, v, DType.FLOAT64), [1]) for v in (rate, low, high))
    ends = [g.Mul(g.Log(g.Add(g.Div(v, 700.0), 1.0)), 2595 / math.log(10)) for v in (low, high)]
    steps = cast(g, count_range(g, g.Add(bins, 2)), DType.FLOAT64)
    apart = g.Div(g.Sub(ends[1], ends[0]), cast(g, g.Add(bins, 2), DType.FLOAT64))
    mel = g.Add(g.Mul(steps, apart), ends[0])
    hertz = g.Mul(g.Sub(g.Exp(g.Mul(mel, math.log(10) / 2595)), 1.0), 700.0)
    edges = g.Floor(g.Div(g.Mul(cast(g, g.Add(length, 1), DType.FLOAT64), hertz), rate))
    left, middle, right = (
        g.Unsqueeze(g.Slice(edges, [i], g.Add(bins, i), [0], [1]), [0]) for i in range(3)
    )
    row = g.Unsqueeze(cast(g, count_range(g, g.Add(g.Div(length, 2), 1)), DType.FLOAT64), [1])
    peak = g.Equal(row, middle)
    rise = g.Div(g.Sub(row, left), zero_mask(g, g.Sub(middle, left)))
    fall = g.Div(g.Sub(right, row), zero_mask(g, g.Sub(right, middle)))
    slope = g.Where(g.Less(row, middle), rise, fall)
    inside = g.And(g.GreaterOrEqual(row, left), g.Less(row, right))
    return cast(g, g.Where(peak, 1.0, g.Where(inside, slope, 0.0)), ELEMENT_TYPES[output_datatype])
