"""The IR to MXNet: operators MXNet lacks are legalized first, then all are rewritten.

A tensor of no axes is one of shape ``(1,)`` in MXNet, booleans are numbers inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from serde.errors import Problem, Unconvertible
from serde.ir.graph import DType, Graph, Value
from serde.legalize.convert import without_functions
from serde.passes.dce import drop_dead
from serde.passes.integer_regions import compute_with_integers
from serde.passes.same_pads import settle_same_pads

from .legalize import legalize_for_mxnet
from .ops.nms import mark_suppression_masks
from .passes.data_dependent_shapes import propagate_dynamic
from .releases import Release, get_release
from .target import SymbolBuilder, illegal_reason, writes


def from_ir(graph: Graph, *, mxnet: str | None = None) -> Graph:
    """Rewrite the IR into the operators of a release of MXNet, ``1.6`` say; of 1.9.1 if None.

    Raises:
        Unconvertible: for every input, output and node the release cannot express.
    """
    release = get_release(mxnet)
    settled = compute_with_integers(settle_same_pads(without_functions(graph)))
    legal, hints = legalize_for_mxnet(mark_suppression_masks(settled), release)
    read = legal.graph.uses()
    table = writes.with_diagnostics(legal.diagnostics).with_hints(hints)
    pairs = zip(graph.inputs, legal.graph.inputs, strict=True)
    inputs = [v for v, inside in pairs if inside in read]
    problems = [
        *_find_illegal_values("input", inputs, release),
        *_find_illegal_values("output", graph.outputs, release),
    ]
    try:
        done = table.rewrite(legal.graph, SymbolBuilder(graph.name, written=release))
    except Unconvertible as error:
        raise Unconvertible(error.stage, [*problems, *error.problems]) from error
    if problems:
        raise Unconvertible(writes.name, problems)
    notes = dict.fromkeys((*graph.notes, *done.notes, *_list_dropped_inputs(done)))
    return replace(propagate_dynamic(done), notes=tuple(notes))


def _list_dropped_inputs(graph: Graph) -> Iterator[str]:
    """Say which inputs the symbol does not have: its arguments are what its outputs read."""
    read = drop_dead(graph).uses()
    if unread := [repr(v.name) for v in graph.inputs if v not in read]:
        yield f"no argument of the symbol: input {', '.join(unread)}, which no operator reads"


def _find_illegal_values(kind: str, values: Iterable[Value], release: Release) -> Iterator[Problem]:
    reasons: dict[str, list[str]] = {}
    for value in values:
        reason = illegal_reason(value)
        if value.dtype is DType.BOOL and not release.has_bool:
            reason = f"booleans, which no tensor of MXNet {release.name} holds"
        if reason:
            reasons.setdefault(reason, []).append(value.name)
    for reason, names in reasons.items():
        yield Problem(kind, {}, reason, tuple(names), writes.name)
