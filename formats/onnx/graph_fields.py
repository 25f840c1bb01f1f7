"""What most of a GraphProto is made of, read from its bytes: nodes, weights, types of values.

Protobuf's objects cost several times as much to make and to look at. What is written in another
order, or has fields that few files use, is left to protobuf: readers return None for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import onnx

from serde.io.tensor_bytes import StoredBytes, is_possible_shape
from serde.ir.graph import DType, Tensor
from serde.spec.inference import LONGEST_NAME, UNNAMED, Type
from serde.spec.onnx_library import RANK
from serde.spec.schema import ELEMENT_TYPES

from .protobuf_wire import encode_header

# Keys of fields: the number, and the kind of what follows.
INPUT, OUTPUT, NAME, OP, ATTRIBUTE, DOC, DOMAIN, PROPERTY = 10, 18, 26, 34, 42, 50, 58, 74
TEXTS = frozenset((NAME, OP, DOC, DOMAIN))
SUBGRAPH = b"2"  # the key of an attribute's graph; other bytes may be the same
DIMS, ELEMENT, TENSOR_NAME, RAW_DATA = 8, 16, 66, 74
FIRST, SECOND = 10, 18  # keys of fields 1 and 2 that are messages or texts
DENOTATIONS = (b"2", b"\x1a")  # keys of those of types and of axes
LONG = 0x80  # a length from here on takes several bytes


class NodeFields(NamedTuple):
    """A NodeProto. ``attributes`` lie as in the file where there are no subgraphs among them."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    name: str
    domain: str
    doc: str
    overload: str
    properties: Sequence[tuple[str, str]]
    attributes: bytes | Sequence[onnx.AttributeProto]
    has_devices: bool = False

    @property
    def title(self) -> str:
        """What messages call the node."""
        return self.name or next((n for n in self.outputs if n), self.op)


def describe_node(proto: onnx.NodeProto) -> NodeFields:
    """The fields of any NodeProto."""
    properties = [(p.key, p.value) for p in proto.metadata_props]
    return NodeFields(
        proto.op_type, tuple(proto.input), tuple(proto.output), proto.name, proto.domain,
        proto.doc_string, proto.overload, properties, proto.attribute,
        bool(proto.device_configurations),
    )  # fmt: skip


def read_node(data: bytes) -> NodeFields | None:
    """The fields of a NodeProto that holds no subgraphs."""
    inputs: list[str] = []
    outputs: list[str] = []
    texts: dict[int, str] = {}
    properties: list[tuple[str, str]] = []
    attributes = b""
    at, end = 0, len(data)
    try:
        while at < end:
            key, size, start = data[at], data[at + 1], at + 2
            if size >= LONG:
                if data[start] >= LONG:
                    return None
                size = size & 0x7F | data[start] << 7
                start += 1
            field, at = data[start : start + size], start + size
            if key == INPUT:
                inputs.append(field.decode())
            elif key == OUTPUT:
                outputs.append(field.decode())
            elif key == ATTRIBUTE:
                attributes += encode_header(5, size) + field
            elif key in TEXTS:
                texts[key] = field.decode()
            elif key == PROPERTY:
                properties.append(_read_property(field))
            else:
                return None
        if at != end or OP not in texts or SUBGRAPH in attributes:
            return None
    except (IndexError, ValueError):
        return None
    get = texts.get
    return NodeFields(
        texts[OP], inputs, outputs, get(NAME, ""), get(DOMAIN, ""), get(DOC, ""), "", properties,
        attributes,
    )  # fmt: skip


def _read_property(data: bytes) -> tuple[str, str]:
    """A key and its value.

    Raises:
        IndexError, ValueError: where it is written in another way, or too long.
    """
    key_end = 2 + data[1]
    size, start = data[key_end + 1], key_end + 2
    if size >= LONG:
        size, start = size & 0x7F | data[start] << 7, start + 1
    if (data[0], data[key_end], start + size) != (FIRST, SECOND, len(data)) or data[1] >= LONG:
        raise ValueError
    return data[2:key_end].decode(), data[start:].decode()


class SmallTensor(NamedTuple):
    """An initializer whose bytes are in the file as they lie in memory."""

    name: str
    tensor: Tensor


def read_tensor(data: bytes) -> SmallTensor | None:
    """A TensorProto of dims, an element type, a name and raw data, in this order."""
    shape: list[int] = []
    at = 0
    try:
        while data[at] == DIMS:
            size = data[at + 1]
            at += 2
            if size >= LONG:
                if data[at] >= LONG:
                    return None
                size = size & 0x7F | data[at] << 7
                at += 1
            shape.append(size)
        code, start = data[at + 1], at + 4
        if data[at] != ELEMENT or data[at + 2] != TENSOR_NAME or data[at + 3] >= LONG:
            return None
        at = start + data[at + 3]
        if data[at] != RAW_DATA:
            return None
        name = data[start:at].decode()
        size, start = data[at + 1], at + 2
        if size >= LONG:
            if data[start] >= LONG:
                return None
            size, start = size & 0x7F | data[start] << 7, start + 1
    except (IndexError, UnicodeDecodeError):
        return None
    kind = _find_type(code, tuple(shape))
    if kind is None or kind[2] != size or start + size != len(data):
        return None
    dtype, dims, _ = kind
    return SmallTensor(name, Tensor(dtype, dims, StoredBytes(data[start:], dtype, dims)))


@lru_cache(4096)
def _find_type(code: int, shape: tuple[int, ...]) -> tuple[DType, tuple[int, ...], int] | None:
    """The element type, the shape and the number of bytes of a tensor."""
    dtype = ELEMENT_TYPES.get(code)
    if dtype is None or dtype is DType.STRING or not is_possible_shape(shape):
        return None
    size = 1
    for d in shape:
        size *= d
    return dtype, shape, (size * dtype.bits + 7) // 8


def read_info(data: bytes) -> tuple[str, bytes] | None:
    """The name and the type of a ValueInfoProto that has nothing else."""
    try:
        at = 2 + data[1]
        if data[0] != FIRST or data[1] >= LONG or data[at] != SECOND or data[at + 1] >= LONG:
            return None
        kind = data[at + 2 :]
        return (data[2:at].decode(), kind) if len(kind) == data[at + 1] else None
    except (IndexError, UnicodeDecodeError):
        return None


def may_have_denotations(data: bytes) -> bool:
    """Whether the bytes of a TypeProto may hold a denotation."""
    return any(key in data for key in DENOTATIONS)


def read_type(data: bytes) -> Type | None:
    """The type that a TypeProto of a tensor of known rank describes, with nothing else in it."""
    size = len(data)
    if not 6 <= size < LONG or (data[0], data[1], data[2]) != (FIRST, size - 2, 8):
        return None
    if data[3] >= LONG or data[4] != SECOND or data[5] != size - 6:
        return None
    at, shape = 6, list[Any]()
    while at + 1 < size:
        start, at = at + 2, at + 2 + data[at + 1]
        dim = _read_dim(data[start:at])
        if data[start - 2] != FIRST or dim is None:
            return None
        shape.append(dim)
    if at != size or len(shape) > RANK:
        return None
    return Type(ELEMENT_TYPES.get(data[3]), tuple(shape))


def _read_dim(data: bytes) -> int | str | None:
    """A size, or the name of one."""
    length = len(data)
    if length < 2:
        return None
    if data[0] == 8:
        if length == 2 and data[1] < LONG:
            return data[1]
        if length == 3 and data[1] >= LONG > data[2]:
            return data[1] & 0x7F | data[2] << 7
        return None
    if data[0] != SECOND or data[1] != length - 2 or data[1] >= LONG:
        return None
    try:
        name = data[2:].decode()
    except UnicodeDecodeError:
        return None
    return name if 0 < len(name) <= LONGEST_NAME and name != UNNAMED else None
