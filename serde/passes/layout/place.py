"""Layouts of values for targets whose images have channels last.

The operators of images stay as they are: what reads a Transpose to channels first, and is read by
one to channels last, is one operator of such a target. Operators between them compute in the layout
of their operands, with their axes renamed. Each value has both forms at most, each made once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from serde.errors import ConversionError
from serde.ir.builder import Builder
from serde.ir.geometry import axes_of
from serde.ir.graph import Dim, Graph, Node, Shape, Value
from serde.passes.dce import drop_dead
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.sample_axes import find_sample_axes
from serde.spec.traits import (
    AXES_OPERANDS,
    AXIS,
    BROADCASTS,
    ELEMENTWISE,
    NAMES_FIRST_AXIS,
    QUANTIZES,
    REDUCES,
    RESHAPES,
)

RENAMES = (AXIS | BROADCASTS | ELEMENTWISE | REDUCES | {"Identity", "PRelu", "Pad", "Slice"}) - (
    NAMES_FIRST_AXIS
)
Order = tuple[int, ...]


def to_last(rank: int) -> Order:
    """The axes of a tensor with channels first, in the order that has them last."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> Order:
    """The axes of a tensor with channels last, in the order that has them first."""
    return (0, rank - 1, *range(1, rank - 1))


def place(graph: Graph, images: Collection[str]) -> Graph:
    """Return an IR graph with what is between operators of ``images`` in channels last."""
    placing = Placing(frozenset(images), to_last, to_first, channel=1)
    if placing.images.isdisjoint(graph.operators()):
        return graph
    return placing.rewrite(graph)


class Placing:
    """Puts what is between operators of ``images`` into another layout.

    ``order`` has the axes of a tensor of a rank in that layout, ``inverse`` back; ``channel`` is
    the axis of channels in the layout that the graph has.
    """

    def __init__(
        self, images: frozenset[str], order: Callable[[int], Order],
        inverse: Callable[[int], Order], channel: int,
    ) -> None:  # fmt: skip
        self.images, self.order, self.inverse, self.channel = images, order, inverse, channel
        self.forms: dict[Value, Value] = {}  # in the layout, by the one that the graph has
        self.builder: Builder | None = None  # of the model; subgraphs are left as they are
        self.wanted: set[Value] = set()  # values of the graph whose form is of use

    def rewrite(self, graph: Graph) -> Graph:
        """The graph in the layout."""
        self.wanted = self.find_wanted(graph)
        table = RuleTable("layout", fallback=self.node)
        return drop_dead(table.rewrite(graph, OnnxBuilder(graph.name)))

    def node(self, g: Any, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        """What stands for the results of a node."""
        self.builder = self.builder or g
        if g is not self.builder or node.domain:
            return again(g, node, inputs)
        if node.op in self.images:
            return self.keep_image(g, node, inputs)
        if (form := self.rearrange(g, node, inputs)) is not None:
            return self.first(g, form, form.rank, ())
        if node.op == "Transpose" and node.outputs[0] in self.wanted:
            perm: Any = node.attrs["perm"]
            return self.keep_order(again(g, node, inputs), inputs[0], perm)
        if node.op in RENAMES and self.is_last(node, inputs) and self.is_shorter(node, inputs):
            renamed = self.rename(g, node, inputs)
            if renamed is not None:
                return renamed
        return again(g, node, inputs)

    def is_last(self, node: Node, inputs: Sequence[Value | None]) -> bool:
        """Whether an operand is there in the layout, and all shapes are known."""
        ranks = {len(v.shape or ()) for v in inputs if v in self.forms}
        return len(ranks) == 1 and all(v.shape is not None for v in (*inputs, *node.outputs) if v)

    def find_wanted(self, graph: Graph) -> set[Value]:
        """What operators of images and Transposes to the layout read, by way of others."""
        wanted: set[Value] = set()
        for node in reversed(graph.nodes):
            x = node.inputs[0] if node.inputs else None
            perm: Any = node.attrs.get("perm", ())
            is_end = len(perm) > 2 and tuple(perm) == self.order(len(perm))
            if x is not None and (is_end or node.op in self.images):
                wanted.add(x)
            elif node.op in RENAMES | RESHAPES and not wanted.isdisjoint(node.outputs):
                wanted.update(v for v in node.inputs if v is not None)
        return wanted

    def is_shorter(self, node: Node, inputs: Sequence[Value | None]) -> bool:
        """Whether no more Transposes are needed in the layout than out of it."""
        images = [v for v in inputs if v is not None and v.tensor is None and _is_image(v)]
        there = sum(v in self.forms for v in images)
        is_wanted = not self.wanted.isdisjoint(node.outputs)
        return is_wanted or there == len(images) or len(images) - there < there

    def keep_image(self, g: Any, node: Node, inputs: Sequence[Value | None]) -> Any:
        """The operator as it is; its operand and its results are there with channels last."""
        if inputs[0] is not None and inputs[0].shape is not None:
            self.last(g, inputs[0])
        results = again(g, node, tuple(inputs))
        for result in results if isinstance(results, tuple) else (results,):
            if result.shape is not None and len(result.shape) > 2:
                self.last(g, result)
        return results

    def keep_order(self, result: Value, x: Value | None, perm: Sequence[int]) -> Value:
        """A Transpose to channels first, whose operand is its result in the layout.

        Where the operand is there in the layout too, of three axes, it is the result that is free.
        """
        is_first = len(perm) > 2 and tuple(perm) == self.inverse(len(perm))
        if x is not None and is_first and x not in self.forms:
            self.forms.setdefault(result, x)
        return result

    def rearrange(self, g: Any, node: Node, inputs: Sequence[Value | None]) -> Value | None:
        """An image of other rows and columns, in the layout; None where other axes change."""
        x = inputs[0] if inputs else None
        shape = node.outputs[0].shape if node.outputs else None
        if x is None or x not in self.forms or shape is None:
            return None
        form, order = self.forms[x], self.order(len(shape))
        if node.op == "Transpose":
            perm: Any = node.attrs["perm"]
            if any(perm[axis] != axis for axis in (0, self.channel)):
                return None
            return g.Transpose(form, perm=[order.index(perm[axis]) for axis in order])  # type: ignore[no-any-return]
        if node.op == "Expand" and len(shape) == x.rank:
            sizes = [1 if shape[a] == x.ranked_shape[a] else shape[a] for a in order]
            return g.Expand(form, sizes) if _are_numbers(sizes) else None  # type: ignore[no-any-return]
        return self.reshape(g, form, x, shape) if node.op in RESHAPES else None

    def reshape(self, g: Any, form: Value, x: Value, shape: Shape) -> Value | None:
        """The same of other sizes, but for those of samples and channels."""
        if min(len(shape), x.rank) < 3:
            return None
        sizes = [shape[axis] for axis in self.order(len(shape))[1:]]
        is_kept = all(shape[axis] == x.ranked_shape[axis] for axis in (0, self.channel))
        return g.Reshape(form, [0, *sizes]) if is_kept and _are_numbers(sizes) else None  # type: ignore[no-any-return]

    def last(self, g: Any, value: Value, rank: int | None = None) -> Value:
        """A value with channels last, of a rank that it is repeated to."""
        if value in self.forms and value.rank == (rank or value.rank):
            return self.forms[value]
        ranked = value
        if rank is not None and value.rank < rank:
            ranked = g.Unsqueeze(value, list(range(rank - value.rank)))
        self.forms[ranked] = form = g.Transpose(ranked, perm=self.order(ranked.rank))
        return form  # type: ignore[no-any-return]

    def rename(self, g: Any, node: Node, inputs: Sequence[Value | None]) -> Any:
        """The operator on operands with channels last; None where it may mix their axes."""
        rank = max(len(v.shape or ()) for v in inputs if v in self.forms)
        named = _named_axes(node, rank)
        if named is None or not _computes_by_index(node, rank, named):
            return None
        moved = [at for at in range(len(inputs)) if (at == 0 and named) or _moves(node, at, named)]
        operands = [
            self.last(g, v, rank) if v is not None and at in moved and v.rank > 0 else v
            for at, v in enumerate(inputs)
        ]
        places = [self.order(rank).index(axis) for axis in named]
        attrs = dict(node.attrs)
        if node.op in AXES_OPERANDS:
            at = AXES_OPERANDS[node.op]
            operands += [None] * (at + 1 - len(operands))
            operands[at] = g.const(_as_indices(places))
        elif node.op in AXIS and places:
            attrs["axis"] = places[0]
        emitted = g.emit(node.op, operands, attrs, len(node.outputs))
        results = emitted if isinstance(emitted, tuple) else (emitted,)
        gone = named if _drops_axes(node) else ()
        return tuple([self.first(g, v, rank, gone) for v in results])

    def first(self, g: Any, value: Value, rank: int, gone: Collection[int]) -> Value:
        """A result with channels first; ``gone`` are the axes, so counted, that it lacks."""
        left = [axis for axis in self.order(rank) if axis not in gone]
        if not left:
            return value
        perm = [left.index(axis) for axis in sorted(left)]
        return self.keep_order(g.Transpose(value, perm=perm), value, perm)


def _are_numbers(sizes: Sequence[Dim]) -> bool:
    """Whether all sizes are known, and none is 0, which a Reshape reads otherwise."""
    return all(isinstance(size, int) and size for size in sizes)


def _is_image(value: Value) -> bool:
    """Whether a Transpose of its channels moves elements."""
    return sum(size != 1 for size in value.ranked_shape[1:]) > 1


def _as_indices(axes: Sequence[int]) -> Any:
    return np.asarray(axes, np.int64)


def _named_axes(node: Node, rank: int) -> tuple[int, ...] | None:
    """The axes that attributes or operands name, counted from the front; None if not known."""
    if node.op in AXES_OPERANDS:
        at = AXES_OPERANDS[node.op]
        operand = node.inputs[at] if at < len(node.inputs) else None
        if operand is not None:
            return None if operand.tensor is None else axes_of(operand.ints(), rank)
        if node.op in REDUCES and node.attrs.get("noop_with_empty_axes"):
            return None
        if node.op == "Slice":
            starts = node.inputs[1]
            length = starts.shape[0] if starts is not None and starts.shape else None
            return tuple(range(length)) if isinstance(length, int) else None
        return tuple(range(rank))
    if node.op in AXIS and not (node.op in QUANTIZES and _has_one_scale(node)):
        axis = node.attrs.get("axis")
        return axes_of([axis], rank) if isinstance(axis, int) else None
    return ()


def _has_one_scale(node: Node) -> bool:
    scale = node.inputs[1]
    return scale is not None and scale.shape in ((), (1,))


def _drops_axes(node: Node) -> bool:
    return node.attrs.get("keepdims", 1) == 0


def _computes_by_index(node: Node, rank: int, named: Collection[int]) -> bool:
    """Whether all axes but the named ones are there in all results, each index by itself."""
    try:
        axes = list(find_sample_axes(node))
    except ConversionError:
        return False
    kept = [a for a in range(rank) if a not in named]
    axes_left = len(kept) if _drops_axes(node) else rank
    if any(len(v.shape or ()) != axes_left for v in node.outputs):
        return False
    at = {a: n for n, a in enumerate(kept)} if _drops_axes(node) else {a: a for a in kept}
    by_index = set()
    for axis in axes:
        operands = list(_align_axes(node, axis.inputs, rank))
        if operands and all(a == operands[0] for a in operands):
            a = operands[0]
            if a in at and all(o == at[a] for o in axis.outputs):
                by_index.add(a)
    return by_index == set(kept)


def _align_axes(node: Node, axes: Sequence[int | None], rank: int) -> Iterator[int]:
    """The axes of operands, counted as in the one of most axes."""
    for axis, value in zip(axes, node.inputs, strict=False):
        if axis is not None and axis >= 0 and value is not None and value.shape is not None:
            yield axis + rank - len(value.shape)


def _moves(node: Node, at: int, named: Collection[int]) -> bool:
    """Whether an operand has axes of the result, other than those that the operator names."""
    axes = (a for a in find_sample_axes(node) if not set(a.outputs) <= {*named})
    return any(a.inputs[at] is not None and a.inputs[at] != -1 for a in axes)
