"""Passes over the IR, one a file; the order they run in is here."""

from __future__ import annotations

from serde.ir.graph import Graph
from serde.passes.concat_chains import flatten_concats
from serde.passes.cse import merge_repeats
from serde.passes.dce import drop_dead
from serde.passes.dedup_constants import share_constants
from serde.passes.stack_sequences import stack_lists

__all__ = ["DEFAULT", "drop_dead", "merge_repeats", "share_constants", "stack_lists", "tidy"]
DEFAULT = (stack_lists, drop_dead, share_constants, merge_repeats, flatten_concats)


def tidy(graph: Graph) -> Graph:
    """Run the default passes. Identities go while the graph is built (simplify.py)."""
    for step in DEFAULT:
        graph = step(graph)
    return graph
