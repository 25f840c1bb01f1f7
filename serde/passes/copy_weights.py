"""Weights read into memory, so that nothing depends on their files any more."""

from __future__ import annotations

from serde.errors import MalformedFile
from serde.io.tensor_bytes import StoredBytes, open_part
from serde.ir.graph import DType, FileSlice, Graph, Tensor


def copy_weights(graph: Graph) -> None:
    """Give each constant of a graph its own copy of its elements."""
    copied: dict[FileSlice, bytes] = {}
    for value in graph.constants():
        if value.tensor is not None and value.tensor.dtype is not DType.STRING:
            value.tensor = _copy(value.tensor, copied)


def _copy(tensor: Tensor, copied: dict[FileSlice, bytes]) -> Tensor:
    if tensor.where is None:
        array = tensor.load().copy()
        return Tensor(tensor.dtype, tensor.shape, lambda: array)
    if tensor.where not in copied:
        copied[tensor.where] = _read(tensor.where)
    load = StoredBytes(copied[tensor.where], tensor.dtype, tensor.shape)
    return Tensor(tensor.dtype, tensor.shape, load)


def _read(where: FileSlice) -> bytes:
    """The bytes of a part of a file, which are not mapped."""
    with open_part(where) as file:
        file.seek(where.offset)
        data = file.read(where.nbytes)
    if len(data) < where.nbytes:
        raise MalformedFile(where.path, "it became shorter while it was read")
    return data
