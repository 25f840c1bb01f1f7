"""NumPy's functions that make an array out of counts, charged to the budget before they run.

Rules make constants of counts that a file claims, so they use these instead of NumPy's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from serde.ir.budget import active_budget

WIDEST = 8  # bytes of an element
Array = np.ndarray[Any, Any]


def charge_elements(*sizes: int) -> None:
    """Charge an array of these sizes, before it is made.

    Raises:
        ConversionError: where it is out of proportion to what is read.
    """
    count = math.prod(max(int(s), 0) for s in sizes)
    if count > 1 << 10:
        shown = "×".join(str(int(s)) for s in sizes[:8])
        active_budget().charge(count * WIDEST, f"a constant of {shown} elements")


def arange(*ends: Any, dtype: Any = None) -> Array:
    """``np.arange``."""
    start, stop, step = (0, *ends, 1)[:3] if len(ends) == 1 else (*ends, 1)[:3]
    charge_elements(math.ceil((stop - start) / step))
    return np.arange(*ends, dtype=dtype)


def linspace(start: float, stop: float, num: int, endpoint: bool = True) -> Array:
    """``np.linspace``."""
    charge_elements(num)
    return np.linspace(start, stop, num, endpoint)


def full(shape: int | Sequence[int], value: Any, dtype: Any = None) -> Array:
    """``np.full``."""
    charge_elements(*((shape,) if isinstance(shape, int) else shape))
    return np.full(shape, value, dtype)


def zeros(shape: int | Sequence[int], dtype: Any = None) -> Array:
    """``np.zeros``."""
    charge_elements(*((shape,) if isinstance(shape, int) else shape))
    return np.zeros(shape, dtype)


def ones(shape: int | Sequence[int], dtype: Any = None) -> Array:
    """``np.ones``."""
    return full(shape, 1, np.float64 if dtype is None else dtype)


def eye(rows: int, columns: int | None = None, k: int = 0, dtype: Any = np.float64) -> Array:
    """``np.eye``."""
    charge_elements(rows, rows if columns is None else columns)
    return np.eye(rows, columns, k, dtype)


def indices(sizes: Sequence[int], dtype: Any = int) -> Array:
    """``np.indices``."""
    charge_elements(len(sizes), *sizes)
    return np.indices(sizes, dtype)


def meshgrid(*axes: Array, indexing: Any = "xy") -> list[Array]:
    """``np.meshgrid``."""
    charge_elements(len(axes), *(len(a) for a in axes))
    return list(np.meshgrid(*axes, indexing=indexing))


def repeat(x: Array, count: int) -> Array:
    """``np.repeat`` of every element as often."""
    charge_elements(x.size, count)
    return np.repeat(x, count)


def tile(x: Array, counts: int | Sequence[int]) -> Array:
    """``np.tile``."""
    charge_elements(x.size, *((counts,) if isinstance(counts, int) else counts))
    return np.tile(x, counts)
