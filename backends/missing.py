"""Which operators a backend would have to have for a model to be in fewer parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serde.ir.graph import Graph, Node

from .judge import Missing, Verdict
from .numbered import Numbered
from .stages import Dataflow, earliest_stages

MOST = 3  # operators that are named


def count_parts(flow: Dataflow, offloaded: Sequence[bool]) -> int:
    """The least number of parts of a backend that takes these nodes."""
    stages = earliest_stages(flow, offloaded)
    return len({s for s, is_taken in zip(stages, offloaded, strict=True) if is_taken})


def find_missing(
    graph: Graph, verdicts: Mapping[Node, Verdict]
) -> tuple[int, list[Missing]]:  # fmt: skip
    """The number of parts, and the operators that save most, one after the other."""
    flow = Numbered(graph).flow
    offloaded = [verdicts[n].is_taken for n in graph.nodes]
    start = parts = count_parts(flow, offloaded)
    missing: list[Missing] = []
    while len(missing) < MOST and parts > 1:
        options = []
        for op in {n.qualified_op for n, t in zip(graph.nodes, offloaded, strict=True) if not t}:
            more = [t or n.qualified_op == op for n, t in zip(graph.nodes, offloaded, strict=True)]
            options.append((count_parts(flow, more), -(sum(more) - sum(offloaded)), op))
        if not options or min(options)[0] >= parts:
            break
        parts, count, op = min(options)
        missing.append(Missing(op, parts, -count))
        offloaded = [t or n.qualified_op == op for n, t in zip(graph.nodes, offloaded, strict=True)]
    return start, missing
