"""Parameter files: the bytes of ``relay.save_param_dict``, and NumPy's ``.npz``.

Layout of the former (src/runtime/file_utils.cc in TVM), little-endian, unchanged since TVM 0.3:
u64 magic, u64 0, u64 count, count × (u64 length, name), u64 count, count × tensor (ndarray.py).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from serde.errors import MalformedFile
from serde.io.atomic_write import Replacing, Sources
from serde.io.named_file import stat_open
from serde.io.npz import open_npz
from serde.io.sniff import HEAD, ZIP_MAGICS, file_id, open_regular, refuse_other_file
from serde.io.tensor_bytes import read_slice
from serde.ir.graph import DType, FileSlice, Tensor

from .. import ndarray
from .magic import PARAMS_MAGIC, kind_of

WORD = struct.Struct("<Q")


def read_params(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read the parameters at ``path``; their elements stay in the file until they are loaded.

    Raises:
        MalformedFile: with the byte, or the member, where the file stops being one.
    """
    path = os.fspath(path)
    with open_regular(path) as file:
        start = file.read(HEAD)
        file.seek(0)
        refuse_other_file(path, start)
        if start.startswith(ZIP_MAGICS):
            return _read_npz(path)
        return _Reader(path, file, stat_open(file).st_size).read_params()


def read_arrays(path: Path) -> dict[str, Tensor] | None:
    """The arrays of a file of parameters; None for other files."""
    return read_params(path) if kind_of(path) == "params" else None


def map_tensor(dtype: DType, shape: tuple[int, ...], where: FileSlice) -> Tensor:
    """A tensor that stays in its file. Bytes of bools are not copied: any but 0 is true."""
    load = partial(read_slice, where, dtype, shape)
    return Tensor(dtype, shape, load, None if dtype is DType.BOOL else where)


def write_params(params: Mapping[str, Tensor], path: str | os.PathLike[str]) -> list[str]:
    """Write what ``relay.load_param_dict`` reads; return the files written."""
    path = os.fspath(path)
    with Replacing(path) as files, files.open(path) as out:
        write_into(params, out)
    return files.written


def write_into(params: Mapping[str, Tensor], out: BinaryIO) -> None:
    """Write what ``relay.load_param_dict`` reads into an open file."""
    out.write(struct.pack("<QQQ", PARAMS_MAGIC, 0, len(params)))
    for name in params:
        raw = name.encode()
        out.write(WORD.pack(len(raw)) + raw)
    out.write(WORD.pack(len(params)))
    with Sources() as sources:
        for tensor in params.values():
            ndarray.write(tensor, sources, out)


class _Reader:
    """A file read from front to back, every length checked against what is left."""

    def __init__(self, path: str, file: IO[bytes], size: int) -> None:
        self.path, self.file, self.size, self.at = path, file, size, 0

    def read_params(self) -> dict[str, Tensor]:
        if self.read_word("the magic number") != PARAMS_MAGIC:
            raise self.error("not a TVM parameter file: it does not start with the magic number", 0)
        self.read_word("the reserved word")
        names = [self.read_name() for _ in range(self.read_count("names", WORD.size))]
        count = self.read_count("tensors", ndarray.header_size(0))
        if count != len(names):
            raise self.error(f"{len(names)} names and {count} tensors", self.at - WORD.size)
        tensors: dict[str, Tensor] = {}
        for name in names:
            if name in tensors:
                raise self.error(f"the name {name!r} occurs twice", self.at)
            tensors[name] = self.read_tensor(name)
        return tensors

    def read_word(self, what: str) -> int:
        (value,) = WORD.unpack(self.read_bytes(WORD.size, what))
        return int(value)

    def read_count(self, what: str, least: int) -> int:
        """How many items of at least ``least`` bytes follow."""
        count = self.read_word(f"the number of {what}")
        if count > (self.size - self.at) // least:
            raise self.error(
                f"{count} {what} cannot fit in the rest of the file", self.at - WORD.size
            )
        return count

    def read_name(self) -> str:
        raw = self.read_bytes(self.read_word("the length of a name"), "a name")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.error("a name is not UTF-8", self.at - len(raw)) from None

    def read_tensor(self, name: str) -> Tensor:
        start = self.at
        left = self.size - start
        head = self.file.read(min(left, ndarray.FIXED.size))
        try:
            more = ndarray.header_size(ndarray.read_rank(head)) - len(head)
            header = ndarray.read_header(head + self.file.read(min(left, more)))
        except ndarray.BlobError as error:
            raise self.error(f"parameter {name!r}: {error}", start) from None
        if header.size + header.nbytes > left:
            raise self.error(f"parameter {name!r} is cut off: the file ends before it does", start)
        where = FileSlice(self.path, start + header.size, header.nbytes, file_id(self.file))
        self.at = where.offset + where.nbytes
        self.file.seek(self.at)
        return map_tensor(header.dtype, header.shape, where)

    def read_bytes(self, count: int, what: str) -> bytes:
        if count > self.size - self.at:
            raise self.error(f"the file ends within {what}", self.at)
        self.at += count
        return self.file.read(count)

    def error(self, reason: str, at: int) -> MalformedFile:
        return MalformedFile(self.path, reason, f"byte {at}")


def _read_npz(path: str) -> dict[str, Tensor]:
    with open_npz(path, path) as npz:
        return {name: npz.tensor(info) for name, info in npz.members.items()}
