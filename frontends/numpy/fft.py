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
    length = x.dims[axis]
    if isinstance(size, int) and isinstance(length, int):
        if size <= length:
            return slice_axis(x, axis, 0, size)
        widths = [(0, size - length) if i == axis else (0, 0) for i in range(x.ndim)]
        return as_array(np.pad(x, widths))
    padded = np.pad(x, [(0, size) if i == axis else (0, 0) for i in range(x.ndim)])
    return slice_axis(as_array(padded), axis, 0, size)


def _parts(a: Any, n: Any, axis: int) -> tuple[TracedArray, TracedArray | None, np.dtype[Any], int]:
    """The parts of the signal in float64, the type of the result, and the axis."""
    real, imaginary = split_parts(a)
    x = as_array(real)
    at = axis_index(axis, x.ndim)
    result_dtype = x.dtype if x.dtype.kind == "f" and x.dtype.itemsize < 8 else np.dtype(np.float64)
    result_dtype = np.dtype(np.float32) if result_dtype == np.float16 else result_dtype
    x = _set_length(cast(x, np.float64), n, at)
    if not isinstance(imaginary, TracedArray):
        return x, None, result_dtype, at
    return x, _set_length(cast(imaginary, np.float64), n, at), result_dtype, at


def _transform(
    x: TracedArray, y: TracedArray | None, axis: int, onesided: bool = False
) -> tuple[TracedArray, TracedArray]:
    """The two parts of the transform of a signal."""
    rank = x.ndim
    signal = expand_dims(x, [rank])
    if y is not None:
        signal = concatenate([signal, expand_dims(y, [rank])], rank)
    rows = as_array(np.moveaxis(signal, axis, -2))
    flat = reshape(rows, [-1, *rows.shape[-2:]])
    dft = emit(flat, "DFT", None, np.int64(1), onesided=int(onesided))
    count = dft.shape[1]
    spectrum = reshape(dft, [*rows.shape[:-2], count, 2])
    spectrum = as_array(np.moveaxis(spectrum, -2, axis))
    return spectrum[..., 0], spectrum[..., 1]


def _transform_back(
    x: TracedArray, y: TracedArray | None, axis: int
) -> tuple[TracedArray, TracedArray]:
    """The two parts of the inverse transform, times the length.

    It is the transform of the signal whose parts are exchanged: ONNX Runtime's inverse DFT has the
    precision of float32 only.
    """
    y = as_array(np.multiply(x, 0.0)) if y is None else y
    imaginary, real = _transform(y, x, axis)
    return real, imaginary


def _scale(size: Any, norm: Any, forward: bool) -> Any:
    """The factor of a norm, None where there is none."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm != "ortho" and forward != (norm == "forward"):
        return None
    count = np.float64(size) if isinstance(size, int) else cast(as_array(size), np.float64)
    return 1.0 / (np.sqrt(count) if norm == "ortho" else count)


def _finish(part: TracedArray, factor: Any, result_dtype: np.dtype[Any]) -> TracedArray:
    return cast(part if factor is None else as_array(part * factor), result_dtype)


def _trace_transform(transform: Any, forward: bool) -> Any:
    """What traces ``np.fft.fft``, or ``np.fft.ifft``."""

    def handler(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
        x, y, result_dtype, at = _parts(a, n, axis)
        factor = _scale(x.size_of(at), norm, forward)
        return TracedComplex(*(_finish(p, factor, result_dtype) for p in transform(x, y, at)))

    return handler


implements(np.fft.fft)(_trace_transform(_transform, True))
implements(np.fft.ifft)(_trace_transform(_transform_back, False))


@implements(np.fft.rfft)
def _rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    x, y, result_dtype, at = _parts(a, n, axis)
    if y is not None:
        raise TypeError("ufunc 'rfft_n_even' did not contain a loop with signature matching types")
    factor = _scale(x.size_of(at), norm, True)
    return TracedComplex(*(_finish(p, factor, result_dtype) for p in _transform(x, None, at, True)))


@implements(np.fft.irfft)
def _irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    x = as_array(split_parts(a)[0])
    at = axis_index(axis, x.ndim)
    size = 2 * (x.size_of(at) - 1) if n is None else size_list(n)[0]
    x, y, result_dtype, at = _parts(a, size // 2 + 1, axis)
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
    spectrum = [as_array(np.concatenate(pair, at)) for pair in ((x, rest_x), (y, rest_y))]
    signal = _transform_back(spectrum[0], spectrum[1], at)[0]
    return _finish(signal, _scale(size, norm, False), result_dtype)


@implements(np.fft.hfft)
def _hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return np.fft.irfft(np.conjugate(a), n, axis, _swap_norm(norm))


@implements(np.fft.ihfft)
def _ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return np.conjugate(np.fft.rfft(a, n, axis, _swap_norm(norm)))


def _swap_norm(norm: Any) -> Any:
    """The norm of the transform in the other direction."""
    swapped = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
    return swapped.get(norm, norm)


def _list_axes(a: Any, s: Any, axes: Any) -> list[tuple[Any, int]]:
    """The lengths and axes of a transform over several; None is the length of the array."""
    if axes is None:
        axes = range(a.ndim) if s is None else range(a.ndim - len(s), a.ndim)
    sizes = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    if len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    return list(zip(sizes, axes, strict=True))


def _over_several(step: Any, last: Any, default: Any, last_is_first: bool) -> Any:
    """A transform over several axes, whose last axis has a step of its own."""

    def handler(a: Any, s: Any = None, axes: Any = default, norm: Any = None,
                out: Any = None) -> Any:  # fmt: skip
        steps = [(step, *pair) for pair in _list_axes(a, s, axes)]
        if steps:
            steps[-1] = (last, *steps[-1][1:])
        for function, size, axis in reversed(steps) if last_is_first else steps:
            a = function(a, size, axis, norm)
        return a

    return handler


for _suffix, _axes in (("2", (-2, -1)), ("n", None)):
    for _prefix in ("", "i"):
        _step = getattr(np.fft, f"{_prefix}fft")
        implements(getattr(np.fft, f"{_prefix}fft{_suffix}"))(
            _over_several(_step, _step, _axes, True)
        )
        _last = getattr(np.fft, f"{_prefix}rfft")
        implements(getattr(np.fft, f"{_prefix}rfft{_suffix}"))(
            _over_several(_step, _last, _axes, not _prefix)
        )


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
