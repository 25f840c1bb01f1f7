"""Arrays that callers hold in memory or in files of NumPy."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from serde.errors import ConversionError, MalformedFile, UsageError
from serde.io.atomic_write import begins_with
from serde.io.named_file import raise_of_system
from serde.io.sniff import open_regular
from serde.ir.budget import active_budget
from serde.ir.graph import DType, Tensor

# What NumPy raises for a file that is not what it claims to be.
BROKEN = (OSError, ValueError, EOFError, TypeError, KeyError, OverflowError, MemoryError,
          NotImplementedError, RuntimeError, SyntaxError, TokenError, BadZipFile,
          zlib.error)  # fmt: skip
ADDRESS = re.compile(r": <\S+ object at 0x\w+>")  # of a header that is no literal of Python
Array = np.ndarray[Any, Any]


is_npz = begins_with(b"PK\3\4", b"PK\5\6")


def read_npy(path: str | os.PathLike[str]) -> Array:
    """The array of an ``.npy`` file; pickles are never loaded.

    Raises:
        MalformedFile: where it is none, or not a regular file.
    """
    with _refuse_broken(path, "an .npy file of an array"), open_regular(path) as file:
        return _read_array(file)


def read_npz(path: str | os.PathLike[str]) -> dict[str, Array]:
    """The arrays of an ``.npz`` file by name; pickles are never loaded.

    Raises:
        MalformedFile: where it is none, not a regular file, or out of all proportion when inflated.
    """
    with (
        _refuse_broken(path, "an .npz file of arrays"), open_regular(path) as file,
        ZipFile(file) as archive,
    ):  # fmt: skip
        sizes = [i.file_size for i in archive.infolist()]
        active_budget().charge_file(sum(sizes), path, "the arrays")
        names = [n for n in archive.namelist() if n.endswith(".npy")]
        return {n.removesuffix(".npy"): _read_member(archive, n) for n in names}


@contextmanager
def _refuse_broken(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn what is raised of a file that is missing, or not ``what``, into MalformedFile."""
    try:
        yield
    except FileNotFoundError as error:
        raise MalformedFile(path, "there is no such file") from error
    except BROKEN as error:
        raise_of_system(error)
        reason = ADDRESS.sub("", str(error))
        raise MalformedFile(path, f"not {what}: {reason}") from error


def _read_member(archive: ZipFile, name: str) -> Array:
    with archive.open(name) as file:
        return _read_array(file)


def _read_array(file: IO[bytes]) -> Array:
    """An array; NumPy would read those without bytes one by one, as many as are claimed."""
    start, form = file.tell(), np.lib.format
    read_header = form.read_array_header_2_0
    if form.read_magic(file) == (1, 0):
        read_header = form.read_array_header_1_0
    if read_header(file)[2].itemsize == 0:
        raise ValueError("its elements have no bytes")
    file.seek(start)
    return form.read_array(file, allow_pickle=False)


def write_npz(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    """Write an ``.npz`` file: arrays of any names, the same bytes for the same arrays."""
    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def to_tensors(params: Any) -> dict[str, Tensor]:
    """The tensors of a mapping of names to arrays, or of several such mappings in a sequence.

    Arrays are NumPy's, or those of a framework with ``asnumpy()`` or ``numpy()``.

    Raises:
        UsageError: where it is no mapping, or an entry no array of an element type of the IR.
    """
    parts = params if isinstance(params, (tuple, list)) else [params]
    result: dict[str, Tensor] = {}
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, Mapping):
            raise UsageError(
                "params are the path of a file, or a mapping of names to arrays, "
                f"not {type(part).__name__}"
            )
        result.update((str(name), _to_tensor(name, array)) for name, array in part.items())
    return result


def _to_tensor(name: Any, array: Any) -> Tensor:
    if getattr(array, "stype", "default") != "default":  # MXNet's sparse arrays
        array = array.tostype("default")
    for method in ("asnumpy", "numpy"):
        if hasattr(array, method):
            array = getattr(array, method)()
            break
    try:
        plain = np.asarray(array)
    except ValueError as error:  # lists of different lengths
        raise UsageError(f"--params: {name!r} is no array of numbers: {error}") from error
    try:
        is_refused = DType.of(plain.dtype) is DType.STRING
    except ConversionError:
        is_refused = True
    if is_refused:
        raise UsageError(f"--params: {name!r} is no array of numbers: its type is {plain.dtype}")
    return Tensor.of(plain.astype(plain.dtype.newbyteorder("="), copy=False))
