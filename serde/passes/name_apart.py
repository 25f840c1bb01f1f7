"""Values that passes gave a name which another bears."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from serde.ir.builder import Names
from serde.ir.graph import Graph, Value
from serde.ir.replace_uses import exchange_values
from serde.spec.verify import find_namesake


def name_apart(graph: Graph) -> Graph:
    """Return ``graph`` with a name of its own for each value; inputs and outputs keep theirs."""
    if find_namesake(graph) is None:
        return graph
    owners: dict[str, Value] = {}
    ends = (*graph.inputs, *graph.outputs)
    values = chain(ends, graph.all_values())
    twice = [v for v in values if v.name and owners.setdefault(v.name, v) is not v]
    if not twice:
        return graph
    names = Names()
    names.used.update(owners)
    instead = {v: replace(v, name=names.fresh(v.name)) for v in dict.fromkeys(twice)}
    return exchange_values(graph, instead)
