"""Graph → ONNX file. Weights are copied file to file, or pointed at where they lie.

The model's bytes are written by hand around protobuf's: everything small is serialised by it, then
each initializer is streamed behind its own header, so no model is ever whole in memory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import onnx
from onnx import helper

from serde.errors import MalformedFile, TargetRefused, UsageError
from serde.io.atomic_write import Replacing, Sources
from serde.io.tensor_bytes import bytes_of
from serde.ir.graph import EMPTY, DType, FileSlice, Function, Graph, Tensor, Value
from serde.ir.metadata import DOC_OF
from serde.spec.schema import ELEMENT_CODES

from . import protobuf_wire
from .graph_bytes import INPUTS_OPTIONAL_IR, ModuleNames, encode_graph, encode_node, make_attribute
from .model_fields import write_docs, write_model_fields
from .protobuf_wire import GRAPH, INITIALIZER, RAW_DATA
from .tensors import tensor_proto, type_fields

SUFFIX = ".onnx"
MODES = ("auto", "always", "never", "reference")
INLINE_MOST = 1 << 31  # bytes; protobuf refuses messages of 2 GiB
EXTERNAL_LEAST = 1024  # bytes; smaller tensors stay in the model
TENSOR_NAME = 8  # a field's number
PAGE = 4096  # bytes; where a tensor of a page or more begins in the sidecar
# The first IR version with opset imports, with functions.
LEAST_IR, FUNCTIONS_IR = 3, 8


def least_ir_version(opset: int) -> int:
    """The IR version the standard pairs with ``opset``."""
    versions = {o: v for (d, o), v in helper.OP_SET_ID_VERSION_MAP.items() if d == "ai.onnx"}
    return int(versions.get(opset, LEAST_IR))


class PlacedInitializer(NamedTuple):
    """One initializer: its header, and either its bytes or nothing (they lie elsewhere)."""

    head: bytes
    tensor: Tensor | None
    size: int

    @property
    def length(self) -> int:
        """Bytes of the TensorProto."""
        return len(self.head) + self.size


def write_model(
    graph: Graph,
    path: str | os.PathLike[str],
    *,
    ir_version: int | None = None,
    external_data: str = "auto",
) -> list[str]:
    """Write ``graph``, whose nodes are those of its ``opset``, to ``path``; return the files made.

    ``external_data`` is ``auto`` (a sidecar only where the model would not fit in 2 GiB),
    ``always``, ``never``, or ``reference``: point into the files the weights lie in already.
    """
    if external_data not in MODES:
        raise UsageError(f"external data is one of {', '.join(MODES)}, not {external_data!r}")
    if ir_version is not None and not LEAST_IR <= ir_version <= onnx.IR_VERSION:
        raise UsageError(f"IR version {ir_version} is not one of {LEAST_IR} to {onnx.IR_VERSION}")
    path = os.fspath(path)
    version = least_ir_version(graph.opset) if ir_version is None else ir_version
    names = ModuleNames(graph, version)
    constants = names.outer
    total = sum(v.tensor.nbytes for v in constants if v.tensor is not None)
    model, body = encode(graph, version, names)
    mode = external_data
    if mode == "auto":
        mode = "always" if total + (32 << 20) >= INLINE_MOST else "never"
    if mode == "never" and total + len(constants) * 64 >= INLINE_MOST:
        raise UsageError(
            f"{total} bytes of weights do not fit in one ONNX file: allow external data"
        )
    with Replacing(path) as files, Sources() as sources:
        sidecar = _Sidecar(files, sources, path, mode)
        placed = [sidecar.place(v, graph.metadata) for v in constants if v.tensor is not None]
        with files.open(path) as out:
            _stream(model, body, placed, sources, out)
        sidecar.close()
    return files.written


def sidecar_of(model: str) -> str:
    """The file beside a model that takes its large weights."""
    return model + ".data"


def check_target(
    path: str | os.PathLike[str], *, external_data: str = "auto", **options: Any
) -> None:
    """Refuse a path whose file of weights another model needs, where it is sure to be written."""
    if external_data == "always":
        refuse_shared(os.fspath(path))


def refuse_shared(model: str) -> None:
    """Raise TargetRefused where the sidecar of ``model`` has weights of another in the folder.

    ``external_data="reference"`` makes such models.
    """
    sidecar = sidecar_of(model)
    if not os.path.isfile(sidecar):
        return
    from .parse import external_locations

    folder = os.path.dirname(os.path.abspath(model))
    for name in sorted(n for n in os.listdir(folder) if n.endswith(SUFFIX)):
        other = os.path.join(folder, name)
        if not os.path.isfile(other) or _same(other, model):
            continue
        try:
            locations = external_locations(other)
        except (MalformedFile, OSError, ValueError):  # no model, so that it has no weights there
            continue
        if any(_same(os.path.join(folder, location), sidecar) for location in locations):
            raise TargetRefused(
                f"{sidecar} also holds the weights of {other}, which would be damaged: write to "
                "another name, or keep the weights in the model with --external-data never"
            )


def to_proto(graph: Graph, ir_version: int | None = None) -> onnx.ModelProto:
    """The ModelProto of ``graph``, weights included."""
    version = least_ir_version(graph.opset) if ir_version is None else ir_version
    names = ModuleNames(graph, version)
    model, body = encode(graph, version, names)
    model.graph.MergeFromString(body)
    for value in names.outer:
        if value.tensor is not None:
            model.graph.initializer.append(tensor_proto(value.name, value.tensor))
    write_docs(model.graph.initializer, graph.metadata)
    return model


def _stream(
    model: onnx.ModelProto, body: bytes, placed: Sequence[PlacedInitializer], sources: Sources,
    out: BinaryIO,
) -> None:  # fmt: skip
    if len(body) >= INLINE_MOST:
        raise UsageError("the nodes alone take more than the 2 GiB of an ONNX file")
    out.write(model.SerializeToString(deterministic=True))
    heads = [protobuf_wire.encode_header(INITIALIZER, p.length) for p in placed]
    total = len(body) + sum(len(h) + p.length for h, p in zip(heads, placed, strict=True))
    out.write(protobuf_wire.encode_header(GRAPH, total))
    out.write(body)
    for head, item in zip(heads, placed, strict=True):
        out.write(head + item.head)
        if item.tensor is not None:
            write_bytes(item.tensor, sources, out)


def write_bytes(tensor: Tensor, sources: Sources, out: BinaryIO) -> None:
    """Write the bytes of ``tensor``, file to file where they lie in one."""
    if tensor.where is not None:
        sources.copy(tensor.where, out)
    else:
        out.write(bytes_of(tensor))


class _Sidecar:
    """The file beside a model that takes its large weights."""

    def __init__(self, files: Replacing, sources: Sources, model: str, mode: str) -> None:
        self.files, self.sources, self.model, self.mode = files, sources, model, mode
        self.folder = os.path.dirname(os.path.realpath(model))
        self.sidecar = sidecar_of(model)
        self.name = os.path.basename(self.sidecar)
        self.out: BinaryIO | None = None
        self.offset = 0
        self.copied: dict[FileSlice, int] = {}  # where in the sidecar each part is

    def place(self, value: Value, metadata: Mapping[str, str] = EMPTY) -> PlacedInitializer:
        """An initializer, with what ``metadata`` of the model say of it."""
        placed, text = self._place(value), metadata.get(f"{DOC_OF}{value.name}")
        doc = onnx.TensorProto(doc_string=text).SerializeToString() if text else b""
        return placed._replace(head=doc + placed.head)

    def _place(self, value: Value) -> PlacedInitializer:
        tensor = value.tensor
        assert tensor is not None
        if tensor.dtype is DType.STRING:
            return PlacedInitializer(tensor_proto(value.name, tensor).SerializeToString(), None, 0)
        nbytes = tensor.nbytes
        if self.mode == "never" or nbytes < EXTERNAL_LEAST:
            name = value.name.encode()
            head = type_fields(tensor.dtype, tensor.shape)
            head += protobuf_wire.encode_header(TENSOR_NAME, len(name)) + name
            head += protobuf_wire.encode_header(RAW_DATA, nbytes)
            return PlacedInitializer(head, tensor, nbytes)
        code = ELEMENT_CODES[tensor.dtype]
        proto = onnx.TensorProto(name=value.name, data_type=code, dims=tensor.shape)
        where = self.reference(tensor) if self.mode == "reference" else None
        location, offset = where or self.append(tensor)
        if location.encode(errors="ignore").decode() != location:
            raise UsageError(
                f"{self.model}: a model names its file of weights in UTF-8, which this name is "
                "not: write to another name, or keep the weights in it with --external-data never"
            )
        proto.data_location = onnx.TensorProto.EXTERNAL
        for key, text in (("location", location), ("offset", offset), ("length", tensor.nbytes)):
            proto.external_data.add(key=key, value=str(text))
        return PlacedInitializer(proto.SerializeToString(), None, 0)

    def reference(self, tensor: Tensor) -> tuple[str, int] | None:
        """Where the tensor's bytes lie already, relative to the model's folder."""
        replaced = (self.model, self.sidecar)  # what lies in these is about to go
        if tensor.where is None or any(map(partial(_same, tensor.where.path), replaced)):
            return None
        location = os.path.relpath(os.path.realpath(tensor.where.path), self.folder)
        if location.startswith("..") or os.path.isabs(location):
            raise UsageError(
                f"the weights lie in {tensor.where.path}, outside the folder of {self.model}: "
                "write the model beside them, or choose another mode of external data"
            )
        return location.replace(os.sep, "/"), tensor.where.offset

    def append(self, tensor: Tensor) -> tuple[str, int]:
        if tensor.where is not None and tensor.where in self.copied:  # weights that are tied
            return self.name, self.copied[tensor.where]
        if self.out is None:
            refuse_shared(self.model)
            self.out = self.files.open(self.sidecar)
        align = PAGE if tensor.nbytes >= PAGE else 64
        self.out.write(b"\0" * (-self.offset % align))
        self.offset += -self.offset % align
        start = self.offset
        write_bytes(tensor, self.sources, self.out)
        self.offset += tensor.nbytes
        if tensor.where is not None:
            self.copied[tensor.where] = start
        return self.name, start

    def close(self) -> None:
        if self.out is not None:
            self.out.close()


def _same(a: str, b: str) -> bool:
    return os.path.realpath(a) == os.path.realpath(b)


def encode(graph: Graph, version: int, names: ModuleNames) -> tuple[onnx.ModelProto, bytes]:
    """The model without its graph, and the bytes of that without weights."""
    model = onnx.ModelProto(ir_version=version)
    model.opset_import.add(domain="", version=graph.opset)
    for domain, number in sorted(graph.imports.items()):
        model.opset_import.add(domain=domain, version=number)
    write_model_fields(model, graph.metadata)
    for constants in (names.outer, *names.inner.values()):  # tract has one space of names
        names.reserved.update([v.name for v in constants])
    # before IR version 4 every initializer was an input as well
    more = names.outer if version < INPUTS_OPTIONAL_IR else ()
    body = encode_graph(graph, names, graph.metadata, more)
    for function in graph.functions:
        model.functions.append(_function(function, graph))
    return model, body


def _function(function: Function, module: Graph) -> onnx.FunctionProto:
    body = function.body
    proto = onnx.FunctionProto(name=function.name, domain=function.domain)
    proto.input.extend(v.name for v in body.inputs)
    proto.output.extend(v.name for v in body.outputs)
    proto.opset_import.add(domain="", version=body.opset)
    for domain, number in sorted({**module.imports, **body.imports}.items()):
        proto.opset_import.add(domain=domain, version=number)
    names = ModuleNames(body, FUNCTIONS_IR)
    for constant in names.outer:
        assert constant.tensor is not None
        tensor = tensor_proto("", constant.tensor)
        proto.node.append(helper.make_node("Constant", [], [constant.name], value=tensor))
    for node in body.nodes:
        proto.node.add().MergeFromString(encode_node(node, names.claim(node.name), names))
    for name, default in function.attrs.items():
        if default is None:
            proto.attribute.append(name)
        else:
            proto.attribute_proto.append(make_attribute(name, default, names))
    return proto
