"""What an ONNX model says of itself in fields of its own, as metadata of a graph, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import onnx

from serde import __version__
from serde.ir.dim_expr import is_number
from serde.ir.graph import Graph, Value
from serde.ir.metadata import BETWEEN, DENOTATIONS_OF, DOC_OF, OF_VALUES, PROPERTIES_OF
from serde.ir.printer import list_first

# Metadata keys of what a model has fields for, which are not the model's own.
DOCS = ("onnx.doc_string", "onnx.graph.doc_string")
IR_VERSION = "onnx.ir_version"
PRODUCER, PRODUCER_VERSION = "onnx.producer", "onnx.producer_version"  # the first has both words
MODEL_VERSION, MODEL_DOMAIN = "onnx.model_version", "onnx.domain"
OF_THE_FILE = (IR_VERSION, PRODUCER, PRODUCER_VERSION, MODEL_VERSION, MODEL_DOMAIN, *DOCS)
ORIGIN = "serde.source"  # key of what a node's metadata say of the layer it came from
OF_THE_GRAPH = "onnx.graph.metadata/"  # before the keys of the main graph's own metadata
SHOWN = 3  # names in a note
INNER_OF = "onnx.value_info/"  # documentation, keys and texts of a value inside, whose name follows


def read_fields(model: onnx.ModelProto) -> dict[str, str]:
    """All metadata of a model: its own, and what its fields say."""
    return {p.key: p.value for p in model.metadata_props} | dict(_list_fields(model))


def _list_fields(model: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    yield IR_VERSION, str(model.ir_version)
    version = model.producer_version
    fields = {PRODUCER_VERSION: version, MODEL_DOMAIN: model.domain, DOCS[0]: model.doc_string,
              DOCS[1]: model.graph.doc_string}  # fmt: skip
    if model.producer_name:
        fields[PRODUCER] = f"{model.producer_name} {version}".strip()
    if model.model_version:
        fields[MODEL_VERSION] = str(model.model_version)
    yield from ((key, text) for key, text in fields.items() if text)
    for prop in model.graph.metadata_props:
        yield f"{OF_THE_GRAPH}{prop.key}", prop.value
    for info in (*model.graph.input, *model.graph.output):
        if info.doc_string:
            yield f"{DOC_OF}{info.name}", info.doc_string
        if info.metadata_props:
            texts = (text for p in info.metadata_props for text in (p.key, p.value))
            yield f"{PROPERTIES_OF}{info.name}", BETWEEN.join(texts)
        denotations = read_denotations(info.type)
        if any(denotations):
            yield f"{DENOTATIONS_OF}{info.name}", BETWEEN.join(denotations)
    for info in filter(is_described, model.graph.value_info):
        texts = (text for p in info.metadata_props for text in (p.key, p.value))
        yield f"{INNER_OF}{info.name}", BETWEEN.join((info.doc_string, *texts))


def is_described(info: onnx.ValueInfoProto) -> bool:
    """Whether a file says more of a value than its type."""
    return bool(info.doc_string or info.metadata_props)


def read_denotations(kind: onnx.TypeProto) -> list[str]:
    """What a value stands for, and each of its axes; empty texts where nothing is said."""
    return [kind.denotation, *(d.denotation for d in kind.tensor_type.shape.dim)]


def write_model_fields(model: onnx.ModelProto, metadata: Mapping[str, str]) -> None:
    """Enter metadata into a model, but those of its graph."""
    model.producer_name, model.producer_version = find_producer(metadata)
    model.domain = metadata.get(MODEL_DOMAIN, "")
    number = metadata.get(MODEL_VERSION, "0")
    model.model_version = int(number) if is_number(number.removeprefix("-")) else 0
    model.doc_string = metadata.get(DOCS[0], "")
    for key, text in sorted(metadata.items()):
        if key not in OF_THE_FILE and not key.startswith((OF_THE_GRAPH, INNER_OF, *OF_VALUES)):
            model.metadata_props.add(key=key, value=text)


def write_graph_fields(graph: onnx.GraphProto, metadata: Mapping[str, str]) -> None:
    """Enter metadata of a model into its main graph, whose inputs and outputs are there."""
    graph.doc_string = metadata.get(DOCS[1], "")
    for key, text in sorted(metadata.items()):
        if key.startswith(OF_THE_GRAPH):
            graph.metadata_props.add(key=key.removeprefix(OF_THE_GRAPH), value=text)
    write_docs(graph.initializer, metadata)
    for info in (*graph.input, *graph.output) if metadata else ():
        write_inner_fields(info, metadata)
        info.doc_string = metadata.get(f"{DOC_OF}{info.name}", info.doc_string)
        _enter_properties(info, metadata.get(f"{PROPERTIES_OF}{info.name}", "").split(BETWEEN))
        whole, *axes = metadata.get(f"{DENOTATIONS_OF}{info.name}", "").split(BETWEEN)
        if whole:
            info.type.denotation = whole
        dims = info.type.tensor_type.shape.dim
        for dim, text in zip(dims, axes, strict=False) if len(dims) == len(axes) else ():
            dim.denotation = text


def write_inner_fields(info: onnx.ValueInfoProto, metadata: Mapping[str, str]) -> None:
    """Enter what a file said of a value inside, which may be a result by now."""
    info.doc_string, *texts = metadata.get(f"{INNER_OF}{info.name}", "").split(BETWEEN)
    _enter_properties(info, texts)


def _enter_properties(info: onnx.ValueInfoProto, texts: Sequence[str]) -> None:
    """Enter keys and texts, in turn."""
    for key, text in zip(texts[::2], texts[1::2], strict=False):
        info.metadata_props.add(key=key, value=text)


def list_described(graph: Graph, metadata: Mapping[str, str]) -> set[Value]:
    """The values inside that are those which ``metadata`` are about, by more than their names."""
    if not any(key.startswith(INNER_OF) for key in metadata):
        return set()
    return {
        v for node in graph.nodes for v in node.outputs
        if f"{INNER_OF}{v.name}" in metadata and any(v.name in s.results for s in node.sources)
    }  # fmt: skip


def note_lost_values(graph: Graph) -> Graph:
    """``graph`` without what its file said of values inside that it has not; a note names them."""
    names = {v.name for v in (*list_described(graph, graph.metadata), *graph.outputs)}
    about = [k.removeprefix(INNER_OF) for k in graph.metadata if k.startswith(INNER_OF)]
    lost = {*about} - names
    if not lost:
        return graph
    metadata = {k: t for k, t in graph.metadata.items() if k.removeprefix(INNER_OF) not in lost}
    shown = list_first([*map(repr, sorted(lost))], SHOWN)
    note = f"not kept: what the file says of values inside that the result has not: {shown}"
    return replace(graph, metadata=metadata, notes=(*graph.notes, note))


def write_docs(tensors: Iterable[onnx.TensorProto], metadata: Mapping[str, str]) -> None:
    """Enter the documentation of initializers."""
    for tensor in tensors:
        if text := metadata.get(f"{DOC_OF}{tensor.name}"):
            tensor.doc_string = text


def find_producer(metadata: Mapping[str, str]) -> tuple[str, str]:
    """What wrote a model, and its version: what its ONNX file names, else serde."""
    version = metadata.get(PRODUCER_VERSION, "")
    name = metadata.get(PRODUCER, "").removesuffix(version).rstrip()
    return (name, version) if name else ("serde", __version__)
