"""Products of integers and what is computed of each number of them, in blocks of rows.

A layer of integers that ONNX Runtime has no kernel for, such as a residual sum, is a product and
some six operators on float32. Each of them reads and writes the whole image; where that is larger
than the cache, a ``Scan`` over blocks of rows, which computes all of them of one block before the
next, takes half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from serde.ir.builder import Names
from serde.ir.graph import DType, Graph, Node, Shape, Value
from serde.passes.dce import drop_dead
from serde.rewrite.patterns import Neighbours
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.traits import BROADCASTS, ELEMENTWISE, QUANTIZES

from ..used_names import used_names

LEAST = 250_000  # numbers of a product that are worth the blocks: 1 MB of float32
LEAST_OF_SAMPLE = 150_000  # where there may be several samples
SMALLEST, LARGEST = 1 << 14, 100_000  # numbers of a block
FEWEST = 3  # operators behind a product


class Step(NamedTuple):
    """A node that is computed for each block; a Reshape, to ``sizes``, or to those of the block."""

    node: Node
    sizes: Sequence[int] = ()


class Region(NamedTuple):
    """A product and what is computed of it by element; ``fed`` are the tensors that are read."""

    fed: tuple[Value, ...]
    steps: tuple[Step, ...]

    @property
    def result(self) -> Value:
        """What the last node computes."""
        return self.steps[-1].node.outputs[0]

    def extend(self, other: Region) -> Region:
        """Both, one after the other."""
        return Region(self.fed + other.fed, self.steps + other.steps)


def compute_in_blocks(graph: Graph) -> Graph:
    """Return ``graph`` with a loop for each large product and what follows it by element.

    A product has constant weights, and as many rows, of all samples or of each, as a block of them
    divides. Subgraphs stay as they are.
    """
    near, names = Neighbours(graph), used_names(graph)
    loops: dict[Node, list[Node]] = {}
    inside: set[Node] = set()
    for node in graph.nodes:
        region = _find_region(node, near) if node.op == "MatMulInteger" else None
        rows = 0 if region is None else _choose_rows(region.result.ranked_shape)
        if region is not None and rows:
            loops[region.steps[-1].node] = _loop_over_blocks(graph, region, rows, names)
            inside.update(step.node for step in region.steps)
    if not loops:
        return graph
    nodes: list[Node] = []
    for node in graph.nodes:
        nodes += loops.get(node, () if node in inside else (node,))
    return drop_dead(replace(graph, nodes=tuple(nodes)))


def _find_region(product: Node, near: Neighbours) -> Region | None:
    """A product and what is computed of it alone, up to where numbers are smallest."""
    x, w, *zeros = product.inputs
    constants = [v for v in (w, *zeros) if v is not None]
    if product.domain or x is None or x.shape is None or x.rank < 2:
        return None
    if any(v.tensor is None for v in constants) or constants[0].rank != 2:
        return None
    region, best = Region((x,), (Step(product),)), None
    while (more := _find_next(region.result, near)) is not None:
        region = region.extend(more)
        if region.result.type.bits == 8:
            best = region
    best = best or region
    return best if len(best.steps) > FEWEST else None


def _find_next(x: Value, near: Neighbours) -> Region | None:
    """What is computed of each number of ``x``, by the one node that reads it."""
    node = next(iter(near.readers.get(x, ())), None)
    if near.uses[x] != 1 or node is None or node.domain:
        return None
    if node.op == "Reshape" and node.inputs[0] is x:
        return _find_multiply_add(x, node, near)
    if len(node.outputs) != 1 or node.outputs[0].shape != x.shape:
        return None
    if node.op not in ELEMENTWISE | BROADCASTS | QUANTIZES:
        return None
    others = [v for v in node.inputs if v is not None and v is not x]
    fed = [v for v in others if v.tensor is None]
    constants = [v for v in others if v.tensor is not None]
    if node.op.endswith("Linear") and (fed or not _are_scalars(constants)):
        return None
    if not all(is_row(v, x) for v in constants) or any(v.shape != x.shape for v in fed):
        return None
    if len(fed) > 1:
        return None
    before = [_include_maker(node, v, near) for v in fed] or [Region((), ())]
    return before[0].extend(Region((), (Step(node),)))


def _find_multiply_add(x: Value, flat: Node, near: Neighbours) -> Region | None:
    """``OnnxBuilder.multiply_add``: a product of matrices and a sum, of rows of some numbers."""
    gemm = near.sole_reader(flat, "Gemm")
    back = gemm and near.sole_reader(gemm, "Reshape")
    if gemm is None or back is None or back.outputs[0].shape != x.shape or not x.shape:
        return None
    if gemm.inputs[2:] != flat.outputs or gemm.attrs.get("transA") or gemm.attrs.get("transB"):
        return None
    (height, width), last = flat.outputs[0].ranked_shape, x.shape[-1]
    left, right = gemm.inputs[:2]
    factor, sizes = None, [1, -1]
    if left is not None and left.tensor is not None:  # one row
        factor = right if left.shape == (1, 1) and height == 1 else None
    elif right is not None and right.tensor is not None and isinstance(width, int):
        factor = left if isinstance(last, int) and last % width == 0 else None
        sizes = [-1, width]
    spread = near.sole_maker(gemm, factor, "Reshape")
    side = spread.inputs[0] if spread is not None else None
    if spread is None or side is None or side.tensor is not None or side.shape != x.shape:
        return None
    if spread.outputs[0].shape != flat.outputs[0].shape:
        return None
    steps = (Step(spread, sizes), Step(flat, sizes), Step(gemm), Step(back))
    return _include_maker(spread, side, near).extend(Region((), steps))


def _include_maker(reader: Node, value: Value, near: Neighbours) -> Region:
    """The dequantization of what ``reader`` reads alone; nothing for other values."""
    maker = near.sole_maker(reader, value, "DequantizeLinear")
    x = maker.inputs[0] if maker is not None else None
    if maker is None or x is None or x.tensor is not None or not _are_scalars(maker.inputs[1:]):
        return Region((value,), ())
    return Region((x,), (Step(maker),))


def _are_scalars(values: Sequence[Value | None]) -> bool:
    """Whether each value that is there is one constant number."""
    return all(v is None or (v.tensor is not None and v.tensor.size == 1) for v in values)


def is_row(constant: Value, x: Value) -> bool:
    """Whether a constant has one number, or one for each of the last axis of ``x``."""
    return constant.rank <= x.rank and prod(constant.static_shape[:-1]) == 1


def _choose_rows(shape: Shape) -> int:
    """How many rows a block has; 0 where blocks are of no use, or do not divide the rows."""
    *outer, channels = shape if isinstance(shape[0], int) else shape[1:]
    if not isinstance(channels, int) or not all(isinstance(size, int) for size in outer):
        return 0
    rows = prod(size for size in outer if isinstance(size, int))
    if rows * channels < (LEAST if isinstance(shape[0], int) else LEAST_OF_SAMPLE):
        return 0
    smallest, largest = -(-SMALLEST // channels), LARGEST // channels
    return next((n for n in range(largest, smallest - 1, -1) if rows % n == 0), 0)


def _loop_over_blocks(graph: Graph, region: Region, rows: int, names: Names) -> list[Node]:
    """The nodes that compute a region in blocks of ``rows``.

    Samples by name may be none, for which ONNX Runtime runs no ``Scan``: they have a ``Loop``,
    which takes some 5% more.
    """
    g = OnnxBuilder(graph.name, graph.opset)
    g.names = names
    block = [rows, region.result.ranked_shape[-1]]

    def compute(body: OnnxBuilder, *fed: Value) -> Value:
        values: dict[Value | None, Value] = dict(zip(region.fed, fed, strict=True))
        for node, sizes in region.steps:
            inputs = [v and values.get(v, v) for v in node.inputs]
            if node.op == "Reshape":
                inputs[1] = body.const(sizes or block)
            attrs = {k: v for k, v in node.attrs.items() if k != "axis"}
            values[node.outputs[0]] = body.emit(node.op, inputs, attrs)
        return values[region.result]

    def compute_of(body: OnnxBuilder, turn: Value, go: Value) -> tuple[Value, Value]:
        return go, compute(body, *(body.Gather(v, turn, axis=0) for v in blocks))

    sizes = region.result.ranked_shape
    sources = dict.fromkeys(source for step in region.steps for source in step.node.sources)
    with g.at(*sources):
        blocks = [g.Reshape(v, [-1, rows, v.ranked_shape[-1]]) for v in region.fed]
        if isinstance(sizes[0], int):
            (result,) = g.scan(lambda *operands: [compute(*operands)], [], blocks)
        else:
            count = g.Squeeze(g.size_of(blocks[0], 0), [0])
            (result,) = g.loop(compute_of, count, g.const(True, DType.BOOL))
        g.Reshape(result, [size if isinstance(size, int) else -1 for size in sizes])
    return [*g.nodes[:-1], replace(g.nodes[-1], outputs=(region.result,))]
