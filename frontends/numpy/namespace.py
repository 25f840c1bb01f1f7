"""The Array API's namespace (2024.12) of traced arrays: what ``x.__array_namespace__()`` returns.

NumPy's own functions have the standard's names and signatures; traced arrays take part in them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .recorder import HOOKS

__array_api_version__ = "2024.12"
fft, linalg = np.fft, np.linalg


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """``np.clip`` with the standard's names of the bounds."""
    return np.clip(x, min, max)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """``np.sort``, downwards too."""
    found = np.sort(x, axis, stable=stable)
    return np.flip(found, axis) if descending else found


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


HOOKS["namespace"] = sys.modules[__name__]
