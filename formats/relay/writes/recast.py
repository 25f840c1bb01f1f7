"""Operators Relay has not, or not in such a form, as operators of the IR that it has."""

from __future__ import annotations

from serde.graph import Graph
from serde.opset import without_functions
from serde.recasts.recasting import Recasting, recasting_table
from serde.recasts.recasting import recast as recast_by

from .table import writes

recasts = recasting_table("ir → relay")


class RelayRecasting(Recasting):
    """Emits operators of the IR as those Relay has a call for."""

    table = recasts
    loops = True


def recast(graph: Graph) -> Graph:
    """Rewrite an IR graph into one whose operators, but those without any way, Relay has."""
    return recast_by(without_functions(graph, traced=True), RelayRecasting, writes.rules)


__all__ = ["RelayRecasting", "recast", "recasts"]
