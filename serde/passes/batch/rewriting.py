"""Write a graph for another batch, where the analysis has found the places of the old one.

Nodes are copied; constant shapes that hold the old batch are written anew, and operands that are
one for all samples are expanded where an operator does not broadcast them. Shapes that nodes
compute with stay those of the old batch: what is computed of them is one for all samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import ConversionError, Unconvertible, require
from serde.ir.builder import Builder
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import may_be_same, move_axis_perm
from serde.ir.graph import Graph, Node, Shape, Source, Tensor, Value, show_shape
from serde.passes.batch.analysis import Analysis, describe_problem
from serde.passes.batch.nodes import RESHAPES, natural_place
from serde.passes.batch.places import ONE, Place, Size, read_size
from serde.passes.batch.state import split_samples
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder

END = (1 << 63) - 1  # of a slice that goes to the last element
Elements = list[int | Value]  # of a shape: numbers, and vectors of one element


def write_batch(analysis: Analysis, batch: int | str) -> Graph:
    """The graph of an analysis for another batch, a number or a name; types are to be inferred."""
    return _Rewriting(analysis, batch).run()


def infer_again(graph: Graph) -> Graph:
    """Infer the types of a graph, and fold what is known; sizes have to be those it says."""
    return RuleTable("batch", fallback=_emit_compared).rewrite(graph, OnnxBuilder(graph.name))


def _emit_compared(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """Emit a node anew, and compare the sizes of its outputs."""
    results = again(builder, node, inputs)
    pairs = zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True)
    for old, new in pairs:
        if old.shape is not None and new.shape is not None:
            shapes = f"{show_shape(new.shape)} in place of {show_shape(old.shape)}"
            require(_may_be_same(old.shape, new.shape), f"has the shape {shapes}")
    return results


def _may_be_same(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and all(may_be_same(x, y) for x, y in zip(a, b, strict=True))


class _Rewriting:
    def __init__(self, analysis: Analysis, batch: int | str) -> None:
        self.analysis, self.state, self.batch = analysis, analysis.state, batch
        self.values: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        self.sources: tuple[Source, ...] = ()
        self.expanded: dict[tuple[Value, Place], Value] = {}
        self.batch_size: Value | None = None  # a vector of one element
        self.names = {v.name for v in analysis.graph.all_values()}
        self.count = 0

    def run(self) -> Graph:
        graph = self.analysis.graph
        inputs = tuple([self.declare(v) for v in graph.inputs])
        nodes, outputs = self.copy_nodes(graph)
        front = [] if self.batch_size is None else [self.batch_node]
        return replace(graph, inputs=inputs, nodes=(*front, *nodes), outputs=outputs)

    def copy_nodes(self, graph: Graph) -> tuple[tuple[Node, ...], tuple[Value, ...]]:
        """The nodes of a graph or a subgraph, and its outputs."""
        around = self.nodes, self.expanded
        self.nodes, self.expanded = [], {}
        for node in graph.nodes:
            try:
                self.copy_node(node)
            except ConversionError as error:
                raise Unconvertible("batch", [describe_problem(node, error)]) from None
        expansions = self.state.results.get(id(graph), {})
        outputs = [
            self.expand(v, expansions[i]) if i in expansions else self.read(v)
            for i, v in enumerate(graph.outputs)
        ]
        nodes = tuple(self.nodes)
        self.nodes, self.expanded = around
        return nodes, tuple(outputs)

    def copy_body(self, body: Graph) -> Graph:
        inputs = tuple([self.declare(v) for v in body.inputs])
        nodes, outputs = self.copy_nodes(body)
        return replace(body, inputs=inputs, nodes=nodes, outputs=outputs)

    def copy_node(self, node: Node) -> None:
        """A node that reads what stands for its operands, or those that stand for it."""
        self.sources = node.sources or (Source("batch", node.op, node.name),)
        expansions = self.state.expansions.get(node.outputs[0], {}) if node.outputs else {}
        inputs = [
            self.expand(v, expansions[i]) if v is not None and i in expansions else self.read(v)
            for i, v in enumerate(node.inputs)
        ]
        op, attrs = node.op, node.attrs
        if node.graphs():
            attrs = {k: self.copy_body(v) if isinstance(v, Graph) else v for k, v in attrs.items()}
        x = node.inputs[0] if node.inputs else None
        place = None if x is None else self.state.places.get(x)
        if place is not None and node.domain == "":
            op, inputs, attrs = self.write_sizes(node, place, inputs, attrs)
        outputs = tuple([self.declare(v) for v in node.outputs])
        self.nodes.append(
            Node(op, tuple(inputs), outputs, attrs, node.domain, node.name, node.sources)
        )

    def write_sizes(
        self, node: Node, place: Place, inputs: list[Value | None], attrs: Any
    ) -> tuple[str, list[Value | None], Any]:
        """An operator with its sizes at the batch, where its first operand has that."""
        if node.op in RESHAPES:
            return self.write_reshape(node, place, inputs, attrs)
        if node.op in ("Shape", "Size"):
            return self.write_measure(node, place, inputs, attrs)
        if node.op == "Expand":
            lead = node.outputs[0].rank - node.inputs[0].rank  # type: ignore[union-attr]
            at = place.axis + lead - (node.outputs[0].rank - self.length(node.inputs[1]))
            inputs[1] = self.set_element(node.inputs[1], inputs[1], at, 1)
        elif node.op == "Slice":
            self.write_slice(node, place, inputs)
        elif node.op == "Resize" and len(inputs) > 3 and inputs[3] is not None:
            if not attrs.get("axes"):
                size = self.emit("Shape", inputs[0], start=place.axis, end=place.axis + 1)
                inputs[3] = self.set_element(node.inputs[3], inputs[3], place.axis, size)
        elif node.op == "AffineGrid":
            size = self.emit("Shape", inputs[0], start=0, end=1)
            inputs[1] = self.set_element(node.inputs[1], inputs[1], 0, size)
        return node.op, inputs, attrs

    def write_reshape(
        self, node: Node, place: Place, inputs: list[Value | None], attrs: Any
    ) -> tuple[str, list[Value | None], Any]:
        out = node.outputs[0]
        new = self.state.places.get(out)
        assert new is not None
        is_flat = node.op == "Flatten" and new.axis == int(place.axis >= attrs.get("axis", 1))
        if is_flat or natural_place(node, place) == new:
            return node.op, inputs, attrs
        if out in self.state.moved:
            return self.write_moved(node, place, new, inputs)
        shape = self.new_shape(node, place, new, inputs)
        return "Reshape", [inputs[0], shape], {}

    def write_moved(
        self, node: Node, place: Place, new: Place, inputs: list[Value | None]
    ) -> tuple[str, list[Value | None], Any]:
        """A Reshape of each sample: the batch is the first axis before and behind it."""
        x, rank = inputs[0], node.outputs[0].rank
        assert x is not None and node.inputs[0] is not None
        shape = node.inputs[0].ranked_shape
        if not place.is_alone:
            inner: Elements = [] if place.inner == ONE else [self.size_of(place.inner)]
            before = self.sizes(x, shape, 0, place.axis)
            behind = self.sizes(x, shape, place.axis + 1, len(shape))
            outer = [self.size_of(place.outer)]
            x = self.emit("Reshape", x, self.join([*before, *outer, -1, *inner, *behind]))
            place = Place(place.axis + 1)
            shape = (*shape[: place.axis], 1, *(1 for _ in inner), *shape[place.axis :])
        first = move_axis_perm(len(shape), place.axis, 0)
        x = self.emit("Transpose", x, perm=first)
        kept = [self.size_of(read_size(d)) for i, d in enumerate(node.outputs[0].ranked_shape)
                if i != new.axis]  # fmt: skip
        x = self.emit("Reshape", x, self.join([-1, *kept]))
        return "Transpose", [x], {"perm": move_axis_perm(rank, 0, new.axis)}

    def size_of(self, size: Size | None) -> int:
        """A size that is a number."""
        require(size is not None and not size.names, "needs a size as a number. Give it (--static)")
        return size.number  # type: ignore[union-attr]

    def new_shape(
        self, node: Node, place: Place, new: Place, inputs: Sequence[Value | None]
    ) -> Value:
        """The operand of a Reshape: numbers, -1 for one size, and sizes computed elsewhere."""
        out = node.outputs[0]
        shape, source = out.ranked_shape, node.inputs[1] if node.op == "Reshape" else None
        stated = shape_data_of(source) if source is not None else None
        elements: Elements = []
        is_free = True  # whether -1 may stand for the batch
        for at, dim in enumerate(shape):
            if at == new.axis:
                elements.append(-1)
            elif isinstance(dim, int):
                elements.append(dim)
            elif stated is not None and stated[at] == 0 and at != place.axis:
                elements.append(0)
            elif is_free and stated is not None and stated[at] in (0, -1):
                elements.append(-1)
                is_free = False
            elif source is not None and stated is not None and stated[at] != 0:
                elements.append(self.slice_vector(self.read(source), at, at + 1))
            else:
                elements.append(self.find_size(node, place, inputs[0], at))
        if not is_free:
            is_same = stated is not None and stated[new.axis] == 0 and new == place
            elements[new.axis] = 0 if is_same else self.size_along(new, source)
        return self.join(elements)

    def find_size(self, node: Node, place: Place, x: Value | None, at: int) -> Value:
        """A size by name of the result of a Reshape: an operand has it along another axis too."""
        dim, before = node.outputs[0].ranked_shape[at], node.inputs[0].ranked_shape  # type: ignore
        known = [i for i, d in enumerate(before) if d is not None and d == dim and i != place.axis]
        require(known, f"needs the size {dim} of {show_shape(node.outputs[0].shape)} as a number. "
                       "Give it (--input, --static)")  # fmt: skip
        return self.emit("Shape", x, start=known[0], end=known[0] + 1)

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

    def write_measure(
        self, node: Node, place: Place, inputs: list[Value | None], attrs: Any
    ) -> tuple[str, list[Value | None], Any]:
        """The sizes at the old batch: what is computed of them is one for all samples."""
        x = node.inputs[0]
        assert x is not None
        rank = x.rank
        start, end, _ = slice(attrs.get("start", 0), attrs.get("end")).indices(rank)
        if node.op == "Shape" and not start <= place.axis < end:
            return node.op, inputs, attrs
        factor = place.size(self.analysis.batch)
        old: int | Value = factor.number
        if factor.names:
            size = self.emit("Shape", inputs[0], start=place.axis, end=place.axis + 1)
            old = self.emit("Mul", self.emit("Div", size, self.read_batch()),
                            self.const([self.analysis.batch]))  # fmt: skip
        span = range(start, end) if node.op == "Shape" else range(rank)
        elements: Elements = [
            old if i == place.axis else self.emit("Shape", inputs[0], start=i, end=i + 1)
            for i in span
        ]
        vector = self.join(elements)
        if node.op == "Shape":
            return "Identity", [vector], {}
        return "ReduceProd", [vector], {"keepdims": 0}

    def write_slice(self, node: Node, place: Place, inputs: list[Value | None]) -> None:
        """A slice with all elements of the axis of the batch, whatever its size."""
        rank = node.inputs[0].rank  # type: ignore[union-attr]
        axes = node.inputs[3].ints() if len(inputs) > 3 and node.inputs[3] is not None else None
        named = range(self.length(node.inputs[1])) if axes is None else [a % rank for a in axes]
        if place.axis in named:
            at = list(named).index(place.axis)
            inputs[1] = self.set_element(node.inputs[1], inputs[1], at, 0)
            inputs[2] = self.set_element(node.inputs[2], inputs[2], at, END)

    # Values

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
        while (name := f"batch_{self.count}") in self.names:
            self.count += 1
        self.names.add(name)
        return name

    def const(self, numbers: Sequence[int]) -> Value:
        """A vector of constants."""
        array = np.asarray(numbers, np.int64)
        return Value(self.fresh_name(), Tensor.of(array).dtype, array.shape, Tensor.of(array))

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
        return self.emit("Slice", vector, self.const([start]), self.const([end]))

    def set_element(self, old: Value | None, new: Value | None, at: int, element: Any) -> Value:
        """A vector with another element; ``old`` is what ``new`` was."""
        assert old is not None and new is not None
        if old.tensor is not None:
            numbers: Elements = list(old.ints())
            numbers[at] = element
            return self.join(numbers)
        rest = self.slice_vector(new, 0, at), self.slice_vector(new, at + 1, END)
        own = self.const([element]) if isinstance(element, int) else element
        return self.emit("Concat", rest[0], own, rest[1], axis=0)

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
            self.expanded[key] = self.expand_anew(value, place)
        return self.expanded[key]

    def expand_anew(self, value: Value, place: Place) -> Value:
        shape, axis, x = value.ranked_shape, place.axis, self.read(value)
        if self.analysis.batch != 1 and shape[axis] != 1:  # a constant of equal samples
            x, shape = self.take_sample(value, place)
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

    def take_sample(self, value: Value, place: Place) -> tuple[Value, Shape]:
        """One of the equal samples of a constant."""
        array = value.array()
        sample = split_samples(array, place, self.analysis.batch)[:, :1]
        size = place.outer.number * place.inner.number
        sample = sample.reshape(*array.shape[: place.axis], size, *array.shape[place.axis + 1 :])
        constant = Value(self.fresh_name(), value.dtype, sample.shape, Tensor.of(sample))
        return constant, sample.shape
