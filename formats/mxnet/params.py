"""Parameter files of every MXNet version, mapped from disk.

Layout of ``mx.nd.save`` (src/ndarray/ndarray.cc), little-endian: uint64 0x112, uint64 reserved, uint64
count, that many arrays; then uint64 count (0 or the same), and that many names, each a uint64 length and
its bytes. An array is

* V2 ``0xF993FAC9`` and V3 ``…CA`` (numpy shapes: ndim 0 is a scalar, -1 nothing): int32 storage type
  (0 dense, 1 row_sparse, 2 csr); the shape of the stored data if sparse; shape; then, unless the array
  is empty, context (2 × int32), int32 type, per auxiliary array (1 for row_sparse, 2 for csr) int32
  type and shape, the data, the auxiliary data;
* V1 ``…C8``: shape, context, type, data;
* before: the magic is the number of dimensions, which are uint32; context, type, data.

A shape is int32 ndim and int64 dimensions. MXNet 2 writes a zip of ``.npy`` members instead.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from serde.content import refuse_mistaken
from serde.errors import MalformedFile
from serde.graph import DType, FileSlice, Tensor
from serde.storage import map_slice

LIST_MAGIC, V1, V2, V3 = 0x112, 0xF993FAC8, 0xF993FAC9, 0xF993FACA
TYPES = (
    DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.UINT8, DType.INT32, DType.INT8, DType.INT64,
    DType.BOOL, DType.INT16, DType.UINT16, DType.UINT32, DType.UINT64, DType.BFLOAT16,
)  # fmt: skip
DENSE, ROW_SPARSE, CSR = 0, 1, 2
MOST_DIMS, MOST_ARRAYS, LONGEST_NAME = 32, 1_000_000, 65_536
MOST_RATIO = 200  # a compressed member may grow by this much
MOST_SPREAD = 1 << 32  # bytes a sparse array may take when it is spread out


@dataclass(frozen=True)
class Params:
    """The arrays of one file. ``names`` is empty where the file has none."""

    path: str
    tensors: tuple[Tensor, ...]
    names: tuple[str, ...]

    def by_name(self) -> dict[str, Tensor]:
        """Tensors by plain name: ``arg:`` and ``aux:`` in front are dropped."""
        plain = [n.partition(":")[2] if n[:4] in ("arg:", "aux:") else n for n in self.names]
        return dict(zip(plain, self.tensors, strict=True)) if plain else {}


def read_params(path: str | os.PathLike[str]) -> Params:
    """Read the parameter file at ``path``; arrays are mapped when they are asked for.

    Raises:
        MalformedFile: with the byte where the file stops being what it should be.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        head = file.read(1024)
        refuse_mistaken(path, head)
        if head[:4] == b"PK\x03\x04":
            return _read_zip(path)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            try:
                return _Reader(view, path, partial(_from_file, path)).read()
            finally:
                view.release()


def parse_params(data: bytes, path: str) -> Params:
    """Read parameters held in memory; ``path`` is what errors call them."""
    refuse_mistaken(path, data[:1024])
    return _Reader(memoryview(data), path, partial(_from_memory, data)).read()


Place = Callable[[int, int, DType, tuple[int, ...]], Tensor]


def _from_file(path: str, offset: int, nbytes: int, dtype: DType, shape: Any) -> Tensor:
    where = FileSlice(path, offset, nbytes)
    return Tensor(dtype, shape, partial(map_slice, where, dtype, shape), where)


def _from_memory(data: bytes, offset: int, nbytes: int, dtype: DType, shape: Any) -> Tensor:
    flat = np.frombuffer(data, np.uint8, nbytes, offset)
    return Tensor.of(flat.view(dtype.numpy).reshape(shape))


class _Reader:
    """Walk the bytes; every length is compared with what is left before it is used."""

    def __init__(self, view: memoryview, path: str, place: Place) -> None:
        self.view, self.path, self.place, self.at = view, path, place, 0

    def fail(self, reason: str) -> MalformedFile:
        return MalformedFile(self.path, reason, f"byte {self.at}")

    def take(self, layout: str, what: str) -> Any:
        size = struct.calcsize("<" + layout)
        if self.at + size > len(self.view):
            raise self.fail(f"the file ends within {what}")
        found = struct.unpack_from("<" + layout, self.view, self.at)
        self.at += size
        return found if len(found) > 1 else found[0]

    def read(self) -> Params:
        if self.take("Q", "the header") != LIST_MAGIC:
            self.at = 0
            raise self.fail("not an MXNet parameter file: it does not begin with 0x112")
        self.take("Q", "the header")
        count = self.count("arrays", 4)
        tensors = tuple(self.array(i) for i in range(count))
        named = self.count("names", 8)
        if named not in (0, count):
            raise self.fail(f"{named} names for {count} arrays")
        names = tuple(self.name() for _ in range(named))
        twice = [n for n, count in Counter(names).items() if count > 1]
        if twice:
            raise self.fail(f"two arrays are called {twice[0]!r}")
        return Params(self.path, tensors, names)

    def count(self, what: str, least: int) -> int:
        found = self.take("Q", f"the number of {what}")
        if found > MOST_ARRAYS or found * least > len(self.view) - self.at:
            raise self.fail(f"claims {found} {what} in the {len(self.view) - self.at} bytes left")
        return int(found)

    def name(self) -> str:
        size = self.take("Q", "a name's length")
        if size > LONGEST_NAME or size > len(self.view) - self.at:
            raise self.fail(f"claims a name of {size} bytes")
        raw = bytes(self.view[self.at : self.at + size])
        self.at += size
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.fail(f"a name is not text: {raw[:40]!r}") from None

    def array(self, index: int) -> Tensor:
        magic = self.take("I", f"array {index}")
        if magic in (V2, V3):
            return self.modern(index, magic == V3)
        shape = self.shape() if magic == V1 else self.dims(magic, "I")
        return self.dense(shape) if shape else _nothing()

    def modern(self, index: int, numpy_shapes: bool) -> Tensor:
        storage = self.take("i", f"the storage type of array {index}")
        if storage not in (DENSE, ROW_SPARSE, CSR):
            raise self.fail(f"array {index} has the unknown storage type {storage}")
        stored = self.shape() if storage != DENSE else ()
        shape = self.shape(numpy_shapes)
        if shape is None or (not shape and not numpy_shapes):
            return _nothing()
        if storage == DENSE:
            return self.dense(shape)
        return self.sparse(storage, stored or (), shape)

    def shape(self, numpy_shapes: bool = False) -> tuple[int, ...] | None:
        ndim = self.take("i", "a shape")
        if ndim == -1 and numpy_shapes:
            return None
        return self.dims(ndim, "q")

    def dims(self, ndim: int, layout: str) -> tuple[int, ...]:
        if not 0 <= ndim <= MOST_DIMS:
            raise self.fail(f"claims an array of {ndim} dimensions")
        found = self.take(layout * ndim, "a shape") if ndim else ()
        dims = found if isinstance(found, tuple) else (found,)
        if any(d < 0 for d in dims):
            raise self.fail(f"claims an array of shape {dims}")
        return dims

    def kind(self) -> DType:
        flag = self.take("i", "an element type")
        if not 0 <= flag < len(TYPES):
            raise self.fail(f"claims the unknown element type {flag}")
        return TYPES[flag]

    def dense(self, shape: tuple[int, ...] | None) -> Tensor:
        self.take("ii", "a context")
        return self.data(self.kind(), shape or ())

    def data(self, dtype: DType, shape: tuple[int, ...]) -> Tensor:
        nbytes = math.prod(shape) * dtype.numpy.itemsize
        if nbytes > len(self.view) - self.at:
            left = len(self.view) - self.at
            raise self.fail(
                f"an array of {dtype.value}{list(shape)} needs {nbytes} bytes, {left} are left"
            )
        tensor = self.place(self.at, nbytes, dtype, shape)
        self.at += nbytes
        return tensor

    def sparse(self, storage: int, stored: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
        self.take("ii", "a context")
        dtype = self.kind()
        auxiliary = [(self.kind(), self.shape() or ()) for _ in range(storage)]
        if math.prod(shape) * dtype.numpy.itemsize > MOST_SPREAD:
            raise self.fail(f"a sparse array of shape {shape} is too large to spread out")
        values = self.data(dtype, stored)
        places = [self.data(t, s) for t, s in auxiliary]
        spread = _spread_rows if storage == ROW_SPARSE else _spread_csr
        return Tensor(dtype, shape, partial(spread, self.path, values, places, shape))


def _nothing() -> Tensor:
    return Tensor.of(np.zeros(0, np.float32))


def _spread_rows(path: str, values: Tensor, places: list[Tensor], shape: Any) -> Any:
    out = np.zeros(shape, values.dtype.numpy)
    rows = places[0].load().ravel()
    stored = values.load()
    if stored.shape[:1] != rows.shape or stored.shape[1:] != shape[1:]:
        raise MalformedFile(path, f"a row_sparse array of shape {shape} stores {stored.shape}")
    if rows.size and (rows.min() < 0 or rows.max() >= shape[0]):
        raise MalformedFile(path, f"a row_sparse array of shape {shape} has rows outside it")
    out[rows.astype(np.int64)] = stored
    return out


def _spread_csr(path: str, values: Tensor, places: list[Tensor], shape: Any) -> Any:
    starts, columns = (p.load().ravel().astype(np.int64) for p in places)
    data = values.load().ravel()
    good = len(shape) == 2 and len(starts) == shape[0] + 1 and len(columns) == len(data)
    good = good and starts[0] == 0 and starts[-1] == len(data) and (np.diff(starts) >= 0).all()
    if not good or (len(columns) and not 0 <= columns.min() <= columns.max() < shape[1]):
        raise MalformedFile(path, f"a csr array of shape {shape} has indices that do not fit it")
    out = np.zeros(shape, values.dtype.numpy)
    out[np.repeat(np.arange(shape[0]), np.diff(starts)), columns] = data
    return out


def _read_zip(path: str) -> Params:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_ARRAYS:
                raise MalformedFile(path, f"the archive claims {len(members)} members")
            pairs = [(m.filename.removesuffix(".npy"), _member(path, archive, m)) for m in members]
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise MalformedFile(path, f"a zip archive that cannot be read: {error}") from error
    names = tuple(n for n, _ in pairs)
    return Params(path, tuple(t for _, t in pairs), names)


def _member(path: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Tensor:
    if len(member.filename) > LONGEST_NAME or member.flag_bits & 1:
        raise MalformedFile(
            path, f"member {member.filename[:80]!r} is encrypted or has no sane name"
        )
    if member.file_size > MOST_RATIO * max(member.compress_size, 4096):
        raise MalformedFile(path, f"member {member.filename!r} would grow {MOST_RATIO}-fold")
    with archive.open(member) as file:
        shape, fortran, dtype = _npy_header(file, path, member)
        start = file.tell()
        nbytes = math.prod(shape) * dtype.itemsize
        if start + nbytes != member.file_size:
            raise MalformedFile(path, f"member {member.filename!r} has not the size of its shape")
        kind = DType.of(dtype) if dtype.kind != "V" else DType.BFLOAT16
        if member.compress_type == zipfile.ZIP_STORED and not fortran and dtype.byteorder in "<=|":
            return _from_file(path, _offset(path, member) + start, nbytes, kind, shape)
        array = np.frombuffer(file.read(), dtype)
    array = array.reshape(shape, order="F" if fortran else "C")
    return Tensor.of(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)))


def _npy_header(file: Any, path: str, member: zipfile.ZipInfo) -> tuple[Any, bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read(file)
    named = DType.STRING if dtype.kind == "O" else dtype
    if dtype.hasobject or (dtype.kind == "V" and dtype.itemsize != 2) or named is DType.STRING:
        raise MalformedFile(path, f"member {member.filename!r} holds {dtype}, not numbers")
    if len(shape) > MOST_DIMS:
        raise MalformedFile(path, f"member {member.filename!r} claims {len(shape)} dimensions")
    return shape, fortran, dtype


def _offset(path: str, member: zipfile.ZipInfo) -> int:
    """Where a member's data begin: behind its local header, whose lengths are its own."""
    with open(path, "rb") as file:
        file.seek(member.header_offset)
        header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise MalformedFile(path, f"member {member.filename!r} has no header")
    name, extra = struct.unpack_from("<HH", header, 26)
    return member.header_offset + 30 + int(name) + int(extra)


def described(params: Params) -> Iterator[tuple[str, Tensor]]:
    """Name (or number) and tensor of each array."""
    names = params.names or tuple(map(str, range(len(params.tensors))))
    return zip(names, params.tensors, strict=True)
