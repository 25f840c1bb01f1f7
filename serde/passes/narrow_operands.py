"""Operands that were expanded although the operator that reads them broadcasts.

What is computed of constants only is computed, and expanded then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.constants import is_constant, make_constant, make_integers
from serde.ir.graph import IR_OPSET, Graph, Node, Shape, Tensor, Value
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, calls_of
from serde.spec.folding import fold
from serde.spec.inference import Type
from serde.spec.traits import BROADCASTS

MOST = 1024  # elements of a constant that takes the place of several
EXPANDING = ("Expand", "ConstantOfShape")
patterns = Patterns(*EXPANDING)


@patterns("Concat")
def expand_concat(near: Neighbours, node: Node) -> Node | None:
    """An Expand of numbers along the axis of a Concat."""
    (result,), sources = node.outputs, [_find_source(near, v) for v in node.inputs]
    constants = [v for v in sources if v is not None and v.tensor is not None]
    if len(constants) < len(sources) or not result.is_static or any(v.rank for v in constants):
        return None
    axis: Any = node.attrs["axis"]
    lengths = [v.static_shape[axis] for v in node.inputs if v is not None]
    numbers = np.repeat(np.stack([v.array() for v in constants]), lengths)
    shape = [1] * len(result.static_shape)
    shape[axis] = numbers.size
    return _expand(Tensor.of(numbers.reshape(shape)), node) if numbers.size <= MOST else None


@patterns("Reshape")
def expand_reshaped(near: Neighbours, node: Node) -> Node | None:
    """An Expand of a reshaped constant, unless expanded axes are joined with others."""
    whole, result = node.inputs[0], node.outputs[0]
    source = _find_source(near, whole)
    if source is None or source.tensor is None or whole is None:
        return None
    if not (whole.is_static and result.is_static):
        return None
    sizes = (1,) * (whole.rank - source.rank) + source.static_shape
    shape: list[int] = []
    for axes, behind in group_axes(whole.static_shape, result.static_shape):
        both = [(sizes[a], whole.static_shape[a]) for a in axes]
        if any(n != m for n, m in both) and any(n != 1 for n, _ in both):
            return None
        shape += behind if all(n == m for n, m in both) else [1] * len(behind)
    tensor, target = source.tensor, tuple(shape)
    return _expand(Tensor(tensor.dtype, target, lambda: tensor.load().reshape(target)), node)


@patterns(*BROADCASTS)
def narrow_operands_of(near: Neighbours, node: Node) -> Node | None:
    """The node with operands as they were before, where the result has the same shape."""
    sources = [_find_source(near, v) for v in node.inputs]
    if not any(sources):
        return None
    shape, operands = _broadcast_operands(node.inputs), list(node.inputs)
    for at, (v, source) in enumerate(zip(node.inputs, sources, strict=True)):
        if v is None or source is None or calls_of(near.makers[v]) != calls_of(node):
            continue
        tried = [*operands[:at], source, *operands[at + 1 :]]
        if shape is not None and _broadcast_operands(tried) == shape:
            operands = tried
    return None if operands == list(node.inputs) else replace(node, inputs=tuple(operands))


@patterns("Cast", *BROADCASTS)
def expand_computed(near: Neighbours, node: Node) -> Node | None:
    """An Expand of what a node computes of constants that are expanded."""
    sources = [_find_source(near, v) for v in node.inputs]
    operands = tuple(s or v for s, v in zip(sources, node.inputs, strict=True))
    if operands == node.inputs or not is_constant(operands):
        return None
    (result,), shape = node.outputs, _broadcast_operands(operands)
    is_known = result.is_static and result.shape == _broadcast_operands(node.inputs)
    if shape is None or not is_known:
        return None
    tensors = fold(node.op, IR_OPSET, operands, node.attrs, (Type(result.dtype, shape),))
    return None if tensors is None else _expand(tensors[0], node)


def _find_source(near: Neighbours, value: Value | None) -> Value | None:
    """What was expanded to ``value``, if it was."""
    maker = near.maker(value, *EXPANDING)
    if maker is None or value is None:
        return None
    return maker.inputs[0] if maker.op == "Expand" else near.find(_list_fillings)[value]


def _list_fillings(graph: Graph) -> dict[Value, Value | None]:
    """The number in each ConstantOfShape, by its result."""
    nodes = (n for n in graph.nodes if n.op == "ConstantOfShape")
    return {node.outputs[0]: find_expanded(node) for node in nodes}


def find_expanded(node: Node) -> Value | None:
    """What an ``Expand`` or ``ConstantOfShape`` repeats; None of other nodes."""
    if node.domain or node.op not in EXPANDING:
        return None
    if node.op == "Expand":
        return node.inputs[0]
    value = node.attrs.get("value")
    one = value.load() if isinstance(value, Tensor) else np.zeros(1, np.float32)
    return make_constant(f"{node.outputs[0].name}/value", Tensor.of(one.reshape(())))


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


def _expand(tensor: Tensor, node: Node) -> Node:
    (result,) = node.outputs
    sizes = make_integers(f"{result.name}/shape", result.static_shape)
    source = make_constant(f"{result.name}/value", tensor)
    return Node("Expand", (source, sizes), (result,), {}, "", node.name, node.sources)


def _broadcast_operands(operands: Sequence[Value | None]) -> Shape | None:
    """The shape of an elementwise result; None where sizes do not tell."""
    listed = [v.shape for v in operands if v is not None]
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


narrow_operands = optional("narrow_operands")(patterns.apply)
