"""Tell failures that shapes of inputs are to blame for from those of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from serde.errors import Problem, Unconvertible, UsageError
from serde.ir.graph import Graph, Shape, Value, show_shape
from serde.ir.replace_uses import replace_values
from serde.rewrite.rules import RuleTable

from ..bind.declared import Declared
from .examples import ask_for_shapes, show_inputs
from .infer_inputs import InputShapes
from .propagate import Propagation, is_conflict


def refuse_given_shapes(
    graph: Graph, variables: Mapping[str, Declared], error: Unconvertible, table: RuleTable
) -> None:
    """Raise UsageError where shapes that callers gave, or that were guessed, may be the reason.

    ``graph`` is the one that was given, before its inputs were completed.
    """
    if any(has_no_rule(graph, problem, table) for problem in error.problems):
        return
    reason = "; ".join(f"{_format_layers(p)}: {p.reason}" for p in error.problems[:3])
    wrong = dict(find_contradicted_inputs(graph))
    if wrong:
        raise UsageError(f"{reason}: {show_inputs(wrong)}?") from error
    inferred = InputShapes(graph, variables)
    if inferred.guessed and inferred.undetermined:
        assumed = {v: s for v in inferred.undetermined if (s := inferred.shape_of(v)) is not None}
        guessed = ", ".join(
            f"{v.name!r} was taken to be {show_shape(s)}" for v, s in assumed.items()
        )
        asking = ask_for_shapes(graph, inferred.undetermined, assumed)
        raise UsageError(f"{reason}; {guessed}, but {asking}") from error


def refuse_operators(graph: Graph, table: RuleTable) -> None:
    """Raise Unconvertible for nodes that are refused whatever the shapes of the inputs."""
    problems: dict[tuple[str, str, str], Problem] = {}
    for node in graph.ordered_nodes():
        if (error := table.refusal(node)) is not None:
            attrs = table.configuration(node)
            key = node.op, repr(attrs), error.reason
            known = problems.get(key, Problem(node.op, attrs, error.reason, ()))
            problems[key] = replace(known, names=(*known.names, node.name))
    if problems:
        raise Unconvertible(table.name, [*problems.values()])


def has_no_rule(graph: Graph, problem: Problem, table: RuleTable) -> bool:
    """Whether a node is refused whatever the shapes of its operands are."""
    names = set(problem.names)
    nodes = (n for n in graph.ordered_nodes() if n.op == problem.op and n.name in names)
    return any(table.refusal(node) is not None for node in nodes)


def find_contradicted_inputs(graph: Graph) -> Iterator[tuple[str, Shape]]:
    """Inputs whose shape is not what the operators determine: their names, and that shape.

    Of the shapes that were given, only the ranks are used, and those only where they fit.
    """
    inputs = [v for v in graph.inputs if v.shape is not None]
    instead = {v: Value(v.name, v.dtype) for v in inputs}
    if not inputs:
        return
    blank = replace(replace_values(graph, instead), inputs=tuple(instead.values()))
    free = Propagation(blank.nodes, {})
    free.run()
    ranks = {
        b: (None,) * len(v.ranked_shape) for v, b in instead.items() if free.shape_of(b) is None
    }
    ranked = Propagation(blank.nodes, {**ranks})
    ranked.run()
    for v, b in instead.items():
        shape = ranked.shape_of(b)
        if shape is not None and is_conflict(shape, v.shape):
            yield v.name, _merge_shapes(v.ranked_shape, shape)


def _merge_shapes(user_shape: Shape, shape: Shape) -> Shape:
    """``shape``, with the sizes that were given where it has no number."""
    if len(user_shape) != len(shape):
        return shape
    return tuple(d if isinstance(d, int) else e for d, e in zip(shape, user_shape, strict=True))


def _format_layers(problem: Problem) -> str:
    few = ", ".join(problem.names[:3]) + (", …" if problem.count > 3 else "")
    return f"{few} ({problem.op})"
