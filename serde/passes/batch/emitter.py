"""Emit the nodes of a graph for another batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Node, Shape, Source, Tensor, Value
from serde.passes.batch.analysis import Analysis
from serde.passes.batch.places import ONE, Place, Size
from serde.passes.batch.state import split_samples

END = (1 << 63) - 1  # of a slice that goes to the last element
Elements = list[int | Value]  # of a shape: numbers, and vectors of one element


class Emitter:
    """Nodes for another batch, and what stands for the values of the graph of an analysis."""

    def __init__(self, analysis: Analysis, batch: int | str) -> None:
        self.analysis, self.state, self.batch = analysis, analysis.state, batch
        self.values: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        self.sources: tuple[Source, ...] = ()
        self.expanded: dict[tuple[Value, Place], Value] = {}
        self.batch_size: Value | None = None  # a vector of one element
        self.names = {v.name for v in analysis.graph.all_values()}
        self.count = 0

    def declare(self, value: Value) -> Value:
        """What stands for a value that a node computes, or an input."""
        place, shape = self.state.places.get(value), value.shape
        data = value.shape_data
        if place is not None:
            data = None
            if shape is not None and place.axis < len(shape):
                size = place.size(self.batch).dim
                shape = (*shape[: place.axis], size, *shape[place.axis + 1 :])
        new = Value(value.name, value.dtype, shape, None, data, value.container)
        self.values[value] = new
        return new

    def read(self, value: Value | None) -> Any:
        """What stands for a value; constants stand for themselves."""
        return None if value is None else self.values.get(value, value)

    def emit(self, op: str, *inputs: Value | None, **attrs: Any) -> Value:
        """The result of a node of its own."""
        result = Value(self.fresh_name())
        source = self.sources[0].name if self.sources else result.name
        self.nodes.append(Node(op, inputs, (result,), attrs, "", source, self.sources))
        return result

    def fresh_name(self) -> str:
        """A name that no value has."""
        while (name := f"batch_{self.count}") in self.names:
            self.count += 1
        self.names.add(name)
        return name

    def const(self, numbers: Sequence[int]) -> Value:
        """A vector of constants."""
        array = np.asarray(numbers, np.int64)
        return Value(self.fresh_name(), Tensor.of(array).dtype, array.shape, Tensor.of(array))

    def scalar(self, number: int) -> Value:
        """A constant without axes."""
        array = np.asarray(number, np.int64)
        return Value(self.fresh_name(), Tensor.of(array).dtype, (), Tensor.of(array))

    def read_batch(self) -> Value:
        """The batch as a vector of one element, computed once at the beginning."""
        if self.batch_size is None:
            self.batch_size = Value(self.fresh_name())
            x, axis = next(iter(self.analysis.axes.items()))
            attrs = {"start": axis, "end": axis + 1}
            read = (self.values[x],)
            self.batch_node = Node("Shape", read, (self.batch_size,), attrs, "", "batch")
        return self.batch_size

    def times(self, factor: int) -> int | Value:
        """The batch times a number."""
        if isinstance(self.batch, int):
            return self.batch * factor
        size = self.read_batch()
        return size if factor == 1 else self.emit("Mul", size, self.const([factor]))

    def length(self, vector: Value | None) -> int:
        """The number of elements of a shape."""
        assert vector is not None
        return vector.static_shape[0]

    def slice_vector(self, vector: Value, start: int, end: int) -> Value:
        """Some elements of a vector."""
        return self.emit("Slice", vector, self.const([start]), self.const([end]))

    def set_element(self, old: Value | None, new: Value | None, at: int, element: Any) -> Value:
        """A vector with another element; ``old`` is what ``new`` was."""
        assert old is not None and new is not None
        if old.tensor is not None:
            numbers: Elements = list(old.ints())
            numbers[at] = element
            return self.join(numbers)
        rest = self.slice_vector(new, 0, at), self.slice_vector(new, at + 1, END)
        replacement = self.const([element]) if isinstance(element, int) else element
        return self.emit("Concat", rest[0], replacement, rest[1], axis=0)

    def join(self, elements: Elements) -> Value:
        """A vector of numbers and of vectors."""
        if all(isinstance(e, int) for e in elements):
            return self.const(elements)  # type: ignore[arg-type]
        parts: list[Value] = []
        numbers: list[int] = []
        for element in [*elements, None]:
            if isinstance(element, int):
                numbers.append(element)
                continue
            parts += [self.const(numbers)] if numbers else []
            numbers = []
            parts += [] if element is None else [element]
        return self.emit("Concat", *parts, axis=0)

    def expand(self, value: Value, place: Place) -> Value:
        """A value that is one for all samples, as many as there are."""
        key = value, place
        if key not in self.expanded:
            self.expanded[key] = self._expand_anew(value, place)
        return self.expanded[key]

    def _expand_anew(self, value: Value, place: Place) -> Value:
        shape, axis, x = value.ranked_shape, place.axis, self.read(value)
        if self.analysis.batch != 1 and shape[axis] != 1:
            x, shape = self._take_sample(value, place)
        ones = [1] * (len(shape) - axis - 1)
        if shape[axis] == 1:
            size = self.size_along(place, None)
            return self.emit("Expand", x, self.join([*[1] * axis, size, *ones]))
        if place.outer == ONE:
            return self.emit("Tile", x, self.join([*[1] * axis, self.times(1), *ones]))
        before, behind = self.sizes(x, shape, 0, axis), self.sizes(x, shape, axis + 1, len(shape))
        inner = place.inner.number  # beside an outer size, a number
        apart = self.emit("Reshape", x, self.join([*before, -1, 1, inner, *behind]))
        many = self.join([*[1] * (axis + 1), self.times(1), 1, *ones])
        expanded = self.emit("Expand", apart, many)
        return self.emit("Reshape", expanded, self.join([*before, -1, *behind]))

    def sizes(self, x: Value, shape: Shape, start: int, end: int) -> Elements:
        """Sizes of a value that stay."""
        return [
            d if isinstance(d, int) else self.emit("Shape", x, start=i, end=i + 1)
            for i, d in list(enumerate(shape))[start:end]
        ]

    def _take_sample(self, value: Value, place: Place) -> tuple[Value, Shape]:
        """One of the equal samples of a value."""
        shape, axis = value.ranked_shape, place.axis
        if axis in self.state.uniform.get(value, ()):
            bounds = (self.const([n]) for n in (0, 1, axis))
            sample = self.emit("Slice", self.read(value), *bounds)
            return sample, (*shape[:axis], 1, *shape[axis + 1 :])
        array = value.array()
        one = split_samples(array, place, self.analysis.batch)[:, :1]
        size = place.outer.number * place.inner.number
        one = one.reshape(*array.shape[:axis], size, *array.shape[axis + 1 :])
        return Value(self.fresh_name(), value.dtype, one.shape, Tensor.of(one)), one.shape

    def size_of(self, size: Size | None) -> int:
        """A size that is a number."""
        require(size is not None and not size.names, "needs a size as a number. Give it (--static)")
        return size.number  # type: ignore[union-attr]

    def size_along(self, place: Place, source: Value | None) -> int | Value:
        """The size of an axis at the batch; ``source`` is a shape that has it at the old one."""
        factor = place.outer * place.inner
        if not factor.names:
            return self.times(factor.number)
        stated = shape_data_of(source)
        require(source is not None and stated is not None and stated[place.axis] not in (0, -1),
                f"needs the size {factor.dim} as a number. Give it (--static)")  # fmt: skip
        assert source is not None
        old = self.slice_vector(self.read(source), place.axis, place.axis + 1)
        if self.analysis.batch != 1:
            old = self.emit("Div", old, self.const([self.analysis.batch]))
        return self.emit("Mul", old, self.read_batch())
