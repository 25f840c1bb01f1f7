"""What pnnx makes of a whole graph: samples are kept apart, and attributes are looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import Problem, Unconvertible
from serde.ir.graph import Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_values
from serde.legalize.walk import group_problems, problem_of
from serde.spec.traits import BROADCASTS

from .anchors import anchor_samples
from .reductions import MOST_AXES
from .rows import reshape_rows
from .windows import LEAST

# pnnx knows these by their attributes, and takes none for granted.
EXPLICIT = frozenset({("Pad", "mode"), ("Resize", "mode"), ("Resize", "nearest_mode"),
                      ("Resize", "coordinate_transformation_mode")})  # fmt: skip
# Operators of samples: ncnn keeps what belongs to one apart from what belongs to others.
SAMPLED = frozenset(
    "AveragePool BatchNormalization Conv ConvTranspose DepthToSpace GlobalAveragePool "
    "GlobalMaxPool InstanceNormalization LRN MaxPool PRelu Resize".split()
)
ALONG = frozenset("Concat LogSoftmax Softmax".split())  # the attribute axis
COMBINED = BROADCASTS | {"Concat", "MatMul"}


def prepare(graph: Graph) -> Graph:
    """Return a lowered graph with the attributes that pnnx looks up.

    Raises:
        Unconvertible: for nodes that mix samples beside those that keep them apart.
    """
    mixed = list(find_mixed(graph))
    is_apart = any(n.op in SAMPLED for n in graph.nodes)
    refusals = [*check_outputs(graph), *check_volumes(graph)]
    if is_apart:
        refusals += (
            problem_of(n, "ncnn keeps samples, along the first axis, apart") for n in mixed
        )
    if problems := group_problems(refusals):
        raise Unconvertible("ir → ncnn", problems)
    if is_apart:
        graph = anchor_samples(graph, SAMPLED)
    elif mixed:
        graph = reshape_rows(graph)
    return replace(pad_finitely(graph), explicit=EXPLICIT)


def pad_finitely(graph: Graph) -> Graph:
    """Return a graph whose pools are not padded with -inf, which ncnn does not read.

    ``avoid_runtime_forms`` writes such pads behind other ones.
    """
    pads = (n for n in graph.nodes if n.op == "Pad" and len(n.inputs) > 2)
    fills = {v: v.array() for n in pads if (v := n.inputs[2]) is not None and v.type.kind == "f"}
    finite = {
        v: replace(v, tensor=Tensor.of(np.maximum(a, a.dtype.type(LEAST))))
        for v, a in fills.items() if np.isneginf(a)
    }  # fmt: skip
    return replace_values(graph, finite) if finite else graph


def check_outputs(graph: Graph) -> Iterator[Problem]:
    """Outputs that no node computes of the inputs."""
    computed = set(graph.inputs)
    for node in graph.nodes:
        if not computed.isdisjoint(node.inputs):
            computed.update(node.outputs)
    computed.difference_update(graph.inputs)
    for value in graph.outputs:
        if value not in computed:
            yield Problem(
                "output", {}, "ncnn returns what it computes of the inputs only", (value.name,)
            )


def find_mixed(graph: Graph) -> Iterator[Node]:
    """Nodes that compute along the axis of the samples, or lose it."""
    is_normalized = any(n.op == "LayerNormalization" for n in graph.nodes)
    axis_of: dict[Value, int] = {}
    for node in graph.nodes:
        first = node.inputs[0] if node.inputs else None
        if first is None:
            continue
        at = axis_of.get(first, 0)
        for value in node.outputs:
            axis_of[value] = follow_axis(node, at) if value.rank == first.rank else 0
        axes = axes_along(node, first)
        is_lost = is_normalized and at and (has_all_axes(node) or 0 in axes)
        if at in axes or is_lost or has_samples(node) or is_list(node):
            yield node


def follow_axis(node: Node, at: int) -> int:
    """Where an operator puts an axis."""
    attrs: Any = node.attrs
    if node.op == "Transpose":
        return int(attrs["perm"].index(at))
    return 0 if node.op == "Reshape" else at


def check_volumes(graph: Graph) -> Iterator[Problem]:
    """Tensors of five axes, of which one is that of the samples."""
    volumes = [(n, wide_shapes(n)) for n in graph.nodes]
    counts = {shape[0] for n, shapes in volumes if n.op in SAMPLED for shape in shapes}
    for node, shapes in volumes:
        if any(shape[0] not in counts for shape in shapes):
            yield problem_of(node, f"ncnn has tensors of up to {MOST_AXES} axes beside the samples")


def wide_shapes(node: Node) -> list[tuple[Any, ...]]:
    """The shapes of more axes than ncnn has, were it not for the samples."""
    values = (v for v in (*node.inputs, *node.outputs) if v is not None and v.tensor is None)
    return [v.ranked_shape for v in values if v.rank > MOST_AXES]


def axes_along(node: Node, x: Value) -> set[int]:
    """The axes that a node computes along, or changes the size of."""
    attrs: Any = node.attrs
    if x.rank < 2:
        return set()
    if node.op in ALONG:
        return {attrs.get("axis", -1) % x.rank}
    if node.op == "Slice":
        return {a % x.rank for a in constant(node, 3)}
    if node.op == "Pad":
        pads = constant(node, 1)
        return {a for a in range(x.rank) if pads[a] or pads[a + x.rank]}
    if node.op.startswith("Reduce"):
        listed = attrs.get("axes") or constant(node, 1) or range(x.rank)
        return {a % x.rank for a in listed}
    is_repeated = node.op == "Expand" and node.outputs[0].ranked_shape[0] != x.ranked_shape[0]
    return {0} if is_repeated else set()


def has_samples(node: Node) -> bool:
    """Whether a constant operand has a part for each sample."""
    rank = node.outputs[0].rank
    if node.op not in COMBINED or rank < (3 if node.op == "MatMul" else 2):
        return False
    shapes = (v.ranked_shape for v in node.inputs if v is not None and v.tensor is not None)
    return any(len(shape) == rank and shape[0] != 1 for shape in shapes)


def has_all_axes(node: Node) -> bool:
    """Whether a constant operand has an axis for each of the result's."""
    constants = (v for v in node.inputs if v is not None and v.tensor is not None)
    return node.op in COMBINED and any(v.rank == node.outputs[0].rank for v in constants)


def is_list(node: Node) -> bool:
    """Whether a node makes a number for each sample: ncnn returns an axis more."""
    is_reduced = node.op.startswith("Reduce") or node.op == "Squeeze"
    return is_reduced and node.outputs[0].rank < 2


def constant(node: Node, at: int) -> tuple[int, ...]:
    """A constant operand, nothing where it is left out or computed."""
    value = node.inputs[at] if at < len(node.inputs) else None
    return () if value is None or value.tensor is None else tuple(value.ints())
