"""The names in a graph."""

from __future__ import annotations

from serde.ir.builder import Names
from serde.ir.graph import Graph


def used_names(graph: Graph) -> Names:
    """The names of the values of a graph and its subgraphs, for others beside them."""
    names = Names()
    names.reserved.update(v.name for v in graph.all_values())
    return names
