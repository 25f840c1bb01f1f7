"""Which nodes of a model a backend takes, as they are or legalized, and which not and why."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from serde.errors import ConversionError, Unconvertible, escape_controls
from serde.ir.graph import Graph, Node, Value
from serde.legalize.legalizer import Legalizer
from serde.legalize.target import Target
from serde.legalize.walk import illegal_nodes, legalize, legalize_node
from serde.version_converter.element_types import format_type

from .costs import count_multiply_adds
from .subgraph import extract_subgraph

SHORT = 64  # elements; longer constants are alike where they are one
VARYING = re.compile(r"'[^']*'|\([^()]*\)")  # what differs between reasons of one kind


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether a backend takes a node: ``reason`` is why not, None where it does.

    ``operators`` are those it gets in place of the node.
    """

    node: Node
    reason: str | None
    operators: tuple[str, ...] = ()

    @property
    def is_taken(self) -> bool:
        """Whether the backend takes the node, as it is or legalized."""
        return self.reason is None

    @property
    def is_legalized(self) -> bool:
        """Whether the backend gets other operators in place of the node."""
        return self.is_taken and self.operators != (self.node.qualified_op,)


def judge_nodes(graph: Graph, target: Target) -> dict[Node, Verdict]:
    """The verdict on each node of an IR graph without functions, subgraphs left out.

    A node is judged by itself, as what is around it may be computed elsewhere.
    """
    builder = Legalizer(graph.name, target)
    alike: dict[Hashable, Verdict] = {}
    verdicts = {}
    for node in graph.nodes:
        key = _key_of(node)
        if key is None or key not in alike:
            verdicts[node] = _judge(node, target, builder)
            alike[key] = verdicts[node]
        else:
            verdicts[node] = _transfer(alike[key], node)
    return verdicts


def _key_of(node: Node) -> Hashable:
    """What nodes have in common that are judged alike; None for a node that is judged apart."""
    if node.graphs():
        return None
    operands = []
    for value in node.inputs:
        content: Hashable = None
        if value is not None and value.tensor is not None:
            is_short = value.tensor.size <= SHORT
            content = value.array().tobytes() if is_short else id(value)  # of the graph: it lives
        operands.append(value and (*_type_of(value), value.shape_data, content))
    results = [(*_type_of(v), bool(v.name)) for v in node.outputs]
    attrs = tuple(sorted(node.attrs.items()))
    key = (node.domain, node.op, tuple(operands), tuple(results), attrs)
    try:
        hash(key)
    except TypeError:  # a tensor, or a list of them
        return None
    return key


def _type_of(value: Value) -> tuple[Hashable, ...]:
    return value.dtype, value.shape, value.container


def _transfer(verdict: Verdict, node: Node) -> Verdict:
    """The verdict on a node that is like another, with the names of its own values."""
    reason = verdict.reason
    pairs = zip((*verdict.node.inputs, *verdict.node.outputs), (*node.inputs, *node.outputs),
                strict=True)  # fmt: skip
    names = {repr(a.name): repr(b.name) for a, b in pairs if a is not None and b is not None}
    if reason is not None:
        reason = VARYING.sub(lambda m: names.get(m[0], m[0]), reason)
    return Verdict(node, reason, verdict.operators)


def _judge(node: Node, target: Target, builder: Legalizer) -> Verdict:
    for value in (*node.inputs, *node.outputs):
        if value is None or not value.name or value.tensor is not None:
            continue
        if (reason := target.illegal_value(value)) is not None:
            return Verdict(node, reason)
        if value.dtype in target.emulated_types:
            shown = format_type(value.dtype)
            return Verdict(node, f"{target.name} has no {shown} elements: {value.name!r}")
    has_lacking = any(v and v.dtype in target.emulated_types for v in node.inputs)
    if node.graphs() or has_lacking:
        return _judge_apart(node, target)
    mark = len(builder.nodes)
    try:
        results = legalize_node(builder, node, node.inputs)
    except ConversionError as error:
        return Verdict(node, error.reason)
    finally:
        nodes = builder.nodes[mark:]
        del builder.nodes[mark:]
    computed = {v for n in nodes for v in n.outputs}
    results = results if isinstance(results, tuple) else (results,)
    for new, old in zip(results, node.outputs, strict=False):
        if new in computed:
            new.name = old.name  # for reasons, which name what the source computes
    return _verdict(node, nodes, target)


def _verdict(node: Node, nodes: Iterable[Node], target: Target) -> Verdict:
    for each in nodes:
        reason = target.illegal_operator(each)
        reason = reason or target.illegal_types(each) or target.illegal_form(each)
        if reason is not None:
            via = "" if each.qualified_op == node.qualified_op else f"as {each.qualified_op}: "
            return Verdict(node, f"{via}{reason}")
    return Verdict(node, None, tuple(dict.fromkeys(n.qualified_op for n in nodes)))


def _judge_apart(node: Node, target: Target) -> Verdict:
    """Judge a node in a graph of its own, with its subgraphs."""
    outputs = tuple(v for v in node.outputs if v.name)
    try:
        legal = legalize(extract_subgraph(node.name, [node], outputs), target)
    except Unconvertible as error:
        return Verdict(node, error.problems[0].reason)
    problem = next(iter([*legal.emulated_outputs(target), *illegal_nodes(legal, target)]), None)
    if problem is not None:
        via = "" if problem.op == node.qualified_op else f"{problem.op}: "
        return Verdict(node, f"{via}{problem.reason}")
    return Verdict(node, None, tuple(dict.fromkeys(n.qualified_op for n in legal.graph.nodes)))


@dataclass(repr=False)
class OperatorRow:
    """What becomes of the nodes of one operator."""

    op: str
    count: int = 0
    offloaded: int = 0
    legalized: int = 0
    multiply_adds: int = 0
    multiply_adds_taken: int = 0

    def __post_init__(self) -> None:
        self.operators: dict[str, None] = {}
        self.reasons: dict[str, list[str]] = {}

    def __str__(self) -> str:
        parts = []
        if self.offloaded > self.legalized:
            parts.append(f"{self.offloaded - self.legalized} taken")
        if self.legalized:
            parts.append(f"{self.legalized} taken as {', '.join(self.operators) or 'nothing'}")
        lines = [f"{self.op} ×{self.count}: {', '.join(parts) or 'not taken'}"]
        for reason, names in self.reasons.items():
            few = ", ".join(map(repr, names[:3])) + (", …" if len(names) > 3 else "")
            lines.append(f"  not taken ×{len(names)} ({few}): {reason}")
        return "\n  ".join(map(escape_controls, lines))

    __repr__ = __str__


class Missing(NamedTuple):
    """An operator, and in how many parts the model is once it and those before it are taken."""

    op: str
    parts: int
    nodes: int


@dataclass(repr=False)
class BackendReport:
    """What a backend takes of a model, by operator; the most nodes first.

    ``parts`` is the least number of parts for it; ``missing`` are the operators that would save
    most, were they taken.
    """

    source: str
    backend: str
    rows: list[OperatorRow]
    parts: int = 0
    missing: Sequence[Missing] = ()

    @property
    def share_of_nodes(self) -> float:
        """The share of the nodes that the backend takes."""
        total = sum(r.count for r in self.rows)
        return sum(r.offloaded for r in self.rows) / total if total else 1.0

    @property
    def share_of_multiply_adds(self) -> float:
        """The share of the multiply-adds that are in nodes which the backend takes."""
        total = sum(r.multiply_adds for r in self.rows)
        return sum(r.multiply_adds_taken for r in self.rows) / total if total else 1.0

    def __str__(self) -> str:
        nodes, multiply_adds = self.share_of_nodes, self.share_of_multiply_adds
        shares = f"{nodes:.1%} of the nodes, {multiply_adds:.1%} of the multiply-adds"
        first = escape_controls(f"{self.source}: {self.backend} takes {shares}")
        text = "\n  ".join([first, *map(str, self.rows)])
        steps = [f"with {m.op} (×{m.nodes}) {m.parts}" for m in self.missing]
        return f"{text}\n{self.parts} parts at least; {', and '.join(steps)}" if steps else text

    __repr__ = __str__


def summarize(source: str, backend: str, verdicts: Iterable[Verdict]) -> BackendReport:
    """The verdicts by operator."""
    rows: dict[str, OperatorRow] = {}
    first: dict[str, str] = {}  # of the reasons that differ in names and shapes
    for verdict in verdicts:
        node = verdict.node
        row = rows.setdefault(node.qualified_op, OperatorRow(node.qualified_op))
        cost = count_multiply_adds(node)
        row.count += 1
        row.multiply_adds += cost
        if verdict.reason is not None:
            alike = VARYING.sub("…", verdict.reason)
            row.reasons.setdefault(first.setdefault(alike, verdict.reason), []).append(
                name_of(node)
            )
            continue
        row.offloaded += 1
        row.multiply_adds_taken += cost
        if verdict.is_legalized:
            row.legalized += 1
            row.operators.update(dict.fromkeys(verdict.operators))
    ordered = sorted(rows.values(), key=lambda r: (-r.count, r.op))
    return BackendReport(source, backend, ordered)


def name_of(node: Node) -> str:
    """What the source calls a node."""
    return node.sources[0].name if node.sources else node.name
