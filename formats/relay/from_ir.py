"""From the IR to a graph of Relay calls."""

from __future__ import annotations

from serde.errors import Problem, Unconvertible, UsageError
from serde.ir.graph import EMPTY, Graph, Value
from serde.passes.same_pads import settle_same_pads
from serde.rewrite.outline import KEEP, Keep, outline_calls

from . import ops
from .legalize import legalize_for_relay, relay_target
from .ops.class_nms import mark_by_class
from .passes.dynamic_shape_support import find_unsupported
from .passes.fusion_barriers import add_fusion_barriers
from .target import TYPES, CallBuilder, illegal_reason, writes
from .to_module import GLOBAL

__all__ = ["from_ir", "ops"]


def from_ir(graph: Graph, functions: Keep | None = None) -> Graph:
    """Rewrite the IR into calls of Relay's operators.

    ``functions`` says which of the source's the module has as globals: unless given, those a Relay
    module had. TVM's virtual machine takes calls of globals, its graph executor does not.

    Raises:
        Unconvertible: for all inputs, outputs and nodes Relay has no type or no way for, at once.
    """
    if functions not in (None, *KEEP):
        raise UsageError(f"functions={functions!r} is not one of {', '.join(KEEP)}")
    stage, problems = writes.name, list(_list_illegal_values(graph))
    builder = CallBuilder(graph.name)
    legal = legalize_for_relay(mark_by_class(settle_same_pads(graph)))
    named = {p.names for p in problems}
    problems += [p for p in legal.emulated_outputs(relay_target(), stage) if p.names not in named]
    try:
        done = writes.with_diagnostics(legal.diagnostics).rewrite(legal.graph, builder)
    except Unconvertible as error:
        late = find_unsupported(builder.build(()), stage)  # of what could be written
        raise Unconvertible(stage, (*problems, *error.problems, *late)) from error
    problems += find_unsupported(done, stage)
    if problems:
        raise Unconvertible(stage, problems)
    return _with_globals(add_fusion_barriers(done), functions)


def _with_globals(graph: Graph, functions: Keep | None) -> Graph:
    if functions is None:
        is_of_relay = all(s.format == "relay" for n in graph.nodes for s in n.sources if s.calls)
        functions = "keep" if is_of_relay else "inline"
    new_graph = outline_calls(graph, functions, GLOBAL, used_names=["main"])
    bodies = [f.body for f in new_graph.functions]
    ends = [v for body in bodies for v in (*body.inputs, *body.outputs)]
    return graph if any(v.dtype is None or v.shape is None for v in ends) else new_graph


def _list_illegal_values(graph: Graph) -> list[Problem]:
    ends = [("input", v) for v in graph.inputs] + [("output", v) for v in graph.outputs]
    return [
        Problem(kind, EMPTY, reason, (value.name,), writes.name)
        for kind, value in ends
        if (reason := illegal_reason(value)) is not None and (kind == "input" or _is_typed(value))
    ]


def _is_typed(value: Value) -> bool:
    """Whether the type of an output is known; Relay finds out those that are not."""
    return bool(value.container) or (value.dtype is not None and value.dtype not in TYPES)
