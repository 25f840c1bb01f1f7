"""The names in a graph."""

from __future__ import annotations

from serde.ir.builder import Names
from serde.ir.graph import Graph


def used_names(graph: Graph) -> Names:
    """The names of a graph's values, for others beside them."""
    names = Names()
    names.reserved.update(v.name for n in graph.nodes for v in n.outputs)
    names.reserved.update(v.name for v in (*graph.inputs, *graph.constants()))
    return names
