"""TensorProto ↔ Tensor: every element type, data in the file, in fields, or in external files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from serde.errors import MalformedFile
from serde.io.tensor_bytes import StoredBytes, bytes_of, is_possible_shape, read_slice
from serde.ir.budget import active_budget
from serde.ir.graph import DType, FileSlice, Tensor
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES

from .external_data_paths import Resolve

Array = np.ndarray[Any, Any]
KEYS = ("location", "offset", "length")  # of external data; what else there is, is not read


def read_tensor(
    proto: onnx.TensorProto, path: str, resolve: Resolve, raw: FileSlice | None = None
) -> Tensor:
    """Read ``proto``, whose ``raw_data`` lie at ``raw`` when they were left in the file.

    Raises:
        MalformedFile: for an unknown element type, a negative size, or data of another length.
    """

    def tensor_error(reason: str) -> MalformedFile:
        return MalformedFile(path, f"tensor {proto.name!r} {reason}")

    dtype, shape = ELEMENT_TYPES.get(proto.data_type), tuple(proto.dims)
    if dtype is None:
        raise tensor_error(f"has the unknown element type {proto.data_type}")
    if not is_possible_shape(shape):
        raise tensor_error(f"has the impossible shape {list(shape)[:8]}")
    size = math.prod(shape)
    nbytes = (size * dtype.bits + 7) // 8
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        raw = external_slice(proto, path, resolve, nbytes)
    if raw is not None:
        if raw.nbytes != nbytes or dtype is DType.STRING:
            kind = f"{dtype.value}{list(shape)}"
            raise tensor_error(f"of {kind} holds {raw.nbytes} bytes, not {nbytes}")
        return Tensor(dtype, shape, partial(read_slice, raw, dtype, shape), raw)
    if proto.HasField("raw_data"):
        raw_bytes = proto.raw_data
        if len(raw_bytes) != nbytes:
            raise tensor_error(f"of {dtype.value}{list(shape)} holds {len(raw_bytes)} bytes")
        if dtype is not DType.STRING:
            return Tensor(dtype, shape, StoredBytes(raw_bytes, dtype, shape))
    return Tensor.of(_fields(proto, dtype, shape, size, path))


def _fields(
    proto: onnx.TensorProto, dtype: DType, shape: tuple[int, ...], size: int, path: str
) -> Array:
    if dtype is DType.STRING:
        if len(proto.string_data) != size:
            raise MalformedFile(
                path, f"tensor {proto.name!r} holds {len(proto.string_data)} strings"
            )
        strings = [_string(s) for s in proto.string_data]
        return np.array(strings, dtype=object).reshape(shape)
    if not proto.HasField("raw_data"):
        _check_count(proto, dtype, size, path)
    try:
        return numpy_helper.to_array(proto).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedFile(path, f"tensor {proto.name!r}: {error}") from error


def _check_count(proto: onnx.TensorProto, dtype: DType, size: int, path: str) -> None:
    """Compare the typed field's length with the shape, before anything of that shape is made."""
    stored = sum(
        len(getattr(proto, f))
        for f in ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
    )
    expected = size * 2 if dtype.kind == "c" else size
    if dtype.bits < 8:
        expected = -(-size * dtype.bits // 8)
    if stored != expected:
        raise MalformedFile(
            path, f"tensor {proto.name!r} of shape {list(proto.dims)} holds {stored} elements"
        )


def _string(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def external_slice(proto: onnx.TensorProto, path: str, resolve: Resolve, nbytes: int) -> FileSlice:
    """Where external data lie, checked against the file they lie in."""
    entries: Mapping[str, str] = {e.key: e.value for e in proto.external_data}
    what = f"external data of {proto.name!r}"
    if not all(isinstance(t, str) for t in (*entries, *entries.values())):
        raise MalformedFile(path, f"{what} are described by what is not UTF-8")
    if "location" not in entries:
        raise MalformedFile(path, f"{what} name no file")
    place = resolve(entries["location"])
    offset = _count(entries.get("offset", "0"), what, path)
    length = _count(entries["length"], what, path) if "length" in entries else nbytes
    if offset + length > place.size:
        raise MalformedFile(
            path, f"{what} end at byte {offset + length} of {place.path!r}, which has {place.size}"
        )
    if place.file is not None:
        active_budget().charge_part(place.file, length, path, what)
    return FileSlice(place.path, offset, length, place.file)


def _count(text: str, what: str, path: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise MalformedFile(path, f"{what} have the offset or length {text[:40]!r}")
    return int(text)


def tensor_proto(name: str, tensor: Tensor) -> onnx.TensorProto:
    """The TensorProto of ``tensor`` with its bytes in it."""
    proto = onnx.TensorProto(name=name, data_type=ELEMENT_CODES[tensor.dtype])
    proto.dims.extend(tensor.shape)
    if tensor.dtype is DType.STRING:
        flat = tensor.load().reshape(-1).tolist()
        proto.string_data.extend(s if isinstance(s, bytes) else str(s).encode() for s in flat)
    else:
        proto.raw_data = bytes(bytes_of(tensor))
    return proto


@lru_cache(4096)
def type_fields(dtype: DType, shape: tuple[int, ...]) -> bytes:
    """The fields of a TensorProto before its name."""
    proto = onnx.TensorProto(data_type=ELEMENT_CODES[dtype], dims=shape)
    return bytes(proto.SerializeToString())


def make_dense(proto: onnx.SparseTensorProto, values: Tensor, indices: Tensor, path: str) -> Tensor:
    """A sparse tensor spread out: ``values`` at ``indices``, linear or one column per axis."""
    shape, size = tuple(proto.dims), math.prod(proto.dims)
    name = proto.values.name
    fits = is_possible_shape(shape)
    if not shape or not fits or values.dtype is DType.STRING or indices.dtype is not DType.INT64:
        raise MalformedFile(path, f"sparse tensor {name!r} of shape {shape} cannot be spread")
    active_budget().charge_file(size * values.dtype.numpy.itemsize, path, f"sparse tensor {name!r}")
    at = indices.load()
    if at.ndim == 2 and at.shape[1] == len(shape):
        inside = ((at >= 0) & (at < np.array(shape))).all()
        at = np.ravel_multi_index(tuple(at.T), shape) if inside else np.array([-1])
    if at.ndim != 1 or len(at) != values.size or ((at < 0) | (at >= size)).any():
        raise MalformedFile(path, f"sparse tensor {name!r} has indices outside its shape")
    out = np.zeros(size, values.dtype.numpy)
    out[at] = values.load().ravel()
    return Tensor.of(out.reshape(shape))
