"""From the IR to a graph of Relay calls."""

from __future__ import annotations

from serde.errors import Problem, Unconvertible
from serde.graph import EMPTY, Graph, Value
from serde.passes import tidy

from . import writes as families
from .writes.open import unshaped
from .writes.recast import recast
from .writes.table import TYPES, CallBuilder, misfit, writes

__all__ = ["families", "from_ir"]


def from_ir(graph: Graph) -> Graph:
    """Rewrite the IR into calls of Relay's operators.

    Raises:
        Unconvertible: for all inputs, outputs and nodes Relay has no type or no way for, at once.
    """
    stage, problems = writes.name, list(_misfits(graph))
    try:
        done = writes.rewrite(tidy(recast(graph)), CallBuilder(graph.name))
    except Unconvertible as error:
        raise Unconvertible(stage, (*problems, *error.problems)) from error
    problems += unshaped(done, stage)
    if problems:
        raise Unconvertible(stage, problems)
    return done


def _misfits(graph: Graph) -> list[Problem]:
    ends = [("input", v) for v in graph.inputs] + [("output", v) for v in graph.outputs]
    return [
        Problem(kind, EMPTY, reason, (value.name,), writes.name)
        for kind, value in ends
        if (reason := misfit(value)) is not None and (kind == "input" or _told(value))
    ]


def _told(value: Value) -> bool:
    """Whether the type of an output is known; Relay finds out those that are not."""
    return bool(value.wrap) or (value.dtype is not None and value.dtype not in TYPES)
