"""Joining arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array import TracedArray, as_arrays
from .core import axis_index, concatenate, expand_dims, implements, promote, ravel, reshape
from .ufuncs import finish


@implements(np.concatenate)
def _concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None,
                 casting: str = "same_kind") -> Any:  # fmt: skip
    if isinstance(arrays, TracedArray):
        arrays = list(arrays)
    parts = promote(list(arrays), dtype)
    if axis is None:
        parts, axis = [ravel(p) for p in parts], 0
    ranks = {p.ndim for p in parts}
    if 0 in ranks:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if len(ranks) > 1:
        raise ValueError(
            "all the input array dimensions except for the concatenation axis must match exactly, "
            f"but along dimension {axis} the arrays have {' and '.join(map(str, sorted(ranks)))} "
            "dimension(s)"
        )
    at = axis_index(axis, parts[0].ndim)
    for place in range(parts[0].ndim):
        sizes = {p.dims[place] for p in parts if isinstance(p.dims[place], int)}
        if place != at and len(sizes) > 1:
            raise ValueError("all the input array dimensions except for the concatenation axis "
                             f"must match exactly, but along dimension {place} they are "
                             f"{' and '.join(map(str, sizes))}")  # fmt: skip
    return finish(concatenate(parts, at), out)


@implements(np.stack)
def _stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None,
           casting: str = "same_kind") -> Any:  # fmt: skip
    parts = promote(list(arrays), dtype)
    if len({p.ndim for p in parts}) > 1 or any(
        len({p.dims[i] for p in parts if isinstance(p.dims[i], int)}) > 1
        for i in range(parts[0].ndim)
    ):
        raise ValueError("all input arrays must have the same shape")
    at = axis_index(axis, parts[0].ndim + 1)
    return finish(concatenate([expand_dims(p, [at]) for p in parts], at), out)


@implements(np.vstack)
def _vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    return np.concatenate([np.atleast_2d(a) for a in as_arrays(tup)], 0, dtype=dtype)


@implements(np.hstack)
def _hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    parts = [np.atleast_1d(a) for a in as_arrays(tup)]
    return np.concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype)


@implements(np.dstack)
def _dstack(tup: Any) -> Any:
    return np.concatenate([np.atleast_3d(a) for a in as_arrays(tup)], 2)


@implements(np.column_stack)
def _column_stack(tup: Any) -> Any:
    parts = [p if p.ndim > 1 else reshape(p, [-1, 1]) for p in as_arrays(tup)]
    return np.concatenate(parts, 1)


@implements(np.append)
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    parts = as_arrays([arr, values])
    if axis is None:
        parts, axis = [ravel(p) for p in parts], 0
    return np.concatenate(parts, axis)
