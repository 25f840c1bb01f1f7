"""From the IR to a graph of Relay calls."""

from __future__ import annotations

from serde.graph import Graph
from serde.passes import tidy

from . import writes as families
from .writes.recast import recast
from .writes.table import CallBuilder, writes

__all__ = ["families", "from_ir"]


def from_ir(graph: Graph) -> Graph:
    """Rewrite the IR into calls of Relay's operators.

    Raises:
        Unconvertible: for every node Relay has no way to compute.
    """
    return writes.rewrite(tidy(recast(graph)), CallBuilder(graph.name))
