"""The walk: every node of a graph through a legalizer, in one table that the driver runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from serde.decompositions.foreign import find_rules
from serde.errors import ConversionError, Problem, require
from serde.ir.builder import Builder
from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.dce import drop_dead
from serde.rewrite.rules import NONE, RuleTable
from serde.rewrite.subgraphs import Body
from serde.spec import composites
from serde.spec.simplify import MERGED
from serde.version_converter.element_types import BORN, format_type

from . import decisions
from .legalizer import Legalizer
from .target import Target


class Legalized(NamedTuple):
    """A graph in which nodes that could not be made legal are left, and why, by their outputs.

    ``logical_types`` are the types that values of a wider one stand for.
    """

    graph: Graph
    diagnostics: Mapping[Value, str]
    logical_types: Mapping[Value, DType]

    def diagnostic(self, node: Node) -> str | None:
        """Why a node could not be made legal."""
        return self.diagnostics.get(node.outputs[0]) if node.outputs else None

    def emulated_outputs(self, target: Target, stage: str = "") -> list[Problem]:
        """Outputs of element types the target lacks: no one could tell what they stand for."""
        return [
            Problem("output", {}, _explain_lack(d, target), (v.name,), stage)
            for v in self.graph.outputs
            if (d := self.logical_types.get(v)) is not None
        ]


def _explain_lack(dtype: DType, target: Target) -> str:
    if dtype in target.emulated:
        who, advice = target.title or target.name, "end the model before they are made (--outputs)"
        return f"{format_type(dtype)} elements, which {who} does not have: {advice}"
    return f"no {format_type(dtype)} elements; opset {BORN[dtype]} is the lowest with them"


def legalize(
    graph: Graph, target: Target, tidy: Callable[[Graph], Graph] = drop_dead
) -> Legalized:  # fmt: skip
    """Rewrite an IR graph without functions into one that is legal for a target, where it can be.

    Nodes that rules refuse stay, so that all refusals of a target can be reported together.
    """
    builder = Legalizer(graph.name, target)
    table = RuleTable(
        f"ir → {target.name}", fallback=_legalize_or_keep, body_attributes=inlined_bodies
    )
    done = table.rewrite(graph, builder)
    return Legalized(tidy(done), builder.diagnostics, builder.emulated_types.logical_types)


SIZES = frozenset(("Shape", "Size"))  # operators that are constants of static shapes


def illegal_nodes(legal: Legalized, target: Target) -> Iterator[Problem]:
    """What the target cannot take: inputs, and nodes but for what follows from others.

    What a rule says of a dynamic shape follows from an input of a shape that the target has not.
    """
    illegal: set[Value] = set()
    unsized: set[Value] = set()
    for value in legal.graph.inputs:
        if (reason := target.illegal_value(value)) is not None:
            yield Problem("input", {}, reason, (value.name,))
            illegal.add(value)
            unsized.update(() if target.dynamic_shapes else (value,))
    results = set(legal.graph.outputs)
    for node in legal.graph.all_nodes():
        if not unsized.isdisjoint(node.inputs):
            unsized.update(node.outputs)
            if legal.diagnostic(node) is not None or node.op in SIZES:
                illegal.update(node.outputs)
                continue
        reason = legal.diagnostic(node) or target.illegal_operator(node)
        reads_illegal = any(v in illegal for v in node.inputs if v is not None)
        if reason is None and not reads_illegal:
            is_result = not results.isdisjoint(node.outputs)
            reason = target.illegal_types(node) or target.illegal_form(node, is_result)
        if reason is not None:
            yield problem_of(node, reason)
        if reason is not None or reads_illegal:
            illegal.update(node.outputs)


def problem_of(node: Node, reason: str) -> Problem:
    """The problem of one node, under the name it has in the source."""
    name = node.sources[0].name if node.sources else node.name
    attrs = {n: v for n, v in sorted(node.attrs.items()) if not isinstance(v, (Graph, Body))}
    return Problem(node.qualified_op, attrs, reason, (name,))


def group_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Problems of one operator, configuration and reason as one, with the names of all."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for p in problems:
        groups.setdefault((p.op, repr(p.attrs), p.reason), []).append(p)
    return [
        replace(same[0], names=tuple(dict.fromkeys(n for p in same for n in p.names)))
        for same in groups.values()
    ]


def _legalize_or_keep(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    assert isinstance(builder, Legalizer)
    mark = len(builder.nodes)
    try:
        return legalize_node(builder, node, inputs)
    except ConversionError as error:
        del builder.nodes[mark:]
        return _keep_illegal(builder, node, inputs, error.reason)


def legalize_node(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """Keep a node the target takes as it is; emit any other."""
    assert isinstance(builder, Legalizer)
    if node.domain:
        return _foreign_node(builder, node, inputs)
    if node.attrs and Body in map(type, node.attrs.values()):
        return builder.legalize_bodies(node, inputs)
    if builder.target.is_standard or _is_alike(builder, node, inputs):
        return decisions.take_or_emit(builder, node, inputs, _emit)
    return _emit(builder, node, inputs)


def _emit(builder: Any, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    result = builder.emit(node.op, inputs, node.attrs, len(node.outputs))
    if not builder.target.is_standard:
        _complete_shapes(result if isinstance(result, tuple) else (result,), node.outputs)
    return result


def _keep_illegal(
    builder: Legalizer, node: Node, inputs: tuple[Value | None, ...], reason: str
) -> tuple[Value, ...]:
    """Keep a node without its subgraphs, and why it could not be made legal."""
    attrs = {n: v for n, v in node.attrs.items() if not isinstance(v, (Graph, Body))}
    results = builder.keep(Node(node.op, inputs, node.outputs, attrs, node.domain, node.name,
                                node.sources), inputs)  # fmt: skip
    builder.diagnostics.update(dict.fromkeys(results, reason))
    return results


def _complete_shapes(results: Sequence[Value | None], known: Sequence[Value]) -> None:
    """Let results have the sizes that are known of what they stand for, but for a claim of none."""
    for new, old in zip(results, known, strict=False):
        if new is None or new is old or new.shape is None or old.shape is None:
            continue
        if None in new.shape and len(new.shape) == len(old.shape):
            sizes = zip(new.shape, old.shape, strict=True)
            new.shape = tuple([b if a is None and b != 0 else a for a, b in sizes])


def _foreign_node(builder: Legalizer, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """A node of another domain: decomposed for a target that lists what it supports, or kept."""
    target = builder.target
    if node.domain == composites.DOMAIN and node.domain not in target.domains:
        from serde.decompositions.composites import composites as rules

        return rules.apply(node, builder, inputs)
    if target.supports is not None and node.domain not in target.domains:
        foreign = find_rules(node.domain)
        if foreign is not None and node.op in foreign:
            return foreign.apply(node, builder, inputs)
    dtype = next((d for v in inputs if (d := builder.emulated_types.of(v))), None)
    require(dtype is None, f"{node.op} reads {dtype and dtype.value} elements")
    return builder.keep(node, inputs)


def inlined_bodies(
    node: Node, builder: Builder, inputs: tuple[Value | None, ...]
) -> frozenset[str]:
    """The subgraphs of a node that a rule inlines, so that they are not legalized in place."""
    assert isinstance(builder, Legalizer)
    if node.domain:
        return NONE
    if (
        node.op == "Loop"
        and builder.known_sequences
        and any(v in builder.known_sequences for v in inputs if v)
    ):
        return frozenset({"body"})
    rule = builder.target.rewrites.rules.get(node.op)
    return NONE if rule is None else rule.bodies


def _is_alike(g: Legalizer, node: Node, operands: Sequence[Value | None]) -> bool:
    """Whether operands are what a node had, as far as a rule, inference or merging can tell."""
    if node.op in MERGED and operands[0] is not node.inputs[0] and decisions.merges(g, operands):
        return False
    for a, b in zip(operands, node.inputs, strict=True):
        if a is b:
            continue
        if a is None or b is None or a.dtype is not b.dtype or a.shape != b.shape:
            return False
        if (a.tensor is None) is not (b.tensor is None):
            return False
        if a.shape_data != b.shape_data or a.container != b.container:
            return False
    return True
