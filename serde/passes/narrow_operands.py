"""Operands that were expanded although the operator that reads them broadcasts."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.constants import is_constant, make_constant
from serde.ir.graph import IR_OPSET, Graph, Node, Shape, Tensor, Value
from serde.passes.dce import drop_dead
from serde.rewrite.patterns import calls_of
from serde.spec.folding import fold
from serde.spec.inference import Type

BROADCASTING = frozenset(
    "Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Pow Sub Where "
    "Xor".split()
)

MOST = 1024  # elements of a constant that takes the place of several


def narrow_operands(graph: Graph) -> Graph:
    """Return ``graph`` with operands before they were expanded, where the result stays the same.

    What is computed of constants only is computed, and expanded then. Subgraphs are left as they
    are.
    """
    before: dict[Value, Value] = {}  # by the result of an Expand or ConstantOfShape
    makers: dict[Value, Node] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        last = _narrow(node, before, makers)
        nodes.append(last)
        if (source := find_expanded(last)) is not None:
            before[last.outputs[0]], makers[last.outputs[0]] = source, last
    if all(map(operator.is_, nodes, graph.nodes)):
        return graph
    return drop_dead(replace(graph, nodes=tuple(nodes)))


def find_expanded(node: Node) -> Value | None:
    """What an ``Expand`` or ``ConstantOfShape`` repeats; None of other nodes."""
    if node.domain or node.op not in ("Expand", "ConstantOfShape"):
        return None
    if node.op == "Expand":
        return node.inputs[0]
    value = node.attrs.get("value")
    one = value.load() if isinstance(value, Tensor) else np.zeros(1, np.float32)
    return make_constant(f"{node.outputs[0].name}/value", Tensor.of(one.reshape(())))


def _narrow(node: Node, before: dict[Value, Value], makers: dict[Value, Node]) -> Node:
    """The node with such operands, or the Expand of what it computes."""
    expanded = [v for v in node.inputs if v in before]
    if node.domain or not expanded:
        return node
    if node.op == "Concat" and expanded == list(node.inputs):
        return _expand_concat(node, before) or node
    if node.op == "Cast":
        return _expand_constant(node, node.outputs[0].shape, before) or node
    if node.op == "Reshape" and expanded == [node.inputs[0]]:
        return _expand_reshaped(node, before[expanded[0]]) or node
    if node.op not in BROADCASTING:
        return node
    shape = broadcast(v.shape for v in node.inputs if v is not None)
    operands = list(node.inputs)
    for at, v in enumerate(operands):
        if v is None or v not in before or calls_of(makers[v]) != calls_of(node):
            continue
        tried = [*operands[:at], before[v], *operands[at + 1 :]]
        if shape is not None and broadcast(t.shape for t in tried if t is not None) == shape:
            operands = tried
    if operands != list(node.inputs):
        node = replace(node, inputs=tuple(operands))
    return _expand_constant(node, shape, before) or node


def _expand_constant(node: Node, shape: Shape | None, before: dict[Value, Value]) -> Node | None:
    """An Expand of what a node computes of constants; None where it does not."""
    operands = [before.get(v, v) if v is not None else None for v in node.inputs]
    if not is_constant(operands) or operands == list(node.inputs):
        return None
    (result,), narrow = node.outputs, broadcast(v.shape for v in operands if v is not None)
    if narrow is None or not result.is_static or result.shape != shape:
        return None
    tensors = fold(node.op, IR_OPSET, tuple(operands), node.attrs, (Type(result.dtype, narrow),))
    if tensors is None:
        return None
    return _expand(tensors[0], node)


def _expand_reshaped(node: Node, source: Value) -> Node | None:
    """An Expand of a reshaped constant; None where expanded axes are joined with others."""
    wide, result = node.inputs[0], node.outputs[0]
    if source.tensor is None or wide is None or not (wide.is_static and result.is_static):
        return None
    sizes = (1,) * (wide.rank - source.rank) + source.static_shape
    shape: list[int] = []
    for axes, behind in group_axes(wide.static_shape, result.static_shape):
        own = [(sizes[a], wide.static_shape[a]) for a in axes]
        if any(n != m for n, m in own) and any(n != 1 for n, _ in own):
            return None
        shape += behind if all(n == m for n, m in own) else [1] * len(behind)
    tensor, target = source.tensor, tuple(shape)
    return _expand(Tensor(tensor.dtype, target, lambda: tensor.load().reshape(target)), node)


def group_axes(
    before: Sequence[int], after: Sequence[int]
) -> Iterator[tuple[list[int], list[int]]]:
    """The axes of a shape in groups, each with the sizes that Reshape makes of it.

    Shapes have the same number of elements; one without elements is one group.
    """
    if 0 in before:
        yield list(range(len(before))), list(after)
        return
    axes: list[int] = []
    sizes: list[int] = []
    rest, count, have = list(after), 1, 1
    for axis, size in enumerate(before):
        axes.append(axis)
        count *= size
        while have < count:
            sizes.append(rest.pop(0))
            have *= sizes[-1]
        if have == count:
            yield axes, sizes
            axes, sizes, count, have = [], [], 1, 1
    if axes or rest:
        yield axes, sizes + rest


def _expand_concat(node: Node, before: dict[Value, Value]) -> Node | None:
    """An Expand of numbers along the axis of a Concat; None where it does not join such."""
    (result,), sources = node.outputs, [before[v] for v in node.inputs if v is not None]
    if not result.is_static or not is_constant(sources) or any(v.rank for v in sources):
        return None
    axis: Any = node.attrs["axis"]
    lengths = [v.static_shape[axis] for v in node.inputs if v is not None]
    numbers = np.repeat(np.stack([v.array() for v in sources]), lengths)
    shape = [1] * len(result.static_shape)
    shape[axis] = numbers.size
    return _expand(Tensor.of(numbers.reshape(shape)), node) if numbers.size <= MOST else None


def _expand(tensor: Tensor, node: Node) -> Node:
    (result,) = node.outputs
    sizes = make_constant(f"{result.name}/shape", Tensor.of(np.array(result.shape, np.int64)))
    held = make_constant(f"{result.name}/value", tensor)
    return Node("Expand", (held, sizes), (result,), {}, "", node.name, node.sources)


def broadcast(shapes: Iterable[Shape | None]) -> Shape | None:
    """The shape of an elementwise result; None where sizes do not tell."""
    listed = list(shapes)
    known = [s for s in listed if s is not None]
    if len(known) < len(listed):
        return None
    rank = max(map(len, known), default=0)
    sizes = []
    for at in range(-rank, 0):
        others = {s[at] for s in known if len(s) >= -at and s[at] != 1}
        if len(others) > 1 or None in others:
            return None
        sizes.append(others.pop() if others else 1)
    return tuple(sizes)
