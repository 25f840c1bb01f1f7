"""Versions of the standard's other domains (``ai.onnx.ml``) that go with an opset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from onnx import helper

from serde.ir.graph import Graph, Node
from serde.spec import schema

COLUMNS: Mapping[str, int] = MappingProxyType({"ai.onnx.ml": 3, "ai.onnx.preview.training": 4})
OPSET = 2  # the column of the default domain
SHOWN = 8  # nodes in a note


def fit_domain_versions(graph: Graph, opset: int) -> Graph:
    """Return a graph that imports other domains of the standard in versions released by ``opset``.

    A version that a node needs stays, and a note tells of it.
    """
    imports, notes = dict(graph.imports), []
    for domain, version in graph.imports.items():
        newest = _find_released(domain, opset)
        if newest is None or version <= newest:
            continue
        nodes = [n for n in _list_nodes(graph) if n.domain == domain]
        needing = [n for n in nodes if not _has_form(n, newest)]
        if not needing:
            imports[domain] = newest
            continue
        few = ", ".join(f"{n.name!r} ({n.op})" for n in needing[:SHOWN])
        more = ", …" if len(needing) > SHOWN else ""
        notes.append(
            f"{domain} stays at version {version}, which came after opset {opset}: {few}{more} "
            f"cannot be said at version {newest}"
        )
    return replace(graph, imports=MappingProxyType(imports), notes=(*graph.notes, *notes))


def _find_released(domain: str, opset: int) -> int | None:
    """The newest version of a domain in the last release of ONNX before the next opset's."""
    column = COLUMNS.get(domain)
    rows = [r for r in helper.VERSION_TABLE if int(r[OPSET]) <= opset and len(r) > (column or 0)]
    return None if not rows or column is None else int(rows[-1][column])


def _list_nodes(graph: Graph) -> Iterator[Node]:
    yield from graph.all_nodes()
    for function in graph.functions:
        yield from function.body.all_nodes()


def _has_form(node: Node, version: int) -> bool:
    """Whether a version of its domain has the operator with these attributes and elements."""
    operator = schema.find(node.op, version, node.domain)
    if operator is None or not operator.attributes.issuperset(node.attrs):
        return False
    formals = [(operator.input(i), v) for i, v in enumerate(node.inputs) if v is not None]
    formals += zip(operator.outputs, node.outputs, strict=False)
    return all(v.dtype is None or v.container or v.dtype in f.types for f, v in formals)
