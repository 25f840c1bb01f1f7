"""``np.fft``, by the operator DFT in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import TracedArray, as_array, cast
from .complex import TracedComplex, split_parts
from .core import (
    axis_index,
    concatenate,
    emit,
    expand_dims,
    implements,
    reshape,
    size_list,
    slice_axis,
)  # fmt: skip


def _set_length(x: TracedArray, n: Any, axis: int) -> TracedArray:
    """Cut or zero-padded to ``n`` elements along an axis."""
    if n is None:
        return x
    (size,) = size_list(n)
    own = x.dims[axis]
    if isinstance(size, int) and isinstance(own, int):
        if size <= own:
            return slice_axis(x, axis, 0, size)
        widths = [(0, size - own) if i == axis else (0, 0) for i in range(x.ndim)]
        return as_array(np.pad(x, widths))
    padded = np.pad(x, [(0, size) if i == axis else (0, 0) for i in range(x.ndim)])
    return slice_axis(as_array(padded), axis, 0, size)


def _parts(a: Any, n: Any, axis: int) -> tuple[TracedArray, TracedArray | None, np.dtype[Any], int]:
    """The parts of the signal in float64, the type of the result, and the axis."""
    real, imaginary = split_parts(a)
    x = as_array(real)
    at = axis_index(axis, x.ndim)
    own = x.dtype if x.dtype.kind == "f" and x.dtype.itemsize < 8 else np.dtype(np.float64)
    own = np.dtype(np.float32) if own == np.float16 else own
    x = _set_length(cast(x, np.float64), n, at)
    if not isinstance(imaginary, TracedArray):
        return x, None, own, at
    return x, _set_length(cast(imaginary, np.float64), n, at), own, at


def _transform(
    x: TracedArray, y: TracedArray | None, axis: int, inverse: bool, onesided: bool
) -> tuple[TracedArray, TracedArray]:
    """The two parts of the transform of a signal."""
    rank = x.ndim
    signal = expand_dims(x, [rank])
    if y is not None:
        signal = concatenate([signal, expand_dims(y, [rank])], rank)
    elif inverse:
        signal = concatenate([signal, expand_dims(as_array(np.multiply(x, 0.0)), [rank])], rank)
    rows = as_array(np.moveaxis(signal, axis, -2))
    flat = reshape(rows, [-1, *rows.shape[-2:]])
    made = emit(flat, "DFT", None, np.int64(1), inverse=int(inverse), onesided=int(onesided))
    count = made.shape[1]
    spectrum = reshape(made, [*rows.shape[:-2], count, 2])
    spectrum = as_array(np.moveaxis(spectrum, -2, axis))
    return spectrum[..., 0], spectrum[..., 1]


def _scale(size: Any, norm: Any, forward: bool) -> Any:
    """The factor of a norm beyond what DFT does: nothing forward, 1/n backward."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm in (None, "backward"):
        return 1.0
    root = np.sqrt(np.float64(size)) if isinstance(size, int) else np.sqrt(
        cast(as_array(size), np.float64))  # fmt: skip
    if norm == "ortho":
        return 1.0 / root if forward else root
    return 1.0 / (root * root) if forward else root * root


def _finish(parts: Any, factor: Any, own: np.dtype[Any]) -> TracedComplex:
    scaled = parts if isinstance(factor, float) and factor == 1.0 else [p * factor for p in parts]
    return TracedComplex(*(cast(as_array(p), own) for p in scaled))


@implements(np.fft.fft)
def _fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    x, y, own, at = _parts(a, n, axis)
    made = _transform(x, y, at, False, False)
    return _finish(made, _scale(x.size_of(at), norm, True), own)


@implements(np.fft.ifft)
def _ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    x, y, own, at = _parts(a, n, axis)
    made = _transform(x, y, at, True, False)
    return _finish(made, _scale(x.size_of(at), norm, False), own)


@implements(np.fft.rfft)
def _rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    x, y, own, at = _parts(a, n, axis)
    if y is not None:
        raise TypeError("ufunc 'rfft_n_even' did not contain a loop with signature matching types")
    made = _transform(x, None, at, False, True)
    return _finish(made, _scale(x.size_of(at), norm, True), own)


@implements(np.fft.irfft)
def _irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    x = as_array(split_parts(a)[0])
    at = axis_index(axis, x.ndim)
    size = 2 * (x.size_of(at) - 1) if n is None else size_list(n)[0]
    x, y, own, at = _parts(a, size // 2 + 1, axis)
    y = as_array(np.multiply(x, 0.0)) if y is None else y
    count = (size + 1) // 2
    first = slice_axis(y, at, 0, 1) * 0.0
    even = n is None or (isinstance(size, int) and size % 2 == 0)
    if even:  # the middle of an even spectrum is real
        y = concatenate([first, slice_axis(y, at, 1, -1), first], at)
    else:
        y = concatenate([as_array(first), slice_axis(y, at, 1)], at)
    # the other half is the conjugate of the first, backwards
    rest_x = np.flip(slice_axis(x, at, 1, count), at)
    rest_y = np.negative(np.flip(slice_axis(y, at, 1, count), at))
    whole = [as_array(np.concatenate(pair, at)) for pair in ((x, rest_x), (y, rest_y))]
    real_part = _transform(whole[0], whole[1], at, True, False)[0]
    factor = _scale(size, norm, False)
    return cast(as_array(real_part if isinstance(factor, float) else real_part * factor), own)


def _several(step: Any, default: Any) -> Any:
    def handler(a: Any, s: Any = None, axes: Any = default, norm: Any = None,
                out: Any = None) -> Any:  # fmt: skip
        rank = a.ndim
        axes = tuple(range(rank)) if axes is None and s is None else (
            tuple(range(rank - len(s), rank)) if axes is None else tuple(axes))  # fmt: skip
        for i, axis in reversed(list(enumerate(axes))):
            a = step(a, None if s is None else s[i], axis, norm)
        return a

    return handler


implements(np.fft.fft2)(_several(np.fft.fft, (-2, -1)))
implements(np.fft.ifft2)(_several(np.fft.ifft, (-2, -1)))
implements(np.fft.fftn)(_several(np.fft.fft, None))
implements(np.fft.ifftn)(_several(np.fft.ifft, None))


def _shift(forward: bool) -> Any:
    def handler(x: Any, axes: Any = None) -> Any:
        array = as_array(x)
        places = range(array.ndim) if axes is None else (
            axes if isinstance(axes, (tuple, list)) else (axes,))  # fmt: skip
        for axis in places:
            half = array.size_of(axis_index(axis, array.ndim))
            half = half // 2 if forward else -(half // 2)
            array = as_array(np.roll(array, half, axis))
        return array

    return handler


implements(np.fft.fftshift)(_shift(True))
implements(np.fft.ifftshift)(_shift(False))
