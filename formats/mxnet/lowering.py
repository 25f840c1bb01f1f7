"""The IR to MXNet: operators MXNet lacks are spelled out in others first, then all are rewritten.

A tensor of no axes is one of shape ``(1,)`` in MXNet, truth values are numbers inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from serde.errors import Problem, Unconvertible
from serde.graph import Graph, Value
from serde.opset import lower_to

from .writes.spelling import spelled
from .writes.table import SymbolBuilder, misfit, writes


def from_ir(graph: Graph) -> Graph:
    """Rewrite the IR into MXNet operators.

    Raises:
        Unconvertible: for every input, output and node MXNet cannot express.
    """
    problems = [*_misfits("input", graph.inputs), *_misfits("output", graph.outputs)]
    plain = lower_to(graph, graph.opset, keep_functions=False) if graph.functions else graph
    simpler, reasons = spelled(plain)
    try:
        done = writes.rewrite(simpler, SymbolBuilder(graph.name, reasons=reasons))
    except Unconvertible as error:
        raise Unconvertible(error.stage, [*problems, *error.problems]) from error
    if problems:
        raise Unconvertible(writes.name, problems)
    return done


def _misfits(kind: str, values: Iterable[Value]) -> Iterator[Problem]:
    found: dict[str, list[str]] = {}
    for value in values:
        if reason := misfit(value):
            found.setdefault(reason, []).append(value.name)
    for reason, names in found.items():
        yield Problem(kind, {}, reason, tuple(names), writes.name)
