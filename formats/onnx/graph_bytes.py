"""The bytes of a GraphProto, as protobuf serializes it deterministically.

Nodes and types are written by hand, attributes and what is rare by protobuf.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import onnx
from onnx import AttributeProto, helper

from serde.ir.builder import Names
from serde.ir.graph import EMPTY, AttrRef, DType, Graph, Node, Shape, Source, Tensor, Value
from serde.spec import canonicalize, schema
from serde.spec.inference import type_proto
from serde.spec.memo import AttributeNumbers
from serde.spec.onnx_library import MOST_SIZE
from serde.spec.schema import ELEMENT_CODES

from .constant_homes import find_homes
from .model_fields import ORIGIN, list_described, write_graph_fields, write_inner_fields
from .protobuf_wire import encode_varint
from .tensors import tensor_proto

# Keys of fields: of a GraphProto, of a NodeProto, and the first two of other messages.
NODE, VALUE_INFO = b"\x0a", b"\x6a"
INPUT, OUTPUT, NAME, OP = b"\x0a", b"\x12", b"\x1a", b"\x22"
ATTRIBUTE, DOC, DOMAIN, PROPERTY = b"\x2a", b"\x32", b"\x3a", b"\x4a"
FIRST, SECOND = b"\x0a", b"\x12"
NO_OPERAND = INPUT + b"\0"
INPUTS_OPTIONAL_IR = 4  # the first IR version with initializers that are no inputs


class ModuleNames(Names):
    """Node names in use in a model, and the constants of the main graph and of subgraphs."""

    def __init__(self, graph: Graph, ir_version: int) -> None:
        super().__init__()
        self.opset, self.explicit = graph.opset, graph.explicit
        self.attributes: dict[Any, bytes] = {}  # of operators, once written
        self.texts, self.number_attributes = _Texts(), AttributeNumbers()
        self.inner = find_homes(graph, may_be_inner=ir_version >= INPUTS_OPTIONAL_IR)
        self.outer = self.inner.pop(graph)


class _Texts(dict[str, bytes]):
    """Texts in UTF-8, behind their lengths."""

    def __missing__(self, text: str) -> bytes:
        data = self[text] = with_length(text.encode())
        return data


def with_length(data: bytes) -> bytes:
    """A field's payload behind its length."""
    return encode_varint(len(data)) + data


def encode_graph(
    graph: Graph, names: ModuleNames, metadata: Mapping[str, str] = EMPTY,
    more: Iterable[Value] = (),
) -> bytes:  # fmt: skip
    """``names`` are the node names in use in the graphs around this one; ``more`` are inputs.

    ``metadata`` are those of the model, if the graph is its main one.
    """
    last = {node.name: node for node in graph.nodes}  # of several from one layer, it bears the name
    names.reserved.update(last)
    texts, infos, parts = names.texts, list[bytes](), list[bytes]()
    ends = {*graph.inputs, *graph.outputs}
    described = list_described(graph, metadata)
    for node in graph.nodes:
        is_last = last[node.name] is node
        name = names.claim(node.name) if is_last else names.fresh(_stem(node))
        body = encode_node(node, name, names)
        parts += (NODE, encode_varint(len(body)), body)
        for v in node.outputs:
            if v.dtype and v.name and v not in ends:
                info = FIRST + texts[v.name] + _encode_type(v.dtype, v.shape, v.container)
                info += _encode_fields(v, metadata) if v in described else b""
                infos += (VALUE_INFO, encode_varint(len(info)), info)
    rest = onnx.GraphProto(name=graph.name or "graph")
    rest.input.extend(map(_info, (*graph.inputs, *more)))
    rest.output.extend(map(_info, graph.outputs))
    write_graph_fields(rest, metadata)
    constants = [(v.name, v.tensor) for v in names.inner.get(graph, ()) if v.tensor is not None]
    rest.initializer.extend(tensor_proto(name, tensor) for name, tensor in constants)
    return b"".join((*parts, rest.SerializeToString(deterministic=True), *infos))


def _encode_fields(value: Value, metadata: Mapping[str, str]) -> bytes:
    """What a ValueInfoProto says of a value inside beside its name and its type."""
    info = onnx.ValueInfoProto(name=value.name)
    write_inner_fields(info, metadata)
    info.ClearField("name")
    return bytes(info.SerializeToString(deterministic=True))


def _stem(node: Node) -> str:
    """What one of several nodes of a layer is called: as its value, which is numbered."""
    layer, value = f"{node.name}/{node.op}", node.outputs[0].name if node.outputs else ""
    return value if value.startswith(layer) else layer


def _info(value: Value) -> onnx.ValueInfoProto:
    kind = type_proto(value.dtype, value.shape, value.container)
    return onnx.ValueInfoProto(name=value.name, type=kind)


def encode_node(node: Node, name: str, names: ModuleNames) -> bytes:
    """A NodeProto called ``name``."""
    texts, parts = names.texts, list[bytes]()
    for operand in node.inputs:
        parts += (NO_OPERAND,) if operand is None else (INPUT, texts[operand.name])
    for value in node.outputs:
        parts += (OUTPUT, texts[value.name])
    parts += (NAME, texts[name], OP, texts[node.op])
    if node.attrs:
        parts.append(_encode_attributes(node, names))
    if doc := "\n".join([s.doc for s in node.sources if s.doc]):
        parts += (DOC, texts[doc])
    parts += (DOMAIN, texts[node.domain])
    for key, text in _list_properties(node.sources):
        entry = FIRST + texts[key] + SECOND + with_length(text.encode())
        parts += (PROPERTY, encode_varint(len(entry)), entry)
    return b"".join(parts)


def _list_properties(sources: Iterable[Source]) -> Iterator[tuple[str, str]]:
    """The layers that a node came from, and what was written about them: the first's counts."""
    layers = [s for s in sources if s.format != "onnx"]
    for at, source in enumerate(layers):
        text = f"{source.format} {source.op} {source.name}"
        yield f"{ORIGIN}.{at}" if at else ORIGIN, text
    metadata: dict[str, str] = {}
    for source in sources:
        for key, text in source.metadata:
            metadata.setdefault(key, text)
    yield from metadata.items()


def _encode_attributes(node: Node, names: ModuleNames) -> bytes:
    """The attributes of a node that say more than their defaults."""
    number = names.number_attributes(node.attrs)
    key = node.domain, node.op, number
    data = names.attributes.get(key)
    if data is None:
        protos = [a.SerializeToString(deterministic=True) for a in _attributes(node, names)]
        data = b"".join([ATTRIBUTE + with_length(proto) for proto in protos])
        if number is not None:
            names.attributes[key] = data
    return data


def _attributes(node: Node, names: ModuleNames) -> Iterator[onnx.AttributeProto]:
    operator = schema.find(node.op, names.opset) if not node.domain else None
    attrs = node.attrs
    if operator is not None:
        kept = {key: value for key, value in attrs.items() if (node.op, key) in names.explicit}
        attrs = canonicalize.drop_defaults(operator, attrs) | kept
    for key, value in sorted(attrs.items()):
        if value == ():
            yield schema.make_empty_attribute(node.op, key, node.domain)
        else:
            yield make_attribute(key, value, names)


def make_attribute(name: str, value: Any, names: ModuleNames) -> onnx.AttributeProto:
    """The AttributeProto of an attribute's value."""
    if type(value) is int:
        return AttributeProto(name=name, type=AttributeProto.INT, i=value)
    if isinstance(value, tuple) and set(map(type, value)) <= {int}:
        return AttributeProto(name=name, type=AttributeProto.INTS, ints=value)
    if isinstance(value, tuple) and set(map(type, value)) == {Tensor}:
        tensors = [tensor_proto("", t) for t in value]
        return AttributeProto(name=name, type=AttributeProto.TENSORS, tensors=tensors)
    if isinstance(value, AttrRef):
        kind = AttributeProto.AttributeType.Value(value.kind)
        return AttributeProto(name=name, type=kind, ref_attr_name=value.name)
    if isinstance(value, Graph):
        body = AttributeProto(name=name, type=AttributeProto.GRAPH)
        body.g.MergeFromString(encode_graph(value, names))
        return body
    if isinstance(value, Tensor):
        return AttributeProto(name=name, type=AttributeProto.TENSOR, t=tensor_proto("", value))
    return helper.make_attribute(name, value)


@lru_cache(4096)
def _encode_type(dtype: DType, shape: Shape | None, container: tuple[str, ...]) -> bytes:
    """The type of a ValueInfoProto."""
    sizes = [] if shape is None else [d for d in shape if isinstance(d, int)]
    if container or max(sizes, default=0) > MOST_SIZE:
        proto = type_proto(dtype, shape, container)
        return SECOND + with_length(proto.SerializeToString(deterministic=True))
    tensor = b"\x08" + encode_varint(ELEMENT_CODES[dtype])
    if shape is not None:
        dims = [FIRST + with_length(_encode_dim(d)) for d in shape]
        tensor += SECOND + with_length(b"".join(dims))
    return SECOND + with_length(FIRST + with_length(tensor))


def _encode_dim(dim: int | str | None) -> bytes:
    if dim is None:
        return b""
    if isinstance(dim, str):
        return SECOND + with_length(dim.encode())
    return b"\x08" + encode_varint(dim)
