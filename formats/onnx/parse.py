"""Parse ONNX files. Weights stay in the file: only what is around them is parsed."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import onnx
from google.protobuf.message import DecodeError, Message

from serde.errors import MalformedFile
from serde.io.file_bytes import FileBytes
from serde.io.sniff import HEAD, file_id, open_regular, refuse_other_file
from serde.ir.graph import FileSlice

from . import protobuf_wire
from .graph_fields import NodeFields, SmallTensor, describe_node, read_info, read_node, read_tensor
from .protobuf_wire import GRAPH, INITIALIZER, NODE, RAW_DATA, VALUE_INFO

LARGE = 4096  # bytes; initializers above stay in the file
Initializer = tuple[onnx.TensorProto, FileSlice | None]  # and where its bytes are, if not in it


class Parsed(NamedTuple):
    """A model, and apart from it what most of its graph is made of, in the order of the file.

    ``types`` are those of values, as the file has them, by name.
    """

    model: onnx.ModelProto
    tensors: list[SmallTensor | Initializer]
    nodes: list[NodeFields]
    types: dict[str, bytes]


def parse_file(path: str) -> Parsed:
    """Parse a file without the bytes of its large initializers."""
    with open_regular(path) as file:
        refuse_other_file(path, file.read(HEAD))
        try:
            return _split(FileBytes(file, path), path, file_id(file))
        except protobuf_wire.WireError as error:
            raise MalformedFile(
                path, f"not an ONNX model: {error}", f"byte {error.offset}"
            ) from None


def external_locations(path: str | os.PathLike[str]) -> set[str]:
    """The files that the ONNX file at ``path`` names for its initializers, as it spells them.

    Raises:
        MalformedFile: where it is no ONNX model.
    """
    tensors = parse_file(os.fspath(path)).tensors
    protos = [t[0] for t in tensors if not isinstance(t, SmallTensor)]
    return {e.value for proto in protos for e in proto.external_data if e.key == "location"}


def _split(data: FileBytes, path: str, file: tuple[int, int]) -> Parsed:
    """Parse the model, and apart from it nodes, initializers and types."""
    around, inside, has_graph = bytearray(), bytearray(), False
    parsed = Parsed(onnx.ModelProto(), [], [], {})
    for number, kind, begin, payload, end in protobuf_wire.iterate_fields(data, 0, len(data)):
        if number == GRAPH and kind == protobuf_wire.BYTES:
            has_graph = True
            _split_graph(data, payload, end, (path, file), parsed, inside)
        else:
            around += data[begin:end]
    model = parse(onnx.ModelProto, bytes(around), path)
    if has_graph:
        model.graph.CopyFrom(parse(onnx.GraphProto, bytes(inside), path))
    return parsed._replace(model=model)


def _split_graph(
    data: FileBytes, start: int, end: int, place: Any, parsed: Parsed, rest: bytearray
) -> None:
    """Enter the parts of a graph into ``parsed``, and what is none of them into ``rest``."""
    _, tensors, nodes, types = parsed
    path = place[0]
    for number, kind, begin, payload, stop in protobuf_wire.iterate_fields(data, start, end):
        if kind == protobuf_wire.BYTES:
            if number == NODE:
                node = data[payload:stop]
                nodes.append(read_node(node) or describe_node(parse(onnx.NodeProto, node, path)))
                continue
            if number == INITIALIZER:
                tensors.append(_tensor(data, payload, stop, *place))
                continue
            if number == VALUE_INFO and (info := read_info(data[payload:stop])) is not None:
                types[info[0]] = info[1]
                continue
        rest += data[begin:stop]


def _tensor(
    data: FileBytes, start: int, end: int, path: str, file: tuple[int, int]
) -> SmallTensor | Initializer:
    """Parse an initializer, a large one without its bytes."""
    if end - start <= LARGE:
        whole = data[start:end]
        return read_tensor(whole) or (parse(onnx.TensorProto, whole, path), None)
    rest, raw = bytearray(), None
    for number, kind, begin, payload, stop in protobuf_wire.iterate_fields(data, start, end):
        if number == RAW_DATA and kind == protobuf_wire.BYTES:
            raw = FileSlice(path, payload, stop - payload, file)
        else:
            rest += data[begin:stop]
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
