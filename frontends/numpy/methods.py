"""Methods and properties of traced arrays: NumPy's functions under the names of ``np.ndarray``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .array import TracedArray, as_array, cast
from .core import reshape
from .manipulation import make_view
from .recorder import refuse

METHODS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in "all any argmax argmin argsort argpartition clip copy cumprod cumsum diagonal dot "
    "max mean min nonzero prod repeat searchsorted squeeze std sum swapaxes take trace "
    "var choose".split()
}


def _astype(x: TracedArray, dtype: Any, order: str = "K", casting: str = "unsafe",
            subok: bool = True, copy: bool = True) -> TracedArray:  # fmt: skip
    expected = np.dtype(dtype)
    if not np.can_cast(x.dtype, expected, casting):
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to {expected!r} according to the "
                        f"rule {casting!r}")  # fmt: skip
    if x.array is not None:
        return TracedArray(x.rec, None, x.array.astype(expected))
    if copy and x.dtype == expected:
        return TracedArray(x.rec, x.value)
    return cast(x, expected)


def _reshape(x: TracedArray, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    sizes = shape[0] if len(shape) == 1 else shape
    return np.reshape(x, sizes, order)


def _transpose(x: TracedArray, *axes: Any) -> Any:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = axes[0]
    return np.transpose(x, axes or None)


def _sort(x: TracedArray, axis: int = -1, **options: Any) -> None:
    x.replace(as_array(np.sort(x, axis, **options)))


def _partition(x: TracedArray, kth: Any, axis: int = -1, **options: Any) -> None:
    x.replace(as_array(np.sort(x, axis)))


def _fill(x: TracedArray, value: Any) -> None:
    x[...] = value


def _view(x: TracedArray, *args: Any, **options: Any) -> Any:
    if args and np.dtype(args[0]) != x.dtype:
        refuse("ndarray.view", "the bits of traced numbers cannot be read as another type",
               "Use astype")  # fmt: skip
    return x[...]


def _flatten(x: TracedArray, order: str = "C") -> Any:
    return TracedArray(x.rec, as_array(np.ravel(x, order)).value)


METHODS.update(
    astype=_astype,
    reshape=_reshape,
    transpose=_transpose,
    sort=_sort,
    partition=_partition,
    fill=_fill,
    compress=lambda x, condition, axis=None, out=None: np.compress(condition, x, axis, out),
    view=_view,
    flatten=_flatten,
    ravel=lambda x, order="C": np.ravel(x, order),
    round=lambda x, decimals=0, out=None: np.round(x, decimals, out),
    conj=lambda x: x,
    conjugate=lambda x: x,
)
PROPERTIES: dict[str, Callable[[TracedArray], Any]] = {
    "T": np.transpose,
    "mT": np.matrix_transpose,
    "real": lambda x: make_view(x, lambda v: reshape(v, x.shape), lambda v: v),
    "imag": np.zeros_like,
    "nbytes": lambda x: x.size * x.itemsize,
    "flat": lambda x: iter(np.ravel(x)),
}
