"""What is usual of a shape where nothing determines it, and what rules such a guess out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from serde.ir.geometry import Ints, may_be_same
from serde.ir.graph import Node, Shape, Value

from ..operators import describe
from ..rules import parse
from .merge_shapes import BATCH, Ask
from .relations import channel_axis, constant_shape, padded_shape


def guess_rows(node: Node) -> Iterator[tuple[Value, Shape]]:
    """The operand of a dense layer is usually a row a sample, though it would flatten others."""
    x, weight = (
        node.inputs[:2] if is_flattening_dense(node) and len(node.inputs) > 1 else (None, None)
    )
    shape = None if weight is None else weight.shape
    if x is not None and shape is not None and len(shape) == 2:
        yield x, (BATCH, shape[1])


def guess_broadcast(node: Node, ask: Ask) -> Iterator[tuple[Value, Shape]]:
    """An operand has the sizes of the result that the other, whose shape is known, has not.

    It has its rank if the first size is among them.
    """
    if not (node.op.startswith("broadcast_") and len(node.inputs) == 2):
        return
    out = ask(node.outputs[0])
    for one, other in (node.inputs, node.inputs[::-1]):
        shape = None if other is None else ask(other)
        if one is None or not out or shape is None or len(shape) > len(out):
            continue
        sizes = padded_shape(shape, len(out))
        if sizes[0] == 1 != out[0]:
            yield one, tuple(d if e == 1 else None for d, e in zip(out, sizes, strict=True))


def is_flattening_dense(node: Node) -> bool:
    """Whether a node is a dense layer that takes all axes but the first as one."""
    return node.op == "FullyConnected" and parse(bool, node.attrs.get("flatten", "True"))


def is_contradicted(node: Node, ask: Ask) -> bool:
    """Whether what is known of the shapes around a node is more than it can take."""
    if node.op.startswith("broadcast_") and len(node.inputs) == 2:
        return _is_not_broadcast(node, ask)
    x = node.inputs[0] if node.inputs else None
    shape = ask(x) if x is not None else None
    if shape is None:
        return False
    if (usual := describe(node.op).channels) is not None:
        row = constant_shape(node, 1)
        size = shape[channel_axis(node, usual, len(shape))]
        return row is not None and isinstance(size, int) and row != (size,)
    if is_flattening_dense(node):
        weight = constant_shape(node, 1)
        return weight is not None and not _may_hold(shape[1:], weight[1])
    return node.op == "Reshape" and not _may_reshape(shape, parse(Ints, node.attrs["shape"]))


def _may_hold(shape: Shape, count: int) -> bool:
    """Whether a tensor of ``shape`` may have ``count`` elements."""
    known = math.prod(d for d in shape if isinstance(d, int))
    is_static = all(isinstance(d, int) for d in shape)
    return known == count if is_static else known > 0 and count % known == 0


def _may_reshape(shape: Shape, codes: Ints) -> bool:
    if not codes or min(codes) < -1 or 0 in codes:
        return True
    new_size = math.prod(c for c in codes if c > 0)
    if -1 not in codes:
        return _may_hold(shape, new_size)
    size = math.prod(d for d in shape if isinstance(d, int))
    return not all(isinstance(d, int) for d in shape) or size % new_size == 0


def _is_not_broadcast(node: Node, ask: Ask) -> bool:
    a, b, out = (None if v is None else ask(v) for v in (*node.inputs, node.outputs[0]))
    if out is not None and max(len(s) for s in (a, b, out) if s is not None) > len(out):
        return True
    if a is None or b is None:
        return False
    rank = max(len(a), len(b))
    pairs = zip(padded_shape(a, rank), padded_shape(b, rank), strict=True)
    return any(1 not in pair and not may_be_same(*pair) for pair in pairs)
