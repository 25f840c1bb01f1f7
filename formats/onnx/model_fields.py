"""What an ONNX model says of itself in fields of its own, as metadata of a graph, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx

from serde import __version__
from serde.ir.dim_expr import is_number
from serde.ir.metadata import BETWEEN, DENOTATIONS_OF, DOC_OF, OF_VALUES, PROPERTIES_OF

# Metadata keys of what a model has fields for, which are not the model's own.
DOCS = ("onnx.doc_string", "onnx.graph.doc_string")
IR_VERSION = "onnx.ir_version"
PRODUCER, PRODUCER_VERSION = "onnx.producer", "onnx.producer_version"  # the first has both words
MODEL_VERSION, MODEL_DOMAIN = "onnx.model_version", "onnx.domain"
OF_THE_FILE = (IR_VERSION, PRODUCER, PRODUCER_VERSION, MODEL_VERSION, MODEL_DOMAIN, *DOCS)
ORIGIN = "serde.source"  # key of what a node's metadata say of the layer it came from
OF_THE_GRAPH = "onnx.graph.metadata/"  # before the keys of the main graph's own metadata


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
        if key not in OF_THE_FILE and not key.startswith((OF_THE_GRAPH, *OF_VALUES)):
            model.metadata_props.add(key=key, value=text)


def write_graph_fields(graph: onnx.GraphProto, metadata: Mapping[str, str]) -> None:
    """Enter metadata of a model into its main graph, whose inputs and outputs are there."""
    graph.doc_string = metadata.get(DOCS[1], "")
    for key, text in sorted(metadata.items()):
        if key.startswith(OF_THE_GRAPH):
            graph.metadata_props.add(key=key.removeprefix(OF_THE_GRAPH), value=text)
    write_docs(graph.initializer, metadata)
    for info in (*graph.input, *graph.output) if metadata else ():
        info.doc_string = metadata.get(f"{DOC_OF}{info.name}", "")
        texts = metadata.get(f"{PROPERTIES_OF}{info.name}", "").split(BETWEEN)
        for key, text in zip(texts[::2], texts[1::2], strict=False):
            info.metadata_props.add(key=key, value=text)
        whole, *axes = metadata.get(f"{DENOTATIONS_OF}{info.name}", "").split(BETWEEN)
        if whole:
            info.type.denotation = whole
        dims = info.type.tensor_type.shape.dim
        for dim, text in zip(dims, axes, strict=False) if len(dims) == len(axes) else ():
            dim.denotation = text


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
