"""Parse ONNX files. Weights stay in the file: only what is around them is parsed."""

from __future__ import annotations

import mmap
import os
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

from serde.errors import MalformedFile
from serde.io.sniff import HEAD, file_id, open_regular, refuse_other_file
from serde.ir.graph import FileSlice

from . import protobuf_wire

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9  # field numbers in ModelProto, GraphProto, TensorProto
LARGE = 4096  # bytes; initializers above stay in the file
Initializer = tuple[onnx.TensorProto, FileSlice | None]  # and where its bytes are, if not in it


def parse_file(path: str) -> tuple[onnx.ModelProto, list[Initializer]]:
    """Parse a file without the bytes of its large initializers."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        refuse_other_file(path, file.read(HEAD))
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            try:
                return _split(view, path, file_id(file))
            except protobuf_wire.WireError as error:
                raise MalformedFile(
                    path, f"not an ONNX model: {error}", f"byte {error.offset}"
                ) from None
            finally:
                view.release()


def external_locations(path: str | os.PathLike[str]) -> set[str]:
    """The files that the ONNX file at ``path`` names for its initializers, as it spells them.

    Raises:
        MalformedFile: where it is no ONNX model.
    """
    _, tensors = parse_file(os.fspath(path))
    return {e.value for proto, _ in tensors for e in proto.external_data if e.key == "location"}


def _split(
    view: memoryview, path: str, file: tuple[int, int]
) -> tuple[onnx.ModelProto, list[Initializer]]:
    """Parse the model without its initializers, and those without their bytes."""
    around = bytearray()
    inside, has_graph = bytearray(), False
    tensors: list[Initializer] = []
    for number, kind, begin, payload, end in protobuf_wire.iterate_fields(view, 0, len(view)):
        if number != GRAPH or kind != protobuf_wire.BYTES:
            around += view[begin:end]
            continue
        has_graph, kept = True, payload  # what is before ``kept`` is copied, or an initializer
        for n, k, b, p, e in protobuf_wire.iterate_fields(view, payload, end):
            if n == INITIALIZER and k == protobuf_wire.BYTES:
                tensors.append(_tensor(view, p, e, path, file))
                inside += view[kept:b]
                kept = e
        inside += view[kept:end]
    model = parse(onnx.ModelProto, bytes(around), path)
    if has_graph:
        model.graph.CopyFrom(parse(onnx.GraphProto, bytes(inside), path))
    return model, tensors


def _tensor(
    view: memoryview, start: int, end: int, path: str, file: tuple[int, int]
) -> Initializer:
    """Parse an initializer, a large one without its bytes."""
    if end - start <= LARGE:
        return parse(onnx.TensorProto, bytes(view[start:end]), path), None
    rest, raw = bytearray(), None
    for number, kind, begin, payload, stop in protobuf_wire.iterate_fields(view, start, end):
        if number == RAW_DATA and kind == protobuf_wire.BYTES:
            raw = FileSlice(path, payload, stop - payload, file)
        else:
            rest += view[begin:stop]
    return parse(onnx.TensorProto, bytes(rest), path), raw


def parse(kind: type[Message], data: bytes, path: str) -> Any:
    """Read one protobuf message.

    Raises:
        MalformedFile: where ``data`` are none.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise MalformedFile(path, f"not an ONNX model: {error}") from None
