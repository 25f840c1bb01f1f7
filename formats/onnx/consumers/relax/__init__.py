"""ONNX as TVM's importer into Relax takes it (``tvm.relax.frontend.onnx``, apache-tvm 0.27).

What it gets wrong, or refuses, is said in operators it gets right, or refused here.
"""

from __future__ import annotations

from collections.abc import Iterator

from serde.errors import Problem, Unconvertible
from serde.ir.graph import EMPTY, Graph, show_shape
from serde.legalize.convert import lower_to, scalarize_sequences, without_functions
from serde.legalize.recasting import recast
from serde.passes import tidy
from serde.spec.onnx_builder import OnnxBuilder

from . import illegal_forms, legalizations, resize
from .check_support import take
from .promote_types import RelaxRecasting
from .support_table import TAKEN
from .target import OPSET, STAGE, UNTOLD, misfit

__all__ = ["OPSET", "for_relax", "illegal_forms", "legalizations", "resize"]


def for_relax(graph: Graph) -> Graph:
    """Lower the IR to ``OPSET``, in operators and forms that the importer takes.

    Raises:
        Unconvertible: for all inputs and nodes there is no way for, at once.
    """
    problems = list(_misfits(graph))
    graph = scalarize_sequences(without_functions(graph))
    try:
        lowered = lower_to(tidy(recast(graph, RelaxRecasting, TAKEN)), OPSET, False)
        done = take(lowered, OnnxBuilder(graph.name, OPSET))
    except Unconvertible as error:
        unknown = any(p.reason.startswith(UNTOLD) for p in problems)
        found = [p for p in error.problems if not (unknown and p.reason.startswith(UNTOLD))]
        raise Unconvertible(STAGE, (*problems, *found)) from error
    if problems:
        raise Unconvertible(STAGE, problems)
    return done


def _misfits(graph: Graph) -> Iterator[Problem]:
    for value in graph.inputs:
        reason = misfit(value)
        if reason is None and None in (value.shape or ()):
            reason = (
                f"{UNTOLD}{show_shape(value.shape)} are not all known: give numbers or names "
                "(--input)"
            )
        if reason is not None:
            yield Problem("input", EMPTY, reason, (value.name,), STAGE)
