"""Sparse arrays, spread out when they are asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from serde.errors import MalformedFile
from serde.ir.budget import active_budget
from serde.ir.graph import Tensor

DENSE, ROW_SPARSE, CSR = 0, 1, 2  # storage types, and how many auxiliary arrays each has
MOST_ELEMENTS = 1 << 56  # of an array, sizes of 0 left aside
Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]


def is_possible(shape: Shape) -> bool:
    """Whether an array can have ``shape``: sizes that count something NumPy can address."""
    count = 1
    for size in shape:
        if size < 0:
            return False
        count *= size or 1
    return count < MOST_ELEMENTS


def to_dense(path: str, shape: Shape, values: Tensor, places: Sequence[Tensor]) -> Tensor:
    """The dense tensor of ``shape`` that holds ``values`` and 0 elsewhere.

    ``places`` are the rows of a row_sparse array, or for csr where each row's values begin and
    their columns. What they hold is looked at, and may raise MalformedFile, when it is loaded.
    """
    if any(p.dtype.kind not in "iu" for p in places):
        raise MalformedFile(path, "the indices of a sparse array are no integers")
    nbytes = math.prod(shape) * values.dtype.numpy.itemsize
    active_budget().charge_file(nbytes, path, f"a sparse array of shape {shape}")
    into = _rows if len(places) == ROW_SPARSE else _csr
    return Tensor(values.dtype, shape, partial(into, path, shape, values, places))


def _rows(path: str, shape: Shape, values: Tensor, places: Sequence[Tensor]) -> Array:
    rows, stored = _indices(places[0]), values.load()
    if stored.shape[:1] != rows.shape or stored.shape[1:] != shape[1:]:
        raise MalformedFile(path, f"a row_sparse array of shape {shape} stores {stored.shape}")
    if rows.size and not 0 <= rows.min() <= rows.max() < shape[0]:
        raise MalformedFile(path, f"a row_sparse array of shape {shape} has rows outside it")
    out = np.zeros(shape, values.dtype.numpy)
    out[rows] = stored
    return out


def _csr(path: str, shape: Shape, values: Tensor, places: Sequence[Tensor]) -> Array:
    starts, columns = map(_indices, places)
    data = values.load().ravel()
    fits = len(shape) == 2 and len(starts) == shape[0] + 1 and len(columns) == len(data)
    fits = (
        fits and starts[0] == 0 and starts[-1] == len(data) and bool((np.diff(starts) >= 0).all())
    )
    if not fits or (columns.size and not 0 <= columns.min() <= columns.max() < shape[1]):
        raise MalformedFile(path, f"a csr array of shape {shape} has indices that do not fit it")
    out = np.zeros(shape, values.dtype.numpy)
    out[np.repeat(np.arange(shape[0]), np.diff(starts)), columns] = data
    return out


def _indices(tensor: Tensor) -> Array:
    return tensor.load().ravel().astype(np.int64)
