"""The layers that operators came from, kept in a file as ONNX files keep them.

A buffer of metadata has a line for each layer: its format, its operator and its name, and a tab
before the name of the tensor that is its result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from serde.ir.graph import Graph, Source

from ..target import DOMAIN

ORIGIN = "serde.source"  # the name of the metadata, as in ONNX files


def list_sources(graph: Graph) -> str:
    """The text of the sources of a graph's nodes; those of no other format are left out."""
    return "".join(line for line in _lines(graph) if line.count("\n") == line.count("\t") == 1)


def _lines(graph: Graph) -> Iterator[str]:
    ends = {node.sources[-1]: node for node in graph.nodes if node.sources and node.outputs}
    for node in ends.values():
        for source in node.sources:
            if source.format != DOMAIN:
                layer = f"{source.format} {source.op} {source.name}"
                yield f"{layer}\t{node.outputs[0].name}\n"


def parse_sources(text: bytes) -> Mapping[str, list[Source]]:
    """The sources by the name of a tensor."""
    sources: dict[str, list[Source]] = defaultdict(list)
    for line in text.decode("utf-8", "replace").split("\n"):
        layer, _, tensor = line.partition("\t")
        if layer.count(" ") > 1:
            kind, op, name = layer.split(" ", 2)
            sources[tensor].append(Source(kind, op, name))
    return sources
