"""Cut a model into the parts that a backend takes and those that it does not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from serde.errors import Problem, Unconvertible
from serde.io.command_files import active_files, within_command
from serde.ir.graph import Graph, Node
from serde.ir.values_read import captured_values
from serde.legalize.convert import lower_to_target, scalarize_sequences, without_functions
from serde.legalize.target import Target
from serde.pipeline import load
from serde.plugins import STANDARD, get_format, read_classes
from serde.plugins.command_options import PartitionOptions
from serde.plugins.keywords import with_options
from serde.plugins.option_checks import check_options
from serde.plugins.options import list_options
from serde.spec.verify import check

from .costs import count_multiply_adds
from .description import Backend, get_backend
from .judge import BackendReport, Verdict, judge_nodes, name_of, summarize
from .missing import find_missing
from .numbered import Numbered
from .parts import ACCELERATOR, CONTROL, REMAINDER, Part, Partitioned
from .stages import assign_stages, connected_groups
from .subgraph import extract_subgraph

INSIDE = frozenset({"If", "Loop"})  # operators that the hybrid runner can run part by part


@with_options(lambda: [PartitionOptions, *read_classes()])
@within_command()
def partition(
    source: Any, backend: Any, *, format: str | None = None, **options: Any
) -> Partitioned:
    """Cut a model into the fewest parts for a backend, and of those with the fewest bytes moved.

    Args:
        source: a model as ``serde.load`` takes it, or a graph of the IR.
        backend: a name, ``opset N``, a TOML file, a ``Target`` or a ``Backend``.
        format: the source's, where its content does not tell.
        options: those of ``load``, and of ``PartitionOptions``: which pieces are worth a part.

    Raises:
        SerdeError: where the model or the backend's description cannot be read.
    """
    spec = get_backend(backend)
    limits = PartitionOptions(check_options(options, [PartitionOptions]))
    own_names = list_options(PartitionOptions)
    reading = {n: v for n, v in options.items() if n not in own_names}
    graph = prepare_graph(source, format=format, **reading)
    return _partition(graph, spec, limits)


def prepare_graph(source: Any, **options: Any) -> Graph:
    """A graph of the IR as it can be cut: without functions, and sequences of known contents."""
    is_ir = isinstance(source, Graph) and not source.domain and not any(options.values())
    graph = source if is_ir else load(source, **options)
    if is_ir:
        check(graph)
        active_files().enter_weights(graph.list_files())
    return scalarize_sequences(without_functions(graph))


@with_options(read_classes)
def check_backend(
    source: Any, backend: Any, *, format: str | None = None, **options: Any
) -> BackendReport:
    """What a backend takes of a model, by operator.

    Subgraphs of an operator that it does not take are looked into.
    """
    spec = get_backend(backend)
    graph = prepare_graph(source, format=format, **options)
    verdicts = dict(_judge_all(graph, spec.target))
    report = summarize(graph.name, spec.name, verdicts.values())
    report.parts, report.missing = find_missing(graph, verdicts)
    return report


def _judge_all(graph: Graph, target: Target) -> Iterator[tuple[Node, Verdict]]:
    for node, verdict in judge_nodes(graph, target).items():
        yield node, verdict
        if not verdict.is_taken:
            for body in node.graphs():
                yield from _judge_all(body, target)


def _partition(
    graph: Graph, backend: Backend, limits: PartitionOptions, prefix: str = ""
) -> Partitioned:
    verdicts = judge_nodes(graph, backend.target)
    numbered = Numbered(graph)
    offloaded = [verdicts[n].is_taken for n in graph.nodes]
    done: dict[tuple[Any, ...], Graph] = {}  # parts that another round need not legalize again
    while True:
        stages = _choose_stages(numbered, verdicts, offloaded, limits)
        inside = _partition_bodies(graph, offloaded, backend, limits, prefix)
        parts = list(_make_parts(numbered, stages, offloaded, inside, prefix))
        refused: dict[Node, str] = {}
        legal = [_legalize_part(p, backend, refused, done) for p in parts]
        if not refused:
            break
        verdicts |= {n: Verdict(n, reason) for n, reason in refused.items()}
        offloaded = [t and n not in refused for t, n in zip(offloaded, graph.nodes, strict=True)]
    report = summarize(graph.name, backend.name, verdicts.values())
    return Partitioned(graph, backend, tuple(legal), report)


def _choose_stages(
    numbered: Numbered, verdicts: Mapping[Node, Verdict], offloaded: list[bool],
    limits: PartitionOptions,
) -> list[int]:  # fmt: skip
    """The stages of nodes, after those that are not worth a part have left the backend."""
    nodes, flow = numbered.graph.nodes, numbered.flow
    while True:
        stages = assign_stages(flow, offloaded)
        groups = connected_groups(flow, offloaded, stages)
        sizes = [sum(bool(verdicts[nodes[n]].operators) for n in group) for group in groups]
        costs = [sum(count_multiply_adds(nodes[n]) for n in group) for group in groups]
        least = max(limits.min_nodes, 1)  # nodes that dissolve are no part
        left = [g for g, size, cost in zip(groups, sizes, costs, strict=True)
                if size < least or 2 * cost < limits.min_flops]  # fmt: skip
        if not left and limits.max_parts is not None:
            left = _least_parts(stages, groups, costs, limits.max_parts)
        if not left:
            return stages
        for group in left:
            for node in group:
                offloaded[node] = False


def _least_parts(
    stages: Sequence[int], groups: Sequence[list[int]], costs: Sequence[int], most: int
) -> list[list[int]]:
    """The groups of the parts that are too many: those with the fewest multiply-adds."""
    weight: dict[int, tuple[int, int]] = {}
    for group, cost in zip(groups, costs, strict=True):
        before = weight.get(stages[group[0]], (0, 0))
        weight[stages[group[0]]] = (before[0] + cost, before[1] + len(group))
    dropped = set(sorted(weight, key=lambda s: weight[s])[: max(len(weight) - most, 0)])
    return [g for g in groups if stages[g[0]] in dropped]


def _partition_bodies(
    graph: Graph, offloaded: Sequence[bool], backend: Backend, limits: PartitionOptions, prefix: str
) -> dict[Node, dict[str, Partitioned]]:
    """The partitioned subgraphs of operators that are run part by part."""
    partitions: dict[Node, dict[str, Partitioned]] = {}
    if limits.control_flow != "inside":
        return partitions
    for node, is_taken in zip(graph.nodes, offloaded, strict=True):
        if is_taken or node.domain or node.op not in INSIDE or not _has_plain_constants(node):
            continue
        bodies = {}
        for name, body in node.attrs.items():
            if isinstance(body, Graph):
                body_prefix = f"{prefix}{CONTROL}_{len(partitions)}.{name}."
                bodies[name] = _partition(close_body(body), backend, limits, body_prefix)
        if any(p.kind != REMAINDER for b in bodies.values() for p in b.parts):
            partitions[node] = bodies
    return partitions


def _has_plain_constants(node: Node) -> bool:
    """Whether NumPy's files hold the constants that a node reads."""
    dtypes = (v.tensor.dtype for v in node.inputs if v is not None and v.tensor is not None)
    return all(d.numpy.kind in "biufc" for d in dtypes)


def close_body(body: Graph) -> Graph:
    """A subgraph that is given what it reads of the graphs around it, after its own inputs."""
    captured = dict.fromkeys(captured_values(body))
    return replace(body, inputs=(*body.inputs, *captured))


def _make_parts(
    numbered: Numbered, stages: Sequence[int], offloaded: Sequence[bool],
    inside: Mapping[Node, Mapping[str, Partitioned]], prefix: str,
) -> Iterator[Part]:  # fmt: skip
    """The parts in order, with what they read and what others read of them."""
    graph, order = numbered.graph, _part_keys(numbered, stages, inside)
    members: dict[tuple[int, int, int], list[int]] = {}
    for node, key in enumerate(order):
        members.setdefault(key, []).append(node)
    constants = [v for v in graph.outputs if v.tensor is not None]
    if constants and not any(key[0] % 2 == 0 and key[1] % 2 == 0 for key in members):
        members[(max(stages, default=0) + 2, 0, 0)] = []
    holder = max((k for k in members if k[0] % 2 == 0 and k[1] % 2 == 0), default=None)
    counts = dict.fromkeys((ACCELERATOR, REMAINDER, CONTROL), 0)
    for key in sorted(members):
        members_of_part = members[key]
        kind = ACCELERATOR if key[0] % 2 else CONTROL if key[1] % 2 else REMAINDER
        outputs = [numbered.values[v] for n in members_of_part for v in numbered.flow.makes[n]
                   if _leaves(numbered, order, v)]  # fmt: skip
        outputs += constants if key == holder else []
        name = f"{prefix}{kind}_{counts[kind]}"
        counts[kind] += 1
        nodes = [graph.nodes[n] for n in members_of_part]
        body = extract_subgraph(name, nodes, dict.fromkeys(outputs), graph)
        yield Part(name, kind, body, bodies=inside[nodes[0]] if kind == CONTROL else {})


def _leaves(numbered: Numbered, order: Sequence[tuple[int, int, int]], value: int) -> bool:
    flow = numbered.flow
    here = order[flow.maker[value]]
    return flow.is_output[value] or any(order[r] != here for r in flow.readers[value])


def _part_keys(
    numbered: Numbered, stages: Sequence[int], inside: Collection[Node]
) -> list[tuple[int, int, int]]:
    """The part of each node, in order: its stage, and in it a place before or after an If or Loop.

    An operator that is run part by part is alone in an odd place.
    """
    if not inside:
        return [(s, 0, 0) for s in stages]
    keys: list[tuple[int, int, int]] = []
    for number, node in enumerate(numbered.graph.nodes):
        places = (keys[p][1] + (keys[p][2] > 0) for p in numbered.flow.before[number]
                  if stages[p] == stages[number])  # fmt: skip
        place = max(places, default=0)
        is_apart = node in inside
        place += place % 2 != is_apart
        keys.append((stages[number], place, number + 1 if is_apart else 0))
    return keys


def _legalize_part(
    part: Part, backend: Backend, refused: dict[Node, str], done: dict[tuple[Any, ...], Graph]
) -> Part:  # fmt: skip
    """The part as the backend gets it; nodes that it takes alone only are added to ``refused``."""
    if part.kind != ACCELERATOR:
        return part
    key = part.graph.nodes, part.graph.outputs
    try:
        if key not in done:
            done[key] = backend.prepare(lower_for(part.graph, backend.target))
        return replace(part, legalized=replace(done[key], name=part.name))
    except Unconvertible as error:
        nodes = list(_nodes_of(part.graph, error.problems)) or part.graph.nodes
        refused |= dict.fromkeys(nodes, error.problems[0].reason)
        return part


def lower_for(graph: Graph, target: Target) -> Graph:
    """A graph of the IR in operators of a target."""
    if not target.is_standard:
        return lower_to_target(graph, target)
    onnx = get_format(STANDARD)
    assert onnx.from_ir is not None
    return onnx.from_ir(graph, opset=target.opset, functions="inline")


def _nodes_of(graph: Graph, problems: Sequence[Problem]) -> Iterator[Node]:
    """The nodes that problems are about: those that bear the name, or make the output."""
    names = {n for p in problems for n in p.names}
    for node in graph.nodes:
        if name_of(node) in names or any(v.name in names for v in node.outputs):
            yield node
