"""Notes on metadata of an ONNX file that a graph does not hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import onnx

from serde.ir.printer import list_first

from .graph_fields import may_have_denotations
from .model_fields import SHOWN, read_denotations

DEVICES = "device configurations"
DEFAULTS_IR = 4  # the first IR version in which an initializer need not be an input


def find_unsupported_metadata(
    model: onnx.ModelProto, graphs: Sequence[onnx.GraphProto], defaults: Sequence[str],
    unread: Iterable[str], of_nodes: Collection[str], types: Iterable[bytes],
) -> Iterator[str]:  # fmt: skip
    """Notes on ``model``, whose graphs are ``graphs``.

    ``defaults`` are the inputs that have a value, ``unread`` the keys of external data that mean
    nothing here, ``of_nodes`` tells what nodes have, ``types`` are those of values that are not in
    the graphs.
    """
    if model.training_info:
        yield "training information is not kept: the result is for inference"
    annotated = [a.tensor_name for g in graphs for a in g.quantization_annotation]
    if annotated:
        yield f"quantization annotations are not kept: of {_format_list(annotated)}"
    if defaults and model.ir_version >= DEFAULTS_IR:
        yield f"inputs that have a default value become constants: {_format_list(defaults)}"
    if keys := sorted(unread):
        yield f"keys of external data that are not read: {_format_list(keys)}"
    if about := list(_describe_unsupported(model, graphs, of_nodes, types)):
        yield f"not kept: {', '.join(about)}"


def _format_list(names: Sequence[str]) -> str:
    """The first names, and how many more; what is no text is shown as it is."""
    return list_first([repr(n[:80]) for n in names], SHOWN)


def _describe_unsupported(
    model: onnx.ModelProto, graphs: Sequence[onnx.GraphProto], of_nodes: Collection[str],
    types: Iterable[bytes],
) -> Iterator[str]:  # fmt: skip
    """What is said about things that have no place for it here."""
    subgraphs = [g for g in graphs if g is not model.graph]
    inside = [i for g in subgraphs for i in (*g.input, *g.output, *g.value_info)]
    values = *model.graph.value_info, *inside
    kinds = {i.type.SerializeToString() for i in values}.union(types)
    flags = {
        "documentation of values in subgraphs": any(i.doc_string for i in inside),
        "documentation of functions": any(f.doc_string for f in model.functions),
        "metadata of subgraphs": any(g.metadata_props for g in subgraphs),
        "metadata of values in subgraphs": any(i.metadata_props for i in inside),
        "denotations of values inside": any(map(_has_denotation, kinds)),
        DEVICES: bool(model.configuration) or DEVICES in of_nodes,
    }
    yield from (what for what, there in flags.items() if there)


def _has_denotation(data: bytes) -> bool:
    if not may_have_denotations(data):
        return False
    return any(read_denotations(onnx.TypeProto.FromString(data)))
