"""TVM's binary form of a tensor, in parameter files and, as base64, in JSON.

Layout (NDArray::Save in TVM's include/tvm/runtime/ndarray.h), little-endian:
u64 magic, u64 0, i32 device type, i32 device number, i32 rank, u8 type code, u8 bits, u16 lanes,
i64 size for each axis, i64 number of bytes, the bytes.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from serde.errors import ConversionError
from serde.io.atomic_write import Sources
from serde.io.tensor_bytes import MOST_AXES, arrange, bytes_of, is_possible_shape, pack
from serde.ir.graph import DType, Tensor

MAGIC = 0xDD5E40F096B4A13F
FIXED = struct.Struct("<QQiiiBBH")
CPU = 1
CHUNK = 3 << 20  # bytes encoded at a time; a multiple of three, so that the pieces join
Array = np.ndarray[Any, Any]

# (code, bits) of DLPack, with TVM's own codes for the eight-bit floats
_CODES = {
    DType.BOOL: (1, 1),
    DType.FLOAT16: (2, 16),
    DType.FLOAT32: (2, 32),
    DType.FLOAT64: (2, 64),
    DType.BFLOAT16: (4, 16),
    DType.FLOAT8E4M3FN: (6, 8),
    DType.FLOAT8E5M2: (7, 8),
    **{DType(f"int{n}"): (0, n) for n in (8, 16, 32, 64)},
    **{DType(f"uint{n}"): (1, n) for n in (8, 16, 32, 64)},
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}
_TVM_NAMES = {DType.FLOAT8E4M3FN: "e4m3_float8", DType.FLOAT8E5M2: "e5m2_float8"}
DTYPE = re.compile(  # TVM's names of element types, of those without tensors as well
    r"(?:u?int|b?float)\d{1,3}(?:x\d{1,3})?|bool(?:x\d{1,3})?|e[45]m[23]_float8|handle", re.ASCII
)
_NAMES = {_TVM_NAMES.get(dtype, dtype.value): dtype for dtype in _CODES}


class BlobError(ValueError):
    """The bytes are no tensor."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header before a tensor's bytes. ``size`` is its own length."""

    dtype: DType
    shape: tuple[int, ...]
    size: int

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.dtype.numpy.itemsize


def find_dtype(name: str) -> DType | None:
    """The element type TVM calls ``name``; None for those without an equal."""
    return _NAMES.get(name)


def name_of(dtype: DType) -> str:
    """TVM's name of an element type.

    Raises:
        ConversionError: for types TVM has no tensors of.
    """
    if dtype not in _CODES:
        raise ConversionError(f"TVM has no tensors of {dtype.value}")
    return _TVM_NAMES.get(dtype, dtype.value)


def header_size(rank: int) -> int:
    """Bytes before the elements of a tensor of ``rank`` axes."""
    return FIXED.size + 8 * rank + 8


def read_rank(head: bytes | memoryview) -> int:
    """The rank of the tensor whose first bytes are ``head``.

    Raises:
        BlobError: when they are not the beginning of one.
    """
    if len(head) < FIXED.size:
        raise BlobError("the tensor is cut off within its header")
    magic, _, _, _, rank, _, _, _ = FIXED.unpack_from(head)
    if magic != MAGIC:
        raise BlobError(f"no tensor begins here: it starts with {magic:#018x}")
    if not 0 <= rank <= MOST_AXES:
        raise BlobError(f"the tensor has the impossible rank {rank}")
    return int(rank)


def read_header(head: bytes | memoryview) -> Header:
    """The header of the tensor whose first bytes are ``head``, at least ``header_size(rank)``.

    Raises:
        BlobError: for an unknown element type, or sizes that do not agree.
    """
    rank = read_rank(head)
    size = header_size(rank)
    if len(head) < size:
        raise BlobError("the tensor is cut off within its header")
    *_, code, bits, lanes = FIXED.unpack_from(head)
    dtype = _DTYPES.get((code, bits))
    if dtype is None or lanes != 1:
        raise BlobError(f"elements of code {code}, {bits} bits and {lanes} lanes are not supported")
    *shape, nbytes = struct.unpack_from(f"<{rank + 1}q", head, FIXED.size)
    if not is_possible_shape(shape):
        raise BlobError(f"the tensor has the impossible shape {shape[:8]}")
    header = Header(dtype, tuple(shape), size)
    if header.nbytes != nbytes:
        raise BlobError(
            f"a tensor of {dtype.value}{shape} takes {header.nbytes} bytes, not {nbytes}"
        )
    return header


def from_base64(text: str) -> Tensor:
    """The tensor ``text`` holds. Its header is decoded now, the elements when they are loaded.

    Raises:
        BlobError: when it holds none, or another number of bytes than its header declares.
    """
    if len(text) % 4:
        raise BlobError("the base64 text is cut off")
    header = read_header(_decode(text, header_size(read_rank(_decode(text, FIXED.size)))))
    nbytes = len(text) // 4 * 3 - (text.endswith("=") + text.endswith("=="))
    if nbytes != header.size + header.nbytes:
        raise BlobError(
            f"a tensor of {header.dtype.value}{list(header.shape)} takes {header.nbytes} bytes,"
            f" not {nbytes - header.size}"
        )
    return Tensor(header.dtype, header.shape, partial(_load_elements, text, header))


def _decode(text: str, count: int) -> bytes:
    """The first ``count`` bytes of base64 text, or as many as there are."""
    try:
        return base64.b64decode(text[: -(-count // 3) * 4], validate=True)[:count]
    except (binascii.Error, ValueError):
        raise BlobError("the text is not base64") from None


def _load_elements(text: str, header: Header) -> Array:
    raw = base64.b64decode(text)
    if len(raw) != header.size + header.nbytes:
        raise ConversionError("a tensor's base64 text holds foreign characters")
    flat = np.frombuffer(raw, np.uint8, header.nbytes, header.size)
    return arrange(flat, header.dtype, header.shape)


def pack_header(tensor: Tensor) -> bytes:
    """The bytes that go before the elements of ``tensor``."""
    name_of(tensor.dtype)
    code, bits = _CODES[tensor.dtype]
    rank = len(tensor.shape)
    fixed = FIXED.pack(MAGIC, 0, CPU, 0, rank, code, bits, 1)
    return fixed + struct.pack(f"<{rank + 1}q", *tensor.shape, tensor.nbytes)


def pack_elements(tensor: Tensor) -> memoryview:
    """The bytes of the elements, little-endian and row-major."""
    flat: Any = pack(tensor.load(), tensor.dtype)
    return memoryview(flat)


def to_base64(tensor: Tensor) -> Iterator[str]:
    """The base64 text of ``tensor``, in pieces."""
    head = pack_header(tensor)
    rest = pack_elements(tensor)
    first = min(-len(head) % 3, len(rest))
    yield base64.b64encode(head + bytes(rest[:first])).decode()
    for at in range(first, len(rest), CHUNK):
        yield base64.b64encode(rest[at : at + CHUNK]).decode()


def write(tensor: Tensor, sources: Sources, out: BinaryIO) -> None:
    """Append ``tensor`` to ``out``, its elements file to file where they lie in one."""
    out.write(pack_header(tensor))
    if tensor.where is not None:
        sources.copy(tensor.where, out)
    else:
        out.write(bytes_of(tensor))
