"""Parameter files of every MXNet version; arrays stay in the file until they are loaded.

Layout of ``mx.nd.save`` (src/ndarray/ndarray.cc), little-endian: uint64 0x112, uint64 reserved,
uint64 count, that many arrays; then uint64 count (0 or the same), and that many names, each a
uint64 length and its bytes. An array is

* V2 ``0xF993FAC9`` and V3 ``…CA`` (NumPy's shapes: ndim 0 is a scalar, -1 nothing): int32 storage
  type (0 dense, 1 row_sparse, 2 csr); the shape of the stored data if sparse; shape; then, unless
  there is no array, context (2 × int32), int32 type, per auxiliary array (1 for row_sparse, 2 for
  csr) int32 type and shape, the data, the auxiliary data;
* V1 ``…C8``: shape, context, type, data;
* before: the magic is the number of dimensions, which are uint32; context, type, data.

A shape is int32 ndim and int64 dimensions. MXNet 2 writes a zip of ``.npy`` members instead.
"""

from __future__ import annotations

import math
import os
import struct
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from serde.errors import MalformedFile
from serde.io.file_bytes import FileBytes
from serde.io.named_file import stat_open
from serde.io.sniff import HEAD, ZIP_MAGICS, file_id, open_regular, read_head
from serde.io.tensor_bytes import read_slice
from serde.ir.graph import DType, FileSlice, Tensor

from .magic import PARAMETERS, looks_like_params, refuse_other
from .sparse import CSR, DENSE, ROW_SPARSE, is_possible, to_dense

V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
CONTEXT = "ii"  # the device that an array was on: its kind and number
TYPES = (
    DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.UINT8, DType.INT32, DType.INT8, DType.INT64,
    DType.BOOL, DType.INT16, DType.UINT16, DType.UINT32, DType.UINT64, DType.BFLOAT16,
)  # fmt: skip
MOST_DIMS, MOST_ARRAYS, LONGEST_NAME = 32, 1_000_000, 65_536
Shape = tuple[int, ...]
Place = Callable[[int, int, DType, Shape], Tensor]  # offset, size, type, shape → the array


class Params(NamedTuple):
    """The arrays of one file, ``path`` for errors. ``names`` is empty where the file has none."""

    path: str
    tensors: tuple[Tensor, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, params: Any) -> Params:
        """Those of a mapping of names to arrays that a caller holds, or a pair of mappings."""
        from serde.io.arrays import to_tensors

        tensors = to_tensors(params)
        return cls("params", tuple(tensors.values()), tuple(tensors))

    @property
    def plain_names(self) -> tuple[str, ...]:
        """The names without the ``arg:`` or ``aux:`` in front."""
        return tuple(n[4:] if n.startswith(("arg:", "aux:")) else n for n in self.names)

    def by_name(self) -> dict[str, Tensor]:
        """Tensors by plain name."""
        return dict(zip(self.plain_names, self.tensors, strict=True)) if self.names else {}


def read_params(
    path: str | os.PathLike[str], name: str = "", start: int = 0, size: int | None = None
) -> Params:
    """Read the parameter file at ``path``; arrays are read when they are asked for.

    ``start`` and ``size`` tell where in ``path`` the file lies, if it is a member of an archive;
    ``name`` is what errors call it.

    Raises:
        MalformedFile: with the byte where the file stops being what it should be.
    """
    path = os.path.abspath(path)
    name = name or path
    with open_regular(path) as file:
        length = stat_open(file).st_size - start
        length = length if size is None else min(size, length)
        file.seek(start)
        head = file.read(min(HEAD, length))
        if head.startswith(ZIP_MAGICS) and start == 0:
            return _read_zip(path, name)
        if head.startswith(ZIP_MAGICS):
            file.seek(start)
            return parse_params(file.read(length), name)
        refuse_other(name, head, PARAMETERS)
        place = partial(_from_file, path, file_id(file), start)
        return _Reader(FileBytes(file, path, start, length), name, place).read()


def read_arrays(path: Path) -> dict[str, Tensor] | None:
    """The arrays of a parameter file by the names it has; None for other files."""
    if not path.is_file():
        return None
    head = read_head(path)
    is_zip = path.suffix == ".params" and head.startswith(ZIP_MAGICS)
    if not (is_zip or looks_like_params(head)):
        return None
    params = read_params(path)
    names = params.names or [str(at) for at in range(len(params.tensors))]
    return dict(zip(names, params.tensors, strict=True))


def parse_params(data: bytes, name: str) -> Params:
    """Read parameters held in memory; ``name`` is what errors call them."""
    if data.startswith(ZIP_MAGICS):
        return _read_zip(data, name)
    refuse_other(name, data[:HEAD], PARAMETERS)
    return _Reader(data, name, partial(_from_memory, data)).read()


def _read_zip(source: str | bytes, path: str) -> Params:
    """The arrays of a zip; one that was written from a list calls them ``arr_0``, ``arr_1``, …"""
    from .npz import read_npz

    pairs = read_npz(source, path)
    names, tensors = tuple(n for n, _ in pairs), tuple(t for _, t in pairs)
    numbered = names == tuple(f"arr_{i}" for i in range(len(names)))
    return _require_distinct_names(Params(path, tensors, () if numbered else names))


def _require_distinct_names(params: Params) -> Params:
    twice = [n for n, count in Counter(params.plain_names).items() if count > 1]
    if twice:
        raise MalformedFile(params.path, f"two arrays are called {twice[0]!r}")
    return params


def _from_file(
    path: str, file: tuple[int, int], start: int, offset: int, nbytes: int, dtype: DType,
    shape: Shape,
) -> Any:  # fmt: skip
    where = FileSlice(path, start + offset, nbytes, file)
    load = partial(read_slice, where, dtype, shape)
    # A byte of a bool may be any number, and is 0 or 1 only when it was loaded.
    return Tensor(dtype, shape, load, None if dtype is DType.BOOL else where)


def _from_memory(data: bytes, offset: int, nbytes: int, dtype: DType, shape: Shape) -> Tensor:
    flat = np.frombuffer(data, np.uint8, nbytes, offset)
    flat = flat != 0 if dtype is DType.BOOL else flat.view(dtype.numpy.newbyteorder("<"))
    return Tensor.of(flat.reshape(shape))


class _Reader:
    """Walk the bytes; every length is compared with what is left before it is used."""

    def __init__(self, data: bytes | FileBytes, path: str, place: Place) -> None:
        self.bytes, self.path, self.place = data, path, place
        self.at, self.size = 0, len(data)

    def fail(self, reason: str) -> MalformedFile:
        return MalformedFile(self.path, reason, f"byte {self.at}")

    def take(self, layout: str, what: str) -> tuple[int, ...]:
        packed = _struct(layout)
        if self.at + packed.size > self.size:
            raise self.fail(f"the file ends within {what}")
        values = packed.unpack(self.bytes[self.at : self.at + packed.size])
        self.at += packed.size
        return values

    def read(self) -> Params:
        if not looks_like_params(self.bytes[:8]):
            raise self.fail("not an MXNet parameter file: it does not begin with 0x112")
        self.take("QQ", "the header")
        count = self.count("arrays", 4)
        tensors = tuple(self.array(i) for i in range(count))
        named = self.count("names", 8)
        if named not in (0, count):
            raise self.fail(f"{named} names for {count} arrays")
        return _require_distinct_names(
            Params(self.path, tensors, tuple(self.name() for _ in range(named)))
        )

    def count(self, what: str, least: int) -> int:
        (number,) = self.take("Q", f"the number of {what}")
        if number > MOST_ARRAYS or number * least > self.size - self.at:
            raise self.fail(f"claims {number} {what} in the {self.size - self.at} bytes left")
        return number

    def name(self) -> str:
        (size,) = self.take("Q", "a name's length")
        if size > min(LONGEST_NAME, self.size - self.at):
            raise self.fail(f"claims a name of {size} bytes")
        raw = self.bytes[self.at : self.at + size]
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            raise self.fail(f"a name is not text: {raw[:40]!r}") from None
        self.at += size
        return name

    def array(self, index: int) -> Tensor:
        (magic,) = self.take("I", f"array {index}")
        if magic in (V2, V3):
            return self.modern(index, magic == V3)
        if magic > MOST_DIMS and magic != V1:
            self.at -= 4
            raise self.fail(f"array {index} begins with {magic:#x}, as none does")
        shape = self.next_shape() if magic == V1 else self.dims(magic, "I")
        return self.dense(shape) if shape else _make_empty_array()

    def modern(self, index: int, numpy_shapes: bool) -> Tensor:
        storage, ndim = self.take("ii", f"the storage type and shape of array {index}")
        if storage not in (DENSE, ROW_SPARSE, CSR):
            raise self.fail(f"array {index} has the unknown storage type {storage}")
        shape = self.shape(ndim, numpy_shapes)
        if storage != DENSE:  # that was of the stored data: wrong where MXNet was still at work
            shape = self.next_shape(numpy_shapes)
        if shape is None or (not shape and not numpy_shapes):
            return _make_empty_array()
        return self.dense(shape) if storage == DENSE else self.sparse(storage, shape)

    def next_shape(self, numpy_shapes: bool = False) -> Shape | None:
        (ndim,) = self.take("i", "a shape")
        return self.shape(ndim, numpy_shapes)

    def shape(self, ndim: int, numpy_shapes: bool) -> Shape | None:
        return None if ndim == -1 and numpy_shapes else self.dims(ndim, "q")

    def dims(self, ndim: int, layout: str) -> Shape:
        if not 0 <= ndim <= MOST_DIMS:
            raise self.fail(f"claims an array of {ndim} dimensions")
        dims = self.take(layout * ndim, "a shape")
        if not is_possible(dims):
            raise self.fail(f"claims an array of shape {dims}")
        return dims

    def kind(self, before: str = "") -> DType:
        *_, flag = self.take(f"{before}i", "an element type")
        if not 0 <= flag < len(TYPES):
            raise self.fail(f"claims the unknown element type {flag}")
        return TYPES[flag]

    def dense(self, shape: Shape) -> Tensor:
        return self.data(self.kind(CONTEXT), shape)

    def data(self, dtype: DType, shape: Shape) -> Tensor:
        nbytes = math.prod(shape) * dtype.bits // 8
        left = self.size - self.at
        if nbytes > left:
            raise self.fail(
                f"an array of {dtype.value}{list(shape)} needs {nbytes} bytes, {left} are left"
            )
        tensor = self.place(self.at, nbytes, dtype, shape)
        self.at += nbytes
        return tensor

    def sparse(self, storage: int, shape: Shape) -> Tensor:
        dtype = self.kind(CONTEXT)
        places = [(self.kind(), self.next_shape() or ()) for _ in range(storage)]
        stored = places[-1][1] if storage == CSR else places[-1][1] + shape[1:]
        if not is_possible(stored):
            raise self.fail(f"claims an array of shape {stored}")
        values = self.data(dtype, stored)
        return to_dense(self.path, shape, values, [self.data(t, s) for t, s in places])


@cache  # some 70: by kind of number, and by rank
def _struct(layout: str) -> struct.Struct:
    return struct.Struct(f"<{layout}")


@cache
def _make_empty_array() -> Tensor:
    """What stands for an array that was never filled."""
    return Tensor.of(np.zeros(0, np.float32))
