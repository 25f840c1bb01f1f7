"""Weights: raw bytes of a storage, and a tensor's sizes, strides and offset in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from serde.errors import MalformedFile
from serde.io.tensor_bytes import MOST_AXES, StoredBytes, arrange, is_possible_shape, read_slice
from serde.ir.budget import active_budget
from serde.ir.graph import DType, FileSlice, Tensor

from .archive import Archive

WEIGHTS, CONSTANTS = "data/weights/", "data/constants/"
CONFIGS = {WEIGHTS: "weights_config.json", CONSTANTS: "constants_config.json"}
STRIDED = 7
MOST = 1 << 62
DTYPES = {
    1: DType.UINT8, 2: DType.INT8, 3: DType.INT16, 4: DType.INT32, 5: DType.INT64,
    6: DType.FLOAT16, 7: DType.FLOAT32, 8: DType.FLOAT64, 10: DType.COMPLEX64,
    11: DType.COMPLEX128, 12: DType.BOOL, 13: DType.BFLOAT16, 28: DType.UINT16,
    29: DType.FLOAT8E4M3FN, 30: DType.FLOAT8E5M2, 31: DType.FLOAT8E4M3FNUZ,
    32: DType.FLOAT8E5M2FNUZ, 33: DType.FLOAT8E8M0, 34: DType.UINT32, 35: DType.UINT64,
}  # fmt: skip


def read_weights(archive: Archive, model: str, folder: str) -> dict[str, Tensor]:
    """The tensors of a model in one of the two folders, by the names it has for them."""
    config = archive.read_json(f"{folder}{model}_{CONFIGS[folder]}")
    entries = config.get("config") if isinstance(config, dict) else None
    if not isinstance(entries, dict):
        raise archive.fail(folder, "has no table of its tensors")
    places: dict[str, FileSlice | bytes] = {}
    return {
        name: tensor
        for name, entry in entries.items()
        if (tensor := read_tensor(archive, folder, name, entry, places)) is not None
    }


def read_tensor(
    archive: Archive, folder: str, name: str, entry: Any, places: dict[str, FileSlice | bytes]
) -> Tensor | None:
    """One tensor of the table; None for what is no tensor, which fails where it is used."""
    what = f"weight {name[:80]!r}"
    try:
        meta, path = entry["tensor_meta"], entry["path_name"]
        if entry.get("use_pickle") or path.endswith(".pt"):
            raise MalformedFile(archive.path, f"{what} is pickled, and pickles are code, which is "
                                "not run: make it a plain tensor before torch.export")  # fmt: skip
        if meta is None:
            return None
        dtype = DTYPES.get(meta["dtype"])
        sizes = tuple(_integer(s["as_int"]) for s in meta["sizes"])
        strides = tuple(_integer(s["as_int"]) for s in meta["strides"])
        offset, layout = _integer(meta["storage_offset"]["as_int"]), meta["layout"]
        path = folder + path
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MalformedFile(archive.path, f"{what} is not described as weights are") from error
    if dtype is None or layout != STRIDED:
        raise MalformedFile(archive.path, f"{what} is of an element type or a layout that is not "
                            "read: make it dense, of a plain type")  # fmt: skip
    if path not in places:
        places[path] = archive.place(path)
    try:
        return locate(places[path], dtype, sizes, strides, offset)
    except ValueError as error:
        raise MalformedFile(archive.path, f"{what} {error}") from None


def _integer(value: Any) -> int:
    if type(value) is not int or not 0 <= value < MOST:
        raise ValueError(value)
    return value


def locate(
    place: FileSlice | bytes, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...],
    offset: int,
) -> Tensor:  # fmt: skip
    """The tensor of some sizes, strides and an offset, counted in elements of its storage.

    Raises:
        ValueError: where it is not within the storage.
    """
    if len(sizes) != len(strides) or len(sizes) > MOST_AXES or not is_possible_shape(sizes):
        raise ValueError(f"claims the sizes {sizes[:20]}")
    nbytes = place.nbytes if isinstance(place, FileSlice) else len(place)
    count, width = int(np.prod(sizes, dtype=object)), dtype.bits // 8
    last = offset + sum((d - 1) * s for d, s in zip(sizes, strides, strict=True))
    if count and (last + 1) * width > nbytes:
        raise ValueError(f"of {list(sizes)} takes more than the {nbytes} bytes that are there")
    if _is_contiguous(sizes, strides) and dtype is not DType.BOOL:
        start, length = offset * width if count else 0, count * width
        if isinstance(place, bytes):
            return Tensor(dtype, sizes, StoredBytes(place[start : start + length], dtype, sizes))
        where = FileSlice(place.path, place.offset + start, length, place.file)
        return Tensor(dtype, sizes, partial(read_slice, where, dtype, sizes), where)
    active_budget().charge(count * width, f"a strided weight of {list(sizes)}")
    return Tensor(dtype, sizes, partial(_gather, place, dtype, sizes, strides, offset))


def _is_contiguous(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return size == 0 or 0 in sizes
        expected *= size
    return True


def _gather(
    place: FileSlice | bytes, dtype: DType, sizes: tuple[int, ...], strides: tuple[int, ...],
    offset: int,
) -> Any:  # fmt: skip
    """The elements of a strided tensor."""
    if 0 in sizes:
        return np.zeros(sizes, dtype.numpy)
    width = dtype.bits // 8
    nbytes = place.nbytes if isinstance(place, FileSlice) else len(place)
    shape = (nbytes // width,)
    if isinstance(place, FileSlice):
        whole = FileSlice(place.path, place.offset, shape[0] * width, place.file)
        flat = read_slice(whole, dtype, shape)
    else:
        flat = arrange(np.frombuffer(place, np.uint8, shape[0] * width), dtype, shape)
    steps = tuple(s * flat.itemsize for s in strides)
    return np.lib.stride_tricks.as_strided(flat[offset:], sizes, steps).copy()


def find_model(archive: Archive) -> tuple[str, Mapping[str, Any]]:
    """The name and the JSON of the archive's one model."""
    models = [n for n in archive.members if n.startswith("models/") and n.endswith(".json")]
    if len(models) != 1:
        raise MalformedFile(archive.path, f"holds {len(models)} models: save each in its own file")
    program = archive.read_json(models[0])
    if not isinstance(program, dict):
        raise archive.fail(models[0], "is no exported program")
    return models[0].removeprefix("models/").removesuffix(".json"), program
