"""The Array API's namespace (2024.12) of traced arrays: what ``x.__array_namespace__()`` returns.

NumPy's own functions have the standard's names and signatures; traced arrays take part in them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .array import TracedArray

__array_api_version__ = "2024.12"
linalg = np.linalg


class FloatLimits(NamedTuple):
    """What ``finfo`` gives: Python's floats, where NumPy has those of the element type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FloatLimits:
    """``np.finfo`` of an element type or an array."""
    info = np.finfo(type.dtype if isinstance(type, (TracedArray, np.ndarray)) else type)
    return FloatLimits(
        info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal),
        info.dtype,
    )  # fmt: skip


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """``np.floor_divide``, but with the standard's numbers where an operand is infinite."""
    quotient = np.floor_divide(x1, x2)
    if quotient.dtype.kind != "f":
        return quotient
    exact = np.true_divide(x1, x2)
    return np.copysign(np.where(np.isinf(x1) | np.isinf(x2), exact, quotient), exact)


class _Fft:
    """``np.fft``, with the standard's options."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np.fft, name)

    def fftfreq(self, n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
        """``np.fft.fftfreq`` in an element type."""
        return np.fft.fftfreq(n, d).astype(dtype or np.float64)

    def rfftfreq(self, n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
        """``np.fft.rfftfreq`` in an element type."""
        return np.fft.rfftfreq(n, d).astype(dtype or np.float64)


fft = _Fft()


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """``np.clip`` with the standard's names of the bounds."""
    return np.clip(x, min, max)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """``np.sort``, downwards too."""
    values = np.sort(x, axis, stable=stable)
    return np.flip(values, axis) if descending else values


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """``np.argsort``, downwards too; equal elements stay in order."""
    if not descending:
        return np.argsort(x, axis, stable=stable)
    places = np.flip(np.argsort(np.flip(x, axis), axis, stable=True), axis)
    return x.shape[axis] - 1 - places


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """``np.broadcast_arrays``; the standard has a list."""
    return list(np.broadcast_arrays(*arrays))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Any]:
    """``np.meshgrid``; the standard has a list."""
    return list(np.meshgrid(*arrays, indexing=indexing))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(np, name)
