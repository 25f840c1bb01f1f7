"""Take a batch size that was baked into a model out of it.

Exporters write ``Reshape(x, [1, 12, 64])`` where the model means "the batch, 12, 64": the checker
is content and the model fails at any other batch. Here the batch is followed by name through the
graph; a constant shape is rewritten where the name must pass through it, and whatever else holds
the old size is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from serde.errors import ConversionError, Unconvertible, UsageError, require
from serde.ir.builder import Builder
from serde.ir.dim_expr import evaluate, shape_data_of, split_coefficient
from serde.ir.geometry import Ints
from serde.ir.graph import Dim, Graph, Node, Value, show_shape
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder

BATCH = "N"
ANOTHER = 31  # a batch no model is made with, and fewer samples than tables for them have
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
WRITING = frozenset({"ScatterElements", "ScatterND"})
MEASURING = frozenset({"Shape", "Size"})
# Operators whose results depend on all elements along their axis.
ALONG_AXIS = frozenset("CumProd CumSum Hardmax LogSoftmax LpNormalization Softmax TopK".split())
NAME = re.compile(r"[A-Za-z_]\w*")


def rebatch(graph: Graph, size: int | str = BATCH, axis: int = 0) -> Graph:
    """Return an IR graph whose inputs have ``size``, a number or a name, along ``axis``.

    Raises:
        UsageError: where the inputs do not share a batch. Unconvertible: for every node in which
            the old size stays behind.
    """
    old = batch_of(graph, axis)
    name = size if isinstance(size, str) else _unused_name(graph)
    if old == name:
        return graph
    table = RuleTable("batch", fallback=_Rebatching(old, name))
    inputs = tuple(replace_dim(v, axis, name) for v in graph.inputs)
    instead = dict(zip(graph.inputs, inputs, strict=True))
    from serde.ir.replace_uses import replace_values

    renewed = replace(replace_values(graph, instead), inputs=inputs)
    done = table.rewrite(renewed, OnnxBuilder(graph.name))
    for before, after in zip(graph.outputs, done.outputs, strict=True):
        _refuse_moved(before, after, axis, old, name)
    try:
        fix_dimensions(done, {name: ANOTHER})  # sizes by name are not compared with numbers
    except Unconvertible as error:
        raise Unconvertible("batch", error.problems) from None
    if isinstance(size, int):
        return fix_dimensions(done, {name: size})
    return done


def dimension_names(graph: Graph) -> set[str]:
    """The names of the dimensions of a graph's inputs."""
    return {d for v in graph.inputs for d in v.shape or () if isinstance(d, str)}


def size_names(graph: Graph) -> set[str]:
    """The names of the dimensions of a graph's inputs, and those in expressions among these."""
    dims = dimension_names(graph)
    return dims.union(*map(dim_names, dims))


def fix_dimensions(graph: Graph, sizes: Mapping[str, int], declared: Collection[str] = ()) -> Graph:
    """Return an IR graph in which the dimensions that ``sizes`` names have its sizes.

    So do those that are expressions of these names, such as ``past + 1``. ``declared`` are the
    names that inputs had which may have been left out since.
    """
    from serde.ir.replace_uses import replace_values

    known = size_names(graph)
    if unknown := sorted(set(sizes) - known - set(declared)):
        have = ", ".join(sorted(dimension_names(graph))) or "none"
        raise UsageError(f"no dimension is called {', '.join(unknown)}; the inputs have: {have}")
    unused = [n for n in sizes if n not in known]
    notes = (f"no input that is kept has the dimension {n}" for n in unused)
    instead = {}
    for v in graph.inputs:
        shape = v.shape and tuple(_fix(d, sizes) for d in v.shape)
        instead[v] = Value(v.name, v.dtype, shape, container=v.container)
    renewed = replace(
        replace_values(graph, instead),
        inputs=tuple(instead[v] for v in graph.inputs),
        notes=(*graph.notes, *notes),
    )
    return RuleTable("sizes", fallback=again).rewrite(renewed, OnnxBuilder(graph.name))


def _fix(dim: Dim, sizes: Mapping[str, int]) -> Dim:
    size = evaluate(dim, sizes) if isinstance(dim, str) else dim
    if isinstance(size, int) and size < 0:
        raise UsageError(f"the dimension {dim} would be {size}: give larger sizes")
    return size


def _refuse_moved(before: Value, after: Value, axis: int, old: Dim, name: str) -> None:
    """Refuse an output in which samples are not one behind another, as they were."""
    if before.shape is None or after.shape is None or len(after.shape) <= axis:
        return
    at = [i for i, d in enumerate(after.shape) if name in dim_names(d)]
    if at and at != [axis] and before.shape[axis] == old:
        raise UsageError(
            f"output {after.name!r} of shape {show_shape(after.shape)} does not keep samples apart "
            f"along axis {axis}: the batch {name} cannot be changed"
        )


def batch_of(graph: Graph, axis: int) -> Dim:
    """The batch all inputs of at least one axis share."""
    sizes = {v.shape[axis] for v in graph.inputs if v.shape is not None and len(v.shape) > axis}
    if len(sizes) != 1:
        shown = ", ".join(map(str, sizes)) or "none"
        raise UsageError(f"the inputs do not share a batch along axis {axis}: they have {shown}")
    return next(iter(sizes))


def replace_dim(value: Value, axis: int, dim: Dim) -> Value:
    """A value like ``value`` with ``dim`` along ``axis``."""
    shape = value.shape
    if shape is None or len(shape) <= axis:
        return value
    shape = (*shape[:axis], dim, *shape[axis + 1 :])
    return Value(value.name, value.dtype, shape, container=value.container)


def _unused_name(graph: Graph) -> str:
    taken = {d for v in graph.inputs for d in v.shape or ()}
    return next(n for i in range(len(taken) + 1) if (n := f"batch{i}") not in taken)


class _Rebatching:
    """Emits nodes anew, with the batch by name in the constant shapes it must pass through."""

    def __init__(self, old: Dim, name: str) -> None:
        self.old, self.name = old, name

    def __call__(self, g: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        if node.domain:
            return g.keep(node, inputs)
        x = inputs[0] if inputs else None
        if node.op == "Reshape" and x is not None and inputs[1] is not None:
            inputs = (x, self.reshape_constant(g, x, inputs[1], node.outputs[0]))
        elif node.op == "Expand" and x is not None and inputs[1] is not None:
            inputs = (x, self.expand_constant(g, x, inputs[1]))
        elif node.op == "Resize" and x is not None and len(inputs) > 3 and inputs[3] is not None:
            inputs = (*inputs[:3], self.resize_constant(g, x, inputs[3], node.attrs.get("axes")))
        self.refuse_samples(node, inputs)
        result = g.emit(node.op, inputs, node.attrs, len(node.outputs))
        results = result if isinstance(result, tuple) else (result,)
        for before, after in zip(node.outputs, results, strict=True):
            self.compare(before, after)
        self.refuse_lost(node, inputs, results)
        return results

    def has_batch(self, value: Value | None) -> bool:
        """Whether the batch is among the sizes of a value."""
        shape = None if value is None else value.shape
        return any(self.name in dim_names(d) for d in shape or ())

    def refuse_samples(self, node: Node, inputs: Sequence[Value | None]) -> None:
        """Refuse states of the old batch, and constants that say which sample to write to."""
        x = inputs[0] if inputs else None
        if x is None or not self.has_batch(x):
            return
        for state in inputs[5:7] if node.op in RECURRENT else ():
            held = state is not None and not self.has_batch(state)
            require(not held, f"its initial state is for a batch of {self.old}")
        if node.op in ALONG_AXIS:
            axis = self.axis_of(node, inputs)
            mixed = axis is not None and self.name in dim_names(x.ranked_shape[axis])
            require(not mixed, f"it mixes the samples of a batch of {self.old}")
        if node.op in WRITING and inputs[1] is not None and inputs[1].tensor is not None:
            raise ConversionError(f"it writes to fixed places in a batch of {self.old}")

    def axis_of(self, node: Node, inputs: Sequence[Value | None]) -> int | None:
        """The axis of an operator along one, where it is known."""
        if (axis := node.attrs.get("axis")) is not None:
            return int(str(axis))
        at = inputs[1] if node.op.startswith("Cum") else None
        return at.ints()[0] if at is not None and at.tensor is not None else None

    def refuse_lost(
        self, node: Node, inputs: Sequence[Value | None], results: Sequence[Value]
    ) -> None:
        """Refuse a node that takes one sample, or makes one of all."""
        if node.op in MEASURING or not any(map(self.has_batch, inputs)):
            return
        known = [v.shape for v in results if v.shape is not None and None not in v.shape]
        lost = len(known) == len(results) and not any(map(self.has_batch, results))
        require(not lost, f"the batch of {self.old} ends in it")

    def resize_constant(self, g: Builder, x: Value, sizes: Value, axes: Any) -> Value:
        """Constant sizes with the size of the batch as it is."""
        expected = shape_data_of(sizes)
        if sizes.tensor is None or expected is None or x.shape is None:
            return sizes
        at = range(len(x.shape)) if not axes else [a % len(x.shape) for a in axes]
        parts: list[Any] = [
            g.Shape(x, start=a, end=a + 1) if self.name in dim_names(x.shape[a]) else [int(d or 0)]
            for a, d in zip(at, expected, strict=True)
            if isinstance(d, int)
        ]
        return g.Concat(*parts, axis=0) if len(parts) == len(expected) else sizes  # type: ignore

    def reshape_constant(self, g: Builder, x: Value, shape: Value, before: Value) -> Value:
        """A constant shape with -1 where the batch comes through."""
        expected = shape_data_of(shape)
        if shape.tensor is None or expected is None or x.shape is None or -1 in expected:
            return shape
        at = [i for i, d in enumerate(x.shape) if self.name in dim_names(d)]
        if not at or not isinstance(self.old, int) or before.shape is None:
            return shape
        require(len(at) == 1, "the batch reaches a Reshape along two axes")
        here = output_batch_axis(self.sizes(x.shape), at[0], _require_ints(before.shape), self.old)
        return g.const(
            [-1 if i == here else d for i, d in enumerate(expected)], shape.dtype, "shape"
        )

    def sizes(self, shape: Sequence[Dim]) -> Ints:
        """A shape with the old batch put back for its name."""
        return tuple(_size(d, self.name, self.old) for d in shape)

    def expand_constant(self, g: Builder, x: Value, shape: Value) -> Value:
        expected = shape_data_of(shape)
        if shape.tensor is None or expected is None or x.shape is None:
            return shape
        lead = len(expected) - len(x.shape)
        plain = [
            1 if i >= lead and self.name in dim_names(x.shape[i - lead]) and d == self.old else d
            for i, d in enumerate(expected)
        ]
        return g.const(plain, shape.dtype, "shape")

    def compare(self, before: Value, after: Value) -> None:
        """Refuse a value that no longer has the shape it had, but for the batch."""
        if before.shape is None or after.shape is None or len(before.shape) != len(after.shape):
            return
        for was, now in zip(before.shape, after.shape, strict=True):
            if isinstance(was, int) and isinstance(now, int) and was != now:
                raise ConversionError(f"the batch of {self.old} is part of a size of {was}")


def dim_names(dim: Dim) -> set[str]:
    """The names in a dimension that may be an expression."""
    return set(NAME.findall(dim)) if isinstance(dim, str) else set()


def _size(dim: Dim, name: str, old: Dim) -> int:
    """The number a dimension was, with the batch at its old size."""
    if isinstance(dim, int):
        return dim
    if dim is not None and isinstance(old, int) and split_coefficient(dim)[0] == name:
        return old * split_coefficient(dim)[1]
    raise ConversionError(f"cannot follow the batch through a dimension of {dim}")


def _require_ints(shape: Sequence[Dim]) -> Ints:
    if not all(isinstance(d, int) for d in shape):
        raise ConversionError("cannot follow the batch past another dimension of unknown size")
    return tuple(shape)  # type: ignore[arg-type]


def output_batch_axis(sizes: Ints, axis: int, out: Ints, batch: int) -> int:
    """The axis of ``out`` in which the batch, along ``axis`` of ``sizes``, ends up.

    Elements keep their order, so it is the first axis that reaches past the elements of the axes
    before it. Where that axis holds more than the batch while another is just its size, the model
    relies on a batch of one to move axes, and cannot be distinguished from one that does not.
    """
    before, ahead = prod(sizes[:axis]), 1
    for at, size in enumerate(out):
        block = before // ahead * batch
        if ahead * size >= before * batch and before % ahead == 0 and size % block == 0:
            moved = size != batch and batch in out[at + 1 :] and batch in sizes
            require(not moved, f"a Reshape to {list(out)} may move the batch of {batch}")
            return at
        ahead *= size
        if ahead > before:
            break
    raise ConversionError(f"the batch of {batch} is mixed with other sizes in {list(out)}")
