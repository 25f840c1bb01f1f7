"""Activations, biases and dropped axes as part of the operators before them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from serde.ir.geometry import swap_axes_perm
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.rewrite.patterns import Neighbours, Patterns, join_sources, merge, orders

from ..forms import BROADCAST_AXES
from ..support_table import KERNELS

FUSED = {"RELU": 1, "RELU6": 3}  # numbers of ActivationFunctionType
TAKES = (
    "ADD", "AVERAGE_POOL_2D", "CONV_2D", "CONV_3D", "DEPTHWISE_CONV_2D", "DIV",
    "FULLY_CONNECTED", "MAX_POOL_2D", "MUL", "SUB",
)  # fmt: skip
COMPARED = (DType.BOOL, DType.FLOAT32, DType.INT32, DType.INT64)  # that kernels of both have
REDUCERS = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM")
REPEATING = ("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "SUB")
BLOCKS = (0, 1, 3, 2, 4, 5)  # rows, columns and blocks in another order
MOVES = (  # operators that move elements of the first operand, and of no other
    "BROADCAST_TO", "DEPTH_TO_SPACE", "GATHER", "PAD", "PADV2", "RESHAPE", "SLICE",
    "SPACE_TO_DEPTH", "STRIDED_SLICE", "TILE", "TRANSPOSE",
)  # fmt: skip
patterns = Patterns(domain="tflite")
FIELD = "fused_activation_function"


@patterns(*FUSED)
def fuse_activation(near: Neighbours, node: Node) -> Node | None:
    """An activation behind an operator whose kernels have it."""
    maker = near.sole_maker(node, node.inputs[0], *TAKES)
    if maker is None or FIELD in maker.attrs or maker.outputs[0].dtype is None:
        return None
    if maker.outputs[0].dtype.kind != "f":
        return None
    attrs = MappingProxyType({**maker.attrs, FIELD: FUSED[node.op]})
    return merge(maker, node, attrs=attrs)


@patterns("LOGICAL_NOT")
def fuse_inequality(near: Neighbours, node: Node) -> Node | None:
    """The opposite of what is equal."""
    maker = near.sole_maker(node, node.inputs[0], "EQUAL")
    if maker is None or maker.inputs[0] is None or maker.inputs[0].dtype not in COMPARED:
        return None
    return merge(maker, node, op="NOT_EQUAL")


@patterns("DIV")
def fuse_root(near: Neighbours, node: Node) -> Node | None:
    """One divided by a root."""
    number, divisor = node.inputs
    root = near.sole_maker(node, divisor, "SQRT")
    if root is None or number is None or number.tensor is None or FIELD in node.attrs:
        return None
    is_one = number.tensor.size == 1 and number.array().item() == 1
    if (
        number.dtype is not DType.FLOAT32
        or not is_one
        or node.outputs[0].shape != root.outputs[0].shape
    ):
        return None
    return merge(root, node, op="RSQRT")


@patterns("ADD")
def fuse_bias(near: Neighbours, node: Node) -> Node | None:
    """A constant row added behind a layer without a bias."""
    for product, bias in orders(node):
        layer = near.sole_maker(node, product, "FULLY_CONNECTED")
        if layer is None or bias is None or bias.tensor is None or layer.inputs[2] is not None:
            continue
        if bias.static_shape == node.outputs[0].ranked_shape[-1:] and FIELD not in layer.attrs:
            return merge(layer, node, inputs=(*layer.inputs[:2], bias), attrs=layer.attrs)
    return None


@patterns("FULLY_CONNECTED")
def drop_flattening(near: Neighbours, node: Node) -> Node | None:
    """A RESHAPE to rows in front of a layer, which makes rows of what it reads."""
    rows = near.sole_maker(node, node.inputs[0], "RESHAPE")
    weights = node.inputs[1]
    if rows is None or weights is None or node.attrs.get("keep_num_dims"):
        return None
    if rows.outputs[0].shape is None or rows.outputs[0].shape[1:] != weights.ranked_shape[1:]:
        return None
    inputs = (rows.inputs[0], *node.inputs[1:])
    return replace(node, inputs=inputs, sources=join_sources(rows, node))


@patterns("RESHAPE")
def drop_reduced_axes(near: Neighbours, node: Node) -> Node | None:
    """A RESHAPE that leaves out the axes of size 1 that a reduction has kept."""
    maker = near.sole_maker(node, node.inputs[0], *REDUCERS)
    if maker is None or not maker.attrs.get("keep_dims") or maker.inputs[1] is None:
        return None
    gone, kept = maker.inputs[1].ints(), maker.outputs[0].ranked_shape
    left = tuple([d for a, d in enumerate(kept) if a not in gone])
    if left != node.outputs[0].shape:
        return None
    return merge(maker, node, attrs=MappingProxyType({**maker.attrs, "keep_dims": 0}))


@patterns("DEQUANTIZE")
def dequantize_before(near: Neighbours, node: Node) -> list[Node] | None:
    """Integers that are dequantized where they come from: what moves them moves real numbers."""
    source, scale, zero = node.inputs
    assert scale is not None
    if scale.static_shape not in ((), (1,)):
        return None
    moves, move = [], near.sole_maker(node, source, *MOVES)
    while move is not None:
        moves.append(move)
        source = move.inputs[0]
        move = near.sole_maker(move, source, *MOVES)
    if not moves or source is None or source.tensor is not None:
        return None
    real = Value(f"{source.name}_real", DType.FLOAT32, source.shape)
    nodes = [replace(node, inputs=(source, scale, zero), outputs=(real,))]
    for move in reversed(moves):
        result = Value(f"{move.name}_real", DType.FLOAT32, move.outputs[0].shape)
        outputs = node.outputs if move is moves[0] else (result,)
        moved = fill_real(move, scale, zero)
        nodes.append(replace(moved, inputs=(real, *moved.inputs[1:]), outputs=outputs))
        real = result
    return nodes


def fill_real(move: Node, scale: Value, zero: Value | None) -> Node:
    """An operator on real numbers in place of one on integers, which pads with a real number."""
    if move.op not in ("PAD", "PADV2"):
        return move
    filled = move.inputs[2] if len(move.inputs) > 2 else None
    fill = np.zeros(()) if filled is None else filled.array()
    steps = fill.astype(np.float32) - (0 if zero is None else zero.array().astype(np.float32))
    if not steps.any():
        return replace(move, op="PAD", inputs=move.inputs[:2])
    real = Tensor.of(np.float32(steps * scale.array()).reshape(()))
    number = Value(f"{move.name}_fill", DType.FLOAT32, (), real)
    return replace(move, op="PADV2", inputs=(*move.inputs[:2], number))


@patterns("CAST")
def quantize_to_int32(near: Neighbours, node: Node) -> Node | None:
    """int16 in steps of int32, which QuantizeLinear lacks."""
    rounded = near.sole_maker(node, node.inputs[0], "ROUND")
    divided = None if rounded is None else near.sole_maker(rounded, rounded.inputs[0], "DIV")
    if rounded is None or divided is None or FIELD in divided.attrs:
        return None
    if node.outputs[0].dtype is not DType.INT32:
        return None
    x, scale = divided.inputs
    real = near.maker(x, "DEQUANTIZE")
    if real is None or scale is None or scale.tensor is None or scale.tensor.size != 1:
        return None
    integers = real.inputs[0]
    if integers is None or integers.dtype is not DType.INT16 or not (scale.array() > 0).all():
        return None
    sources = join_sources(divided, rounded, node)
    return replace(node, op="QUANTIZE", inputs=(x, scale, None), attrs={}, sources=sources)


@patterns(*REPEATING)
def drop_repetition(near: Neighbours, node: Node) -> Node | None:
    """A BROADCAST_TO of one operand to the shape that the other one has."""
    for at, (value, other) in enumerate(orders(node)):
        maker = near.maker(value, "BROADCAST_TO")
        if maker is None or (x := maker.inputs[0]) is None or other is None:
            continue
        shape = node.outputs[0].shape
        if shape is not None and other.shape == shape and len(shape) <= BROADCAST_AXES:
            return replace(node, inputs=(other, x) if at else (x, other))
    return None


@patterns("BATCH_MATMUL")
def fuse_turned_operand(near: Neighbours, node: Node) -> Node | None:
    """A TRANSPOSE of rows and columns in front of a product, which its kernels do."""
    for at, name in enumerate(("adj_x", "adj_y")):
        maker = near.sole_maker(node, node.inputs[at], "TRANSPOSE")
        if maker is None or maker.inputs[1] is None:
            continue
        order = maker.inputs[1].ints()
        if order == swap_axes_perm(len(order), -1, -2):
            operands = [*node.inputs]
            operands[at] = maker.inputs[0]
            attrs = MappingProxyType({**node.attrs, name: not node.attrs.get(name)})
            sources = join_sources(maker, node)
            return replace(node, inputs=tuple(operands), attrs=attrs, sources=sources)
    return None


@patterns("RESHAPE")
def fuse_blocks(near: Neighbours, node: Node) -> Node | None:
    """Blocks of an image as channels, or channels as blocks."""
    moved = near.sole_maker(node, node.inputs[0], "TRANSPOSE")
    split = None if moved is None else near.sole_maker(moved, moved.inputs[0], "RESHAPE")
    if moved is None or split is None or moved.inputs[1] is None or split.inputs[0] is None:
        return None
    if moved.inputs[1].ints() != BLOCKS or node.outputs[0].dtype not in KERNELS["SpaceToDepth"]:
        return None
    ends = (split.inputs[0], node.outputs[0], split.outputs[0])
    before, after, parts = ([d for d in (v.shape or ())[1:] if isinstance(d, int)] for v in ends)
    if (len(before), len(after), len(parts)) != (3, 3, 5):
        return None
    block = parts[3]
    for op, whole, image in (("SPACE_TO_DEPTH", before, after), ("DEPTH_TO_SPACE", after, before)):
        height, width, channels = image
        each = [width, block] if op == "DEPTH_TO_SPACE" else [block, width]
        sizes = [height * block, width * block, channels // block**2]
        if whole == sizes and parts == [height, *each, block, sizes[2]]:
            attrs = MappingProxyType({"block_size": block})
            sources = join_sources(split, moved, node)
            return replace(node, op=op, inputs=split.inputs[:1], attrs=attrs, sources=sources)
    return None


def fuse(graph: Graph) -> Graph:
    """Return ``graph`` with operators fused."""
    return patterns.apply(graph)
