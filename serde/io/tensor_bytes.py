"""Bytes in files ↔ arrays: little-endian, row-major, narrow elements packed lowest bits first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from serde.errors import MalformedFile
from serde.io.file_bytes import SHORTER
from serde.io.named_file import stat_open
from serde.io.sniff import closing_on_errors, file_id, open_uncharged
from serde.ir.graph import DType, FileSlice, Tensor

MOST_AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32  # NumPy's own limit
MOST_BYTES = 1 << 62
Array = np.ndarray[Any, Any]


def is_possible_shape(shape: Sequence[int]) -> bool:
    """Whether there can be an array of ``shape``; NumPy counts bytes even where a size is 0."""
    if not shape:
        return True
    if len(shape) > MOST_AXES or min(shape) < 0:
        return False
    return math.prod([d or 1 for d in shape]) * 16 <= MOST_BYTES


def open_part(where: FileSlice) -> BinaryIO:
    """Open the file that ``where`` is a part of, to read it.

    Raises:
        MalformedFile: where it is not the file, or no longer as long as the one, that was checked.
    """
    file = open_uncharged(where.path)
    with closing_on_errors(file):
        if where.file is not None and file_id(file) != where.file:
            raise MalformedFile(where.path, "another file took its place while it was read")
        if where.offset + where.nbytes > stat_open(file).st_size:
            raise MalformedFile(where.path, SHORTER)
    return file


def read_slice(where: FileSlice, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Read the bytes of ``where`` as an array."""
    return arrange(np.frombuffer(read_part(where), np.uint8), dtype, shape)


def read_part(where: FileSlice) -> bytes:
    """The bytes of a part of a file.

    Raises:
        MalformedFile: where it is not the file, or no longer as long as the one, that was checked.
    """
    with open_part(where) as file:
        file.seek(where.offset)
        data = file.read(where.nbytes)
    if len(data) < where.nbytes:
        raise MalformedFile(where.path, SHORTER)
    return data


@dataclass(eq=False, slots=True)
class StoredBytes:
    """What loads a tensor from its bytes, as files store them."""

    data: bytes
    dtype: DType
    shape: tuple[int, ...]

    def __call__(self) -> Array:
        return arrange(np.frombuffer(self.data, np.uint8), self.dtype, self.shape)


def bytes_of(tensor: Tensor) -> Any:
    """The bytes of a tensor as ONNX stores them."""
    load = tensor.load
    if isinstance(load, StoredBytes) and tensor.dtype.bits >= 8 and tensor.dtype is not DType.BOOL:
        return load.data
    return pack(load(), tensor.dtype).data


def arrange(flat: Array, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Read bytes as an array: as they lie where elements take whole bytes, spread out otherwise."""
    if dtype.bits < 8:
        return unpack(flat, dtype, shape)
    if dtype is DType.BOOL:
        return flat.reshape(shape) != 0  # type: ignore[no-any-return]
    return flat.view(dtype.numpy.newbyteorder("<")).reshape(shape)  # type: ignore[no-any-return]


def unpack(flat: Array, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Spread 4- or 2-bit elements, lowest bits first, over a byte each."""
    per = 8 // dtype.bits
    shifts = np.arange(per, dtype=np.uint8) * dtype.bits
    bits = (flat[:, None] >> shifts) & ((1 << dtype.bits) - 1)
    size = int(np.prod(shape, dtype=np.int64))
    plain = bits.ravel()[:size]
    if dtype.kind == "i":
        sign = 1 << (dtype.bits - 1)
        plain = ((plain.astype(np.int8) ^ sign) - sign).astype(dtype.numpy)
        return plain.reshape(shape)
    if dtype.kind == "f":
        return plain.astype(np.uint8).view(dtype.numpy).reshape(shape)
    return plain.astype(dtype.numpy).reshape(shape)


def pack(array: Array, dtype: DType) -> Array:
    """The bytes of ``array`` as ONNX stores them: little-endian, narrow elements packed."""
    array = np.ascontiguousarray(array)
    if dtype.bits >= 8:
        return array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8)
    plain = array.reshape(-1)
    codes: Array = plain.view(np.uint8)
    if dtype.kind != "f":
        codes = plain.astype(np.int8).view(np.uint8)
    per = 8 // dtype.bits
    codes = np.concatenate([codes, np.zeros(-len(codes) % per, np.uint8)]).reshape(-1, per)
    codes = (codes & ((1 << dtype.bits) - 1)) << (np.arange(per, dtype=np.uint8) * dtype.bits)
    return np.bitwise_or.reduce(codes, axis=1).astype(np.uint8)  # type: ignore[no-any-return]
