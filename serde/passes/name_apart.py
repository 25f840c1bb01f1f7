"""Values that passes gave a name which another bears."""

from __future__ import annotations

from collections.abc import Sequence
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


def name_outputs(graph: Graph, outputs: Sequence[Value], names: Sequence[str]) -> Graph:
    """The graph with some of its outputs called by names that a user gave.

    What else has one of these names gives way: an input ``x`` becomes ``x_in``, other outputs and
    values inside get a number. A note tells of inputs and outputs.
    """
    called = dict(zip(outputs, names, strict=True))
    others = [v for v in (*graph.inputs, *graph.outputs) if v not in called]
    free = Names()
    free.used.update(names, (v.name for v in graph.all_values()), (v.name for v in others))
    notes = []
    for value in dict.fromkeys(others):
        if value.name in names:
            is_input = value in graph.inputs
            called[value] = free.fresh(f"{value.name}_in" if is_input else value.name)
            kind = "input" if is_input else "output"
            notes.append(
                f"the {kind} {value.name!r} is called {called[value]!r}: an output has its name"
            )
    instead = {v: replace(v, name=name) for v, name in called.items() if v.name != name}
    named = name_apart(exchange_values(graph, instead)) if instead else graph
    return replace(named, notes=(*named.notes, *notes))
