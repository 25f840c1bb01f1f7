"""Lists that a loop fills, one element a turn, as outputs that the loop stacks.

PyTorch's exporter writes ``outs.append(y)`` … ``torch.stack(outs)`` as a sequence that a Loop
carries. Few runtimes have sequences; every one that has loops has stacked outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from serde.ir.graph import DType, Graph, Node, Shape, Tensor, Value
from serde.ir.map_nodes import map_bodies


class _List(NamedTuple):
    """State ``at`` of a Loop: each turn appends ``element``, ``readers`` join them afterwards."""

    at: int
    element: Value
    readers: tuple[Node, ...]


def stack_lists(graph: Graph) -> Graph:
    """Return ``graph`` without sequences that a Loop fills and that are only joined afterwards.

    Elements that are stacked are of one shape; where they are joined along an axis they have to be
    known to be.
    """
    graph = replace(graph, nodes=tuple([map_bodies(n, stack_lists) for n in graph.nodes]))
    joins: dict[Value | None, list[Node]] = {}
    for node in graph.nodes:
        if node.op == "ConcatFromSequence":
            joins.setdefault(node.inputs[0], []).append(node)
    if not joins:
        return graph
    uses, makers = graph.uses(), {v: n for n in graph.nodes for v in n.outputs}
    nodes: list[Node] = []
    joined: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        lists = list(_find_lists(node, joins, uses, makers)) if node.op == "Loop" else []
        for one in lists:
            stack = node.outputs[one.at]
            shape = one.element.ranked_shape
            stacked = Value(stack.name, one.element.dtype, (None, *shape))
            joined.update((reader, _join(reader, stacked, shape)) for reader in one.readers)
            node = _add_stacked_output(node, one, stacked)
        nodes += joined.get(node, [node])
    return replace(graph, nodes=tuple(nodes))


def _find_lists(
    node: Node, joins: Mapping[Value | None, list[Node]], uses: Mapping[Value, int],
    makers: Mapping[Value, Node],
) -> Iterator[_List]:  # fmt: skip
    """The lists of a Loop, the last state first."""
    body = node.attrs["body"]
    assert isinstance(body, Graph)
    inner_uses = body.uses()
    inner_makers = {v: n for n in body.nodes for v in n.outputs}
    for at in reversed(range(len(node.inputs) - 2)):
        first, before, after = node.inputs[2 + at], body.inputs[2 + at], body.outputs[1 + at]
        readers, append = joins.get(node.outputs[at], []), inner_makers.get(after)
        empty = None if first is None else makers.get(first)
        if empty is None or empty.op != "SequenceEmpty" or append is None:
            continue
        appends = append.op == "SequenceInsert" and append.inputs[0] is before
        element = append.inputs[1]
        if not appends or len(append.inputs) > 2 or element is None:
            continue
        alone = inner_uses[before] == inner_uses[after] == 1
        if not alone or not readers or uses[node.outputs[at]] != len(readers):
            continue
        if all(_is_shape_known(element.shape, bool(r.attrs.get("new_axis"))) for r in readers):
            yield _List(at, element, tuple(readers))


def _is_shape_known(shape: Shape | None, new_axis: bool) -> bool:
    """Whether enough is known of the elements: their rank, or that they are all of one shape."""
    return shape is not None and (new_axis or all(isinstance(d, int) and d for d in shape))


def _add_stacked_output(node: Node, entry: _List, stacked: Value) -> Node:
    """The Loop with the elements stacked as its last output, and without the list."""
    body = node.attrs["body"]
    assert isinstance(body, Graph)
    outputs = (*body.outputs[: 1 + entry.at], *body.outputs[2 + entry.at :], entry.element)
    inputs = body.inputs[: 2 + entry.at] + body.inputs[3 + entry.at :]
    return replace(
        node,
        inputs=node.inputs[: 2 + entry.at] + node.inputs[3 + entry.at :],
        outputs=(*node.outputs[: entry.at], *node.outputs[entry.at + 1 :], stacked),
        attrs={**node.attrs, "body": replace(body, inputs=inputs, outputs=outputs)},
    )


def _join(node: Node, stacked: Value, shape: Shape) -> list[Node]:
    """What a ConcatFromSequence comes to: the first axis of ``stacked`` moved, or merged."""
    axis, new, rank = node.attrs["axis"], node.attrs.get("new_axis"), len(shape)
    assert isinstance(axis, int)
    axis += (rank + 1 if new else rank) if axis < 0 else 0
    order = (*range(1, axis + 1), 0, *range(axis + 1, rank + 1))
    (joined,) = node.outputs
    if new:
        return [replace(node, op="Transpose", inputs=(stacked,), attrs={"perm": order})]
    moved = Value(
        f"{joined.name}/stacked", stacked.dtype, tuple(stacked.ranked_shape[a] for a in order)
    )
    sizes = np.array([*shape[:axis], -1, *shape[axis + 1 :]], np.int64)
    target = Value(f"{joined.name}/shape", DType.INT64, (rank,), Tensor.of(sizes))
    return [
        replace(node, op="Transpose", inputs=(stacked,), outputs=(moved,), attrs={"perm": order}),
        replace(node, op="Reshape", inputs=(moved, target), attrs={"allowzero": 0}),
    ]
