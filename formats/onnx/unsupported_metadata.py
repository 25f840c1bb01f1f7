"""Notes on metadata of an ONNX file that a graph does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import onnx

SHOWN = 3  # names in a note
DEFAULTS_IR = 4  # the first IR version in which an initializer need not be an input


def find_unsupported_metadata(
    model: onnx.ModelProto, defaults: Sequence[str], unread: Iterable[str]
) -> Iterator[str]:
    """Notes on ``model``.

    ``defaults`` are the inputs that have a value, ``unread`` the keys of external data that mean
    nothing here.
    """
    if model.training_info:
        yield "training information is not kept: the result is for inference"
    graphs = list(_graphs(model))
    annotated = [a.tensor_name for g in graphs for a in g.quantization_annotation]
    if annotated:
        yield f"quantization annotations are not kept: of {_format_list(annotated)}"
    if defaults and model.ir_version >= DEFAULTS_IR:
        yield f"inputs that have a default value become constants: {_format_list(defaults)}"
    if keys := sorted(unread):
        yield f"keys of external data that are not read: {_format_list(keys)}"
    if about := list(_describe_unsupported(model, graphs)):
        yield f"not kept: {', '.join(about)}"


def _format_list(names: Sequence[str]) -> str:
    """The first names, and how many more; what is no text is shown as it is."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(n[:80]) for n in names[:SHOWN]) + more


def _graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The graph and its subgraphs."""
    stack = [model.graph]
    while stack:
        graph = stack.pop()
        yield graph
        for node in graph.node:
            stack.extend(a.g for a in node.attribute if a.HasField("g"))


def _describe_unsupported(
    model: onnx.ModelProto, graphs: Sequence[onnx.GraphProto]
) -> Iterator[str]:
    """What is said about things that have no place for it here."""
    infos = [i for g in graphs for i in (*g.input, *g.output, *g.value_info)]
    nodes = [n for g in graphs for n in g.node]
    said = {
        "documentation of values": any(i.doc_string for i in infos),
        "documentation of functions": any(f.doc_string for f in model.functions),
        "metadata of graphs": any(g.metadata_props for g in graphs),
        "metadata of nodes": any(
            not p.key.startswith("serde.source") for n in nodes for p in n.metadata_props
        ),
        "metadata of values": any(i.metadata_props for i in infos),
        "denotations": any(_has_denotation(i.type) for i in infos),
        "device configurations": bool(model.configuration)
        or any(n.device_configurations for n in nodes),
    }
    yield from (what for what, there in said.items() if there)


def _has_denotation(kind: onnx.TypeProto) -> bool:
    if kind.denotation:
        return True
    return any(d.denotation for d in kind.tensor_type.shape.dim)
