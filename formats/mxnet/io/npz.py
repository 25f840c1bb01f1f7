"""The zip of ``.npy`` members that MXNet 2 (src/serialization/cnpy.cc) writes.

A sparse array is a folder: ``x/data.npy``, ``x/indices.npy``, ``x/shape.npy``, for csr
``x/indptr.npy``, and ``x/format.npy``, whose header MXNet 2 writes wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from zipfile import ZipInfo

from serde.io.npz import LONGEST_HEADER, MOST_DIMS, NpzReader, open_npz
from serde.ir.graph import DType, Tensor

from .sparse import CSR, ROW_SPARSE, is_possible, to_dense

SPARSE = {frozenset(("data", "indices", "shape", "format")): ROW_SPARSE,
          frozenset(("data", "indices", "shape", "format", "indptr")): CSR}  # fmt: skip


def read_npz(source: str | bytes, path: str) -> list[tuple[str, Tensor]]:
    """Names and arrays of a zip, given as its path or its bytes; ``path`` is what errors call it.

    Raises:
        MalformedFile: for an archive or a member that is not what it claims to be.
    """
    with open_npz(source, path) as npz:
        groups: dict[str, dict[str, ZipInfo]] = {}
        for name, info in npz.members.items():
            folder, _, last = name.rpartition("/")
            groups.setdefault(folder, {})[last] = info
        return [pair for folder, group in groups.items() for pair in _arrays(npz, folder, group)]


def _arrays(
    npz: NpzReader, folder: str, group: Mapping[str, ZipInfo]
) -> Iterator[tuple[str, Tensor]]:
    """The arrays of one folder: one if together they are a sparse array."""
    storage = SPARSE.get(frozenset(group))
    if folder and storage is not None:
        kind, info = b"csr" if storage == CSR else b"row_sparse", group["format"]
        with npz.archive.open(info) as file:
            text = file.read(LONGEST_HEADER)
        if not text.rstrip(b"\0").endswith(kind):
            raise npz.fail(info, f"does not say {kind.decode()}")
        yield folder, _read_sparse(npz, storage, group)
        return
    prefix = f"{folder}/" if folder else ""
    for name, info in group.items():
        yield prefix + name, npz.tensor(info)


def _read_sparse(npz: NpzReader, storage: int, group: Mapping[str, ZipInfo]) -> Tensor:
    sizes = npz.tensor(group["shape"])
    if sizes.size > MOST_DIMS or sizes.dtype is not DType.INT64:
        raise npz.fail(group["shape"], "is no shape")
    shape = tuple(map(int, sizes.load().ravel()))
    values = npz.tensor(group["data"])
    if not is_possible(shape):
        raise npz.fail(group["shape"], f"is the impossible {shape}")
    names = ("indptr", "indices") if storage == CSR else ("indices",)
    return to_dense(npz.path, shape, values, [npz.tensor(group[n]) for n in names])
