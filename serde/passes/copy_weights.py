"""Weights read into memory, so that nothing depends on their files any more."""

from __future__ import annotations

from collections.abc import Iterable

from serde.io.tensor_bytes import StoredBytes, read_part
from serde.ir.graph import DType, FileSlice, Tensor, Value


def copy_weights(values: Iterable[Value]) -> None:
    """Give each constant among values its own copy of its elements."""
    copied: dict[FileSlice, bytes] = {}
    for value in values:
        if value.tensor is not None and value.tensor.dtype is not DType.STRING:
            value.tensor = _copy(value.tensor, copied)


def _copy(tensor: Tensor, copied: dict[FileSlice, bytes]) -> Tensor:
    if tensor.where is None:
        array = tensor.load().copy()
        return Tensor(tensor.dtype, tensor.shape, lambda: array)
    if tensor.where not in copied:
        copied[tensor.where] = read_part(tensor.where)
    load = StoredBytes(copied[tensor.where], tensor.dtype, tensor.shape)
    return Tensor(tensor.dtype, tensor.shape, load)
