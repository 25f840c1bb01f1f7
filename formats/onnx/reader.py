"""ModelProto → Graph."""

from __future__ import annotations

import os
import re
from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto

from serde.errors import ConversionError, MalformedFile
from serde.ir.graph import (
    EMPTY,
    Attr,
    AttrRef,
    FileSlice,
    Function,
    Graph,
    Node,
    Source,
    Tensor,
    Value,
)
from serde.ir.metadata import DOC_OF
from serde.spec import schema
from serde.spec.inference import Type, from_proto
from serde.spec.onnx_library import check_type
from serde.spec.weight_origins import mark_weight

from .external_data_paths import Resolve, refuse_location, resolver
from .graph_fields import NodeFields, SmallTensor, describe_node, read_type
from .model_fields import ORIGIN, is_described, read_fields
from .parse import Parsed, parse, parse_file
from .tensors import KEYS, make_dense, read_tensor
from .topological_order import sort_nodes
from .unsupported_metadata import DEVICES, find_unsupported_metadata

DEPTH = 64  # subgraphs within subgraphs
LONGEST_NAME = 65_536
# How PyTorch's exporters name parameters of modules in others, and what calls compute of one.
# Parameters have a dot in their names; others are what calls computed of one, maybe.
PARAMETER = re.compile(
    r"\w+(\.\w+)+|(a?max|a?min|abs|add|clamp(_min|_max)?|div|exp|log|mean|mul|neg|pow|prod|reciprocal|"
    r"relu|rsqrt|rsub|select|sigmoid|softplus|sqrt|square|squeeze|sub|sum|tanh)(_\d+)?"
)
# What names, and lists, the arrays of a checkpoint in the metadata that PyTorch's exporter writes.
SIGNATURE = "ExportedProgram.graph_signature"
KEY = re.compile(r"^\w+: (?:PARAMETER|BUFFER) target='([^'\n]*)'(?! persistent=False)", re.M)
SIMPLE = {  # attribute types and the fields they are held in
    getattr(AttributeProto, kind): field
    for kind, field in {
        "INT": "i", "FLOAT": "f", "STRING": "s", "INTS": "ints", "FLOATS": "floats",
        "STRINGS": "strings",
    }.items()
}  # fmt: skip
OUTERMOST = 2  # scopes of a model's graph: nothing, and its own
Scope = ChainMap[str, Value]  # what can be read by name, innermost graph first
DEFAULT_DOMAINS = ("", "ai.onnx")


def read_model(path: str | os.PathLike[str], strict_paths: bool = False) -> Graph:
    """Read the ONNX file at ``path`` as a graph of its own opset.

    Raises:
        MalformedFile: with the byte where the file stops being a model, or the node or tensor.
    """
    path = os.fspath(path)
    parsed = parse_file(path)
    return decode(parsed.model, path, resolver(path, strict_paths), parsed)


def decode(
    model: onnx.ModelProto,
    path: str = "model",
    resolve: Resolve = refuse_location,
    parsed: Parsed | None = None,
) -> Graph:
    """Read a ModelProto; ``parsed`` has the parts of its graph that were kept apart from it."""
    if not model.HasField("graph"):
        raise MalformedFile(path, "not an ONNX model: it has no graph")
    try:
        imports = {o.domain: o.version for o in model.opset_import}
        opset = next((imports.pop(d) for d in DEFAULT_DOMAINS if d in imports), 1)
        return _Decoding(path, resolve).model(model, opset, imports, parsed)
    except UnicodeDecodeError:  # protobuf decodes a text when it is asked for
        raise MalformedFile(path, "a name or another text in it is not UTF-8") from None


class _Decoding:
    def __init__(self, path: str, resolve: Resolve) -> None:
        self.path, self.resolve = path, resolve
        self.in_function = False
        self.is_of_pytorch = False
        self.keys: set[str] = set()  # of the checkpoint that the model was exported with
        self.arrays: list[Value] = []  # that are of it
        self.defaults: list[str] = []  # inputs that have a value
        self.ends: set[str] = set()  # names of the model's inputs and outputs
        self.unread: dict[str, None] = {}  # keys of external data
        self.graphs: list[onnx.GraphProto] = []
        self.docs: dict[str, str] = {}  # of initializers, as metadata of the graph
        self.described: set[str] = set()  # values inside that the file says more of
        self.types: set[bytes] = set()  # of values that were kept apart from their graph
        self.of_nodes: set[str] = set()  # what nodes have that a graph does not hold
        self.overloads: dict[tuple[str, str, str], str] = {}
        self.plain: dict[Any, Mapping[str, Attr]] = {}  # attributes that hold no tensor or graph

    def model(self, model: onnx.ModelProto, opset: int, imports: Any, parsed: Any) -> Graph:
        self.check_texts(model.producer_name, model.producer_version, *imports)
        self.is_of_pytorch = model.producer_name == "pytorch"
        metadata = read_fields(model)
        for key, text in metadata.items():
            self.check_texts(key, text)
            if key.endswith(SIGNATURE):
                self.keys.update(KEY.findall(text))
        self.overloads = self.named_overloads(model.functions)
        self.ends = {v.name for v in (*model.graph.input, *model.graph.output)}
        self.described = {v.name for v in filter(is_described, model.graph.value_info)}
        functions = tuple(self.function(f, imports) for f in model.functions)
        graph = self.graph(
            model.graph, ChainMap(), 0, parsed, opset=opset, imports=MappingProxyType(imports),
            functions=functions, metadata=MappingProxyType(metadata),
        )  # fmt: skip
        notes = find_unsupported_metadata(
            model, self.graphs, self.defaults, self.unread, self.of_nodes, self.types
        )
        about = MappingProxyType({**metadata, **self.docs}) if self.docs else graph.metadata
        return replace(graph, notes=tuple(notes), metadata=about, arrays=tuple(self.arrays))

    def named_overloads(self, functions: Sequence[onnx.FunctionProto]) -> dict[Any, str]:
        """A name of its own for every function; those that share one differ in ``overload``."""
        keys = [(f.domain, f.name, f.overload) for f in functions]
        for key in keys:
            self.check_texts(*key)
        if twice := next((k for k, n in Counter(keys).items() if n > 1), None):
            raise MalformedFile(self.path, f"the function {twice[1]!r} is defined twice")
        named = {k: k[1] for k in keys if not k[2]}
        used = {k[:2] for k in named}
        for domain, name, overload in (k for k in keys if k[2]):
            unique = f"{name}_{overload}"
            while (domain, unique) in used:
                unique += "_"
            used.add((domain, unique))
            named[domain, name, overload] = unique
        return named

    def graph(
        self, proto: onnx.GraphProto, outer: Scope, depth: int, parsed: Parsed | None = None,
        **fields: Any,
    ) -> Graph:  # fmt: skip
        if depth > DEPTH:
            raise MalformedFile(self.path, f"subgraphs nest more than {DEPTH} deep")
        self.check_name(proto.name)
        self.graphs.append(proto)
        scope = outer.new_child()
        local_values = scope.maps[0]
        for item in parsed.tensors if parsed else ((t, None) for t in proto.initializer):
            if isinstance(item, SmallTensor):
                name, tensor = item
            else:
                name, tensor = item[0].name, self.tensor(*item)
                if item[0].doc_string and not depth and not self.in_function:
                    self.check_texts(item[0].doc_string)
                    self.docs[f"{DOC_OF}{name}"] = item[0].doc_string
            constant = Value(name, tensor.dtype, tensor.shape, tensor, None, (), True)
            is_key = name in self.keys
            if is_key:
                self.arrays.append(constant)
            if tensor.size == 1 and self.is_of_pytorch and (is_key or PARAMETER.fullmatch(name)):
                mark_weight(constant)
            self.define(scope, constant, "initializer")
        for sparse in proto.sparse_initializer:
            self.define(scope, self.sparse(sparse), "sparse initializer")
        declared = set(local_values)
        inputs = []
        for info in proto.input:
            if info.name in declared:
                self.defaults.append(info.name)
                continue  # an initializer listed as input: its default is its value
            inputs.append(self.value(info.name, info.type.SerializeToString()))
            self.define(scope, inputs[-1], "input")
        types = dict(parsed.types) if parsed else {}
        self.types.update(types.values())
        types |= {i.name: i.type.SerializeToString() for i in (*proto.value_info, *proto.output)}
        fields_of_nodes = parsed.nodes if parsed else list(map(describe_node, proto.node))
        ordered = sort_nodes(fields_of_nodes, self.path, local_values)
        nodes = [self.node(n, scope, types, depth) for n in ordered]
        outputs = [self.read(o.name, scope) for o in proto.output]
        return Graph(
            proto.name, tuple(inputs), tuple(v for v in outputs if v), tuple(nodes), **fields
        )

    def check_texts(self, *texts: str) -> None:
        if not set(map(type, texts)) <= {str}:
            raise MalformedFile(self.path, "a text in it is not UTF-8")

    def check_name(self, name: str) -> None:
        if not isinstance(name, str):  # protobuf gives what is not UTF-8 as bytes
            raise MalformedFile(self.path, f"the name {name[:40]!r} is not UTF-8")
        if len(name) > LONGEST_NAME:
            raise MalformedFile(self.path, f"the name {name[:40]!r}… has {len(name)} letters")

    def define(self, scope: Scope, value: Value, what: str) -> None:
        """Enter a value by its name; one of a subgraph leaves the names of the model's ends."""
        name, local_values = value.name, scope.maps[0]
        if name.__class__ is not str or len(name) > LONGEST_NAME:
            self.check_name(name)
        if name in local_values:
            raise MalformedFile(self.path, f"{what} {name!r} is defined twice")
        local_values[name] = value
        if len(scope.maps) > OUTERMOST and name in self.ends:
            value.name = f"{name}/inside"

    def tensor(self, proto: onnx.TensorProto, raw: FileSlice | None = None) -> Tensor:
        """Read a tensor; remember keys of external data that mean nothing here."""
        tensor = read_tensor(proto, self.path, self.resolve, raw)
        if proto.external_data:
            self.unread.update({e.key: None for e in proto.external_data if e.key not in KEYS})
        return tensor

    def dense(self, proto: onnx.SparseTensorProto) -> Tensor:
        values, indices = self.tensor(proto.values), self.tensor(proto.indices)
        return make_dense(proto, values, indices, self.path)

    def sparse(self, proto: onnx.SparseTensorProto) -> Value:
        tensor = self.dense(proto)
        return Value(proto.values.name, tensor.dtype, tensor.shape, tensor, name_is_original=True)

    def value(self, name: str, data: bytes | None) -> Value:
        """A value of the type that a TypeProto tells, if there is one."""
        if data is None:
            return Value(name)
        try:
            dtype, shape, container = _parse_type(data)
        except (ConversionError, ValueError, DecodeError) as error:
            reason = f"{name!r} has an impossible type: {error}"
            raise MalformedFile(self.path, reason) from None
        return Value(name, dtype, shape, None, None, container)

    def read(self, name: str, scope: Scope, node: NodeFields | None = None) -> Value | None:
        if not name:
            return None
        value = scope.get(name)
        if value is None:
            reader = "the outputs" if node is None else f"node {node.name or node.op!r}"
            raise MalformedFile(self.path, f"{reader} read {name!r}, which nothing before computes")
        return value

    def node(
        self, fields: NodeFields, scope: Scope, types: Mapping[str, bytes], depth: int
    ) -> Node:
        op, names, results, name, domain, doc, overload, properties, attributes, devices = fields
        get = scope.maps[0].get
        inputs = tuple([(get(n) or self.read(n, scope, fields)) if n else None for n in names])
        if attributes.__class__ is not bytes:
            for text in (name, op, domain):
                self.check_name(text)
            self.check_texts(doc)
        if devices:
            self.of_nodes.add(DEVICES)
        attrs = self.attributes(fields, scope, depth) if attributes else EMPTY
        outputs = []
        for output in results:
            value = self.value(output, types.get(output))
            outputs.append(value)
            if output:
                self.define(scope, value, "output")
        title = name or fields.title
        layer = Source("onnx", op, title, doc)
        if self.described and not depth and not self.in_function:
            layer.results = tuple([n for n in results if n in self.described])
        sources = self.sources(properties, layer) if properties else (layer,)
        if overload:
            op = self.overloads.get((domain, op, overload), op)
        domain = "" if domain in DEFAULT_DOMAINS else domain
        return Node(op, inputs, tuple(outputs), attrs, domain, title, sources)

    def sources(self, properties: Sequence[tuple[str, str]], layer: Source) -> tuple[Source, ...]:
        """The layers a node came from, ``layer`` where none is recorded."""
        layers: list[Source] = []
        metadata: list[tuple[str, str]] = []
        for key, text in properties:
            self.check_texts(key, text)
            parts = text.split(" ", 2)
            if not key.startswith(ORIGIN):
                metadata.append((key, text))
            elif len(parts) == 3:
                format_name, op, name = parts
                layers.append(Source(format_name, op, name))
        first, *others = layers or [layer]
        about = tuple(metadata)
        first = replace(first, doc=layer.doc, metadata=about, results=layer.results)
        return (first, *others)

    def attributes(self, node: NodeFields, scope: Scope, depth: int) -> Mapping[str, Attr]:
        """The attributes of a node: one mapping for all that have the same plain ones."""
        protos = node.attributes
        key: Any = None
        if isinstance(protos, bytes):
            if (known := self.plain.get(protos)) is not None:
                return known
            key, protos = protos, parse(onnx.NodeProto, protos, self.path).attribute
        attrs: dict[str, Attr] = {}
        for attribute in protos:
            self.check_name(attribute.name)
            if attribute.name in attrs:
                raise MalformedFile(
                    self.path, f"node {node.name!r} has attribute {attribute.name!r} twice"
                )
            attrs[attribute.name] = self.attribute(attribute, scope, depth)
        mapping = MappingProxyType(attrs)
        if key is not None and all(a.type in SIMPLE and not a.ref_attr_name for a in protos):
            self.plain[key] = mapping
        return mapping

    def attribute(self, proto: onnx.AttributeProto, scope: Any, depth: int) -> Attr:
        kind = proto.type or _kind(proto)
        if proto.ref_attr_name and not self.in_function:
            raise MalformedFile(
                self.path, f"attribute {proto.name!r} is that of a call, outside of any function"
            )
        if kind is None:
            raise MalformedFile(self.path, f"attribute {proto.name!r} has no kind, or several")
        if proto.ref_attr_name:
            self.check_name(proto.ref_attr_name)
            return AttrRef(proto.ref_attr_name, AttributeProto.AttributeType.Name(kind))
        if (field := SIMPLE.get(kind)) is not None:
            return schema.to_python_attribute(getattr(proto, field))  # type: ignore[no-any-return]
        if kind == AttributeProto.GRAPH:
            return self.graph(proto.g, scope, depth + 1)
        if kind == AttributeProto.TENSOR:
            return self.tensor(proto.t)
        if kind == AttributeProto.SPARSE_TENSOR:
            return self.dense(proto.sparse_tensor)
        if kind == AttributeProto.TENSORS:
            return tuple(map(self.tensor, proto.tensors))
        if kind in (
            AttributeProto.GRAPHS,
            AttributeProto.TYPE_PROTOS,
            AttributeProto.SPARSE_TENSORS,
        ):
            raise MalformedFile(self.path, f"attribute {proto.name!r} holds a list nothing defines")
        if kind == AttributeProto.TYPE_PROTO:
            return proto.tp  # type: ignore[no-any-return]
        return schema.to_python_attribute(onnx.helper.get_attribute_value(proto))  # type: ignore[no-any-return]

    def function(self, proto: onnx.FunctionProto, imports: Mapping[str, int]) -> Function:
        scope: Scope = ChainMap()
        defaults = [a.name for a in proto.attribute_proto]
        for name in (proto.name, proto.domain, *proto.input, *proto.attribute, *defaults):
            self.check_name(name)
        self.check_texts(*(o.domain for o in proto.opset_import))
        inputs = tuple(Value(name) for name in proto.input)
        scope.update((v.name, v) for v in inputs)
        types = {i.name: i.type.SerializeToString() for i in proto.value_info}
        self.in_function = True
        fields_of_nodes = list(map(describe_node, proto.node))
        ordered = sort_nodes(fields_of_nodes, self.path, set(proto.input))
        nodes = tuple(self.node(n, scope, types, 0) for n in ordered)
        self.in_function = False
        outputs = tuple(v for n in proto.output if (v := self.read(n, scope)))
        versions = {o.domain: o.version for o in proto.opset_import}
        opset = next((versions.pop(d) for d in DEFAULT_DOMAINS if d in versions), 1)
        name = self.overloads[proto.domain, proto.name, proto.overload]
        body = Graph(name, inputs, outputs, nodes, opset=opset, imports=versions)
        attrs: dict[str, Attr | None] = dict.fromkeys(proto.attribute)
        attrs |= {a.name: self.attribute(a, ChainMap(), 0) for a in proto.attribute_proto}
        return Function(proto.domain, name, body, MappingProxyType(attrs))


@lru_cache(4096)
def _parse_type(data: bytes) -> Type:
    if (plain := read_type(data)) is not None:
        return plain
    proto = onnx.TypeProto.FromString(data)
    check_type("it", proto, least=-1)  # exporters write -1 for a size that is unknown
    return from_proto(proto)


# The fields an attribute's value may be in; files before IR version 2 do not tell which it is.
FIELDS = {"f": "FLOAT", "i": "INT", "s": "STRING", "t": "TENSOR", "g": "GRAPH", "floats": "FLOATS",
          "ints": "INTS", "strings": "STRINGS", "tensors": "TENSORS"}  # fmt: skip


def _kind(proto: onnx.AttributeProto) -> int | None:
    """The kind of an attribute that does not tell it, None where that is left open."""
    if proto.ref_attr_name:
        return int(AttributeProto.UNDEFINED)
    set_fields = [field.name for field, _ in proto.ListFields() if field.name in FIELDS]
    return (
        int(AttributeProto.AttributeType.Value(FIELDS[set_fields[0]]))
        if len(set_fields) == 1
        else None
    )
