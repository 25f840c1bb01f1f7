"""Zips of ``.npy`` members, as NumPy writes them: the one reader of all formats.

Members stored as they are stay in the file; deflated ones are inflated when they are asked for,
and charged to the budget when they are read.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np

from serde.errors import MalformedFile
from serde.io.named_file import raise_of_system
from serde.io.sniff import file_id, open_regular
from serde.io.tensor_bytes import is_possible_shape, read_slice
from serde.ir.budget import active_budget
from serde.ir.graph import DType, FileSlice, Tensor

ZIP = b"PK\x03\x04"  # what a member begins with

LOCAL = 30  # bytes of a member's local header before its name
MOST_MEMBERS, LONGEST_NAME, MOST_DIMS = 1_000_000, 65_536, 32
LONGEST_HEADER = 10_000
HEADER = re.compile(
    rb"\{'descr': (?:'([<>|=]?)([a-zA-Z]\d{1,2})'|\[\('bfloat16', '([<>|=]?)(u2)'\)\]), "
    rb"'fortran_order': (True|False), 'shape': \(([\d, L]{0,400})\),? ?\}\s*"
)
TYPES = {
    b"b1": DType.BOOL, b"i1": DType.INT8, b"i2": DType.INT16, b"i4": DType.INT32,
    b"i8": DType.INT64, b"u1": DType.UINT8, b"u2": DType.UINT16, b"u4": DType.UINT32,
    b"u8": DType.UINT64, b"f2": DType.FLOAT16, b"f4": DType.FLOAT32, b"f8": DType.FLOAT64,
    b"V2": DType.BFLOAT16,  # what NumPy calls it
}  # fmt: skip
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, EOFError, OverflowError,
          NotImplementedError, RuntimeError, OSError)  # fmt: skip
Open = Callable[[], IO[bytes]]


class _Member(NamedTuple):
    """An array in the archive: where its member's data begin, and what its header says."""

    at: int
    packed: int  # bytes there
    header: int  # bytes before the elements, once inflated
    is_deflated: bool
    dtype: DType
    is_swapped: bool
    is_fortran: bool
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.bits // 8


@contextmanager
def open_npz(source: str | bytes, path: str) -> Iterator[NpzReader]:
    """Open a zip, given as its path or its bytes; ``path`` is what errors call it.

    Raises:
        MalformedFile: for an archive or a member that is not what it claims to be.
    """
    open_ = _opener(source)
    try:
        with open_() as file, zipfile.ZipFile(file) as archive:
            number = file_id(file) if isinstance(source, str) else None
            yield NpzReader(archive, file, path, source, open_, number)
    except BROKEN as error:
        raise_of_system(error)
        raise MalformedFile(path, f"a zip archive that cannot be read: {error}") from error


def _opener(source: str | bytes) -> Open:
    return lambda: open_regular(source) if isinstance(source, str) else io.BytesIO(source)


class NpzReader:
    """An open archive; ``members`` are its arrays, by name."""

    def __init__(
        self, archive: zipfile.ZipFile, file: IO[bytes], path: str, source: str | bytes,
        open_: Open, number: tuple[int, int] | None,
    ) -> None:  # fmt: skip
        self.archive, self.file, self.path = archive, file, path
        self.source, self.open = source, open_
        self.number = number
        self.members: dict[str, zipfile.ZipInfo] = {}
        infos = [i for i in archive.infolist() if i.filename.endswith(".npy")]
        if len(infos) > MOST_MEMBERS:
            raise MalformedFile(path, f"claims {len(infos)} members")
        for info in infos:
            if self.members.setdefault(info.filename.removesuffix(".npy"), info) is not info:
                raise MalformedFile(path, f"two members are called {info.filename!r}")

    def fail(self, info: zipfile.ZipInfo, reason: str) -> MalformedFile:
        """The error about a member."""
        return MalformedFile(self.path, f"member {info.filename[:80]!r} {reason}")

    def tensor(self, info: zipfile.ZipInfo) -> Tensor:
        """The array of a member."""
        member = self._read_header(info)
        if member.nbytes != info.file_size - member.header:
            raise self.fail(info, f"has not the size of {member.dtype.value}{list(member.shape)}")
        plain = not (member.is_deflated or member.is_swapped or member.is_fortran)
        if plain and isinstance(self.source, str) and member.dtype is not DType.BOOL:
            where = FileSlice(self.source, member.at + member.header, member.nbytes, self.number)
            load = partial(read_slice, where, member.dtype, member.shape)
            return Tensor(member.dtype, member.shape, load, where)
        fail = partial(self.fail, info)
        if member.is_deflated:
            what = f"member {info.filename[:80]!r}"
            active_budget().charge_file(member.header + member.nbytes, self.path, what)
        return Tensor(member.dtype, member.shape, partial(_load, member, info.CRC, self.open, fail))

    def _read_header(self, info: zipfile.ZipInfo) -> _Member:
        if len(info.filename) > LONGEST_NAME or info.flag_bits & 1:
            raise self.fail(info, "is encrypted, or its name is endless")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.fail(info, "is compressed in a way that NumPy does not use")
        at = find_member_data(self.file, info)
        if at is None:
            raise self.fail(info, "has no header, or ends behind the file")
        with self.archive.open(info) as file:
            raw = file.read(8)
            width = 2 if raw[6:7] == b"\x01" else 4
            size = int.from_bytes(file.read(width), "little")
            text = file.read(min(size, LONGEST_HEADER))
        match = HEADER.fullmatch(text)
        if raw[:6] != b"\x93NUMPY" or len(text) != size or match is None:
            raise self.fail(info, "is no array")
        order, code = match[1] or match[3] or b"", match[2] or match[4]
        dtype = DType.BFLOAT16 if match[4] else TYPES.get(code)
        shape = tuple(int(d.strip(b"L")) for d in match[6].replace(b" ", b"").split(b",") if d)
        if dtype is None:
            raise self.fail(info, f"holds {code.decode()}, not numbers")
        if len(shape) > MOST_DIMS or not is_possible_shape(shape):
            raise self.fail(info, f"claims the shape {shape}")
        return _Member(
            at, info.compress_size, 8 + width + size, info.compress_type != zipfile.ZIP_STORED,
            dtype, order == b">", match[5] == b"True", shape,
        )  # fmt: skip


def find_member_data(file: IO[bytes], info: zipfile.ZipInfo) -> int | None:
    """Where a member's data begin: behind its local header, whose lengths are its own.

    None where it has no such header, or ends behind the file.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(info.header_offset)
    header = file.read(LOCAL)
    if len(header) < LOCAL or not header.startswith(ZIP):
        return None
    name, extra = struct.unpack_from("<HH", header, 26)
    at = int(info.header_offset + LOCAL + name + extra)
    return at if at + info.compress_size <= size else None


def _load(member: _Member, crc: int, open_: Open, fail: Callable[[str], MalformedFile]) -> Any:
    """Inflate a member, and check what MXNet and NumPy check of it."""
    with open_() as file:
        file.seek(member.at)
        data = file.read(member.packed)
    if member.is_deflated:
        try:
            data = zlib.decompressobj(-15).decompress(data, member.header + member.nbytes)
        except zlib.error as error:
            raise fail(f"cannot be inflated: {error}") from error
    if len(data) != member.header + member.nbytes or zlib.crc32(data) != crc:
        raise fail("is damaged: its checksum is another")
    flat = np.frombuffer(data, np.uint8, offset=member.header)
    if member.dtype is DType.BOOL:
        array = flat != 0
    else:
        array = flat.view(member.dtype.numpy.newbyteorder(">" if member.is_swapped else "<"))
        array = array.astype(member.dtype.numpy, copy=False)
    shaped = array.reshape(member.shape, order="F" if member.is_fortran else "C")
    return shaped.copy(order="C") if member.is_fortran else shaped
