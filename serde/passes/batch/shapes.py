"""Shapes and bounds of operators that hold the batch, written for another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import move_axis_perm
from serde.ir.graph import DType, Node, Shape, Tensor, Value, show_shape
from serde.passes.batch.blocks import find_bounds
from serde.passes.batch.emitter import END, Elements, Emitter
from serde.passes.batch.nodes import BY_PLACE, find_coordinate, find_row, natural_place
from serde.passes.batch.places import ONE, Place, read_size
from serde.spec.sample_axes.table import attribute_axis
from serde.spec.schema import ELEMENT_CODES
from serde.spec.traits import RESHAPES

Written = tuple[str, list[Value | None], Any]  # an operator, its operands and attributes


def write_sizes(
    g: Emitter, node: Node, place: Place, inputs: list[Value | None], attrs: Any
) -> Written:
    """An operator with its sizes at the batch, where its first operand has that."""
    if node.op in RESHAPES:
        return _write_reshape(g, node, place, inputs, attrs)
    if node.op in ("Shape", "Size"):
        return _write_measure(g, node, place, inputs, attrs)
    if node.op == "Expand":
        at = place.axis + g.length(node.inputs[1]) - node.inputs[0].rank  # type: ignore[union-attr]
        if at >= 0:
            inputs[1] = g.set_element(node.inputs[1], inputs[1], at, 1)
    elif node.op in BY_PLACE and (along := find_coordinate(g.state, node)) is not None:
        inputs[1] = _write_coordinate(g, node, inputs[1], place, along)
    elif (along := find_row(g.state, node)) is not None:
        inputs[1] = _write_rows(g, inputs[1], node.inputs[1].ranked_shape, place, along)  # type: ignore[union-attr]
    elif node.op == "Slice":
        _write_slice(g, node, place, inputs)
    elif node.op == "Split" and attribute_axis(node, 0) == place.axis:
        counts = [g.state.places[v].outer.number for v in node.outputs]
        return "Split", [inputs[0], g.join([g.times(n) for n in counts])], {"axis": place.axis}
    elif node.op == "Resize" and len(inputs) > 3 and inputs[3] is not None:
        if not attrs.get("axes"):
            size = g.emit("Shape", inputs[0], start=place.axis, end=place.axis + 1)
            inputs[3] = g.set_element(node.inputs[3], inputs[3], place.axis, size)
    elif node.op == "AffineGrid":
        size = g.emit("Shape", inputs[0], start=0, end=1)
        inputs[1] = g.set_element(node.inputs[1], inputs[1], 0, size)
    return node.op, inputs, attrs


def _write_reshape(
    g: Emitter, node: Node, place: Place, inputs: list[Value | None], attrs: Any
) -> Written:
    out = node.outputs[0]
    new = g.state.places.get(out)
    assert new is not None
    if out in g.state.moved:
        return _write_moved(g, node, place, new, inputs)
    is_flat = node.op == "Flatten" and new.axis == int(place.axis >= attrs.get("axis", 1))
    if is_flat or natural_place(node, place) == new:
        return node.op, inputs, attrs
    shape = _new_shape(g, node, place, new, inputs)
    return "Reshape", [inputs[0], shape], {}


def _write_moved(
    g: Emitter, node: Node, place: Place, new: Place, inputs: list[Value | None]
) -> Written:
    """A Reshape of each sample: the batch is the first axis before and behind it."""
    x, rank = inputs[0], node.outputs[0].rank
    assert x is not None and node.inputs[0] is not None
    shape = node.inputs[0].ranked_shape
    if not place.is_alone:
        inner: Elements = [] if place.inner == ONE else [g.size_of(place.inner)]
        before = g.sizes(x, shape, 0, place.axis)
        behind = g.sizes(x, shape, place.axis + 1, len(shape))
        outer = [g.size_of(place.outer)]
        x = g.emit("Reshape", x, g.join([*before, *outer, -1, *inner, *behind]))
        place = Place(place.axis + 1)
        shape = (*shape[: place.axis], 1, *(1 for _ in inner), *shape[place.axis :])
    first = move_axis_perm(len(shape), place.axis, 0)
    x = g.emit("Transpose", x, perm=first)
    sizes: Elements = [g.size_of(read_size(d)) for d in node.outputs[0].ranked_shape]
    before, behind = sizes[: new.axis], sizes[new.axis + 1 :]
    if new.is_alone:
        x = g.emit("Reshape", x, g.join([-1, *before, *behind]))
        return "Transpose", [x], {"perm": move_axis_perm(rank, 0, new.axis)}
    x = g.emit("Reshape", x, g.join([-1, *sizes]))
    x = g.emit("Transpose", x, perm=move_axis_perm(rank + 1, 0, new.axis))
    return "Reshape", [x, g.join([*before, -1, *behind])], {}


def _new_shape(
    g: Emitter, node: Node, place: Place, new: Place, inputs: Sequence[Value | None]
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
            elements.append(g.slice_vector(g.read(source), at, at + 1))
        else:
            elements.append(_find_size(g, node, place, inputs[0], at))
    if not is_free:
        is_same = stated is not None and stated[new.axis] == 0 and new == place
        elements[new.axis] = 0 if is_same else g.size_along(new, source)
    return g.join(elements)


def _find_size(g: Emitter, node: Node, place: Place, x: Value | None, at: int) -> Value:
    """A size by name of the result of a Reshape: an operand has it along another axis too."""
    dim, before = node.outputs[0].ranked_shape[at], node.inputs[0].ranked_shape  # type: ignore
    known = [i for i, d in enumerate(before) if d is not None and d == dim and i != place.axis]
    require(known, f"needs the size {dim} of {show_shape(node.outputs[0].shape)} as a number. "
                   "Give it (--input, --static)")  # fmt: skip
    return g.emit("Shape", x, start=known[0], end=known[0] + 1)


def _write_measure(
    g: Emitter, node: Node, place: Place, inputs: list[Value | None], attrs: Any
) -> Written:
    """The sizes at the old batch: what is computed of them is one for all samples."""
    x = node.inputs[0]
    assert x is not None
    rank = x.rank
    start, end, _ = slice(attrs.get("start", 0), attrs.get("end")).indices(rank)
    if node.op == "Shape" and not start <= place.axis < end:
        return node.op, inputs, attrs
    factor = place.size(g.analysis.batch)
    old: int | Value = factor.number
    if factor.names:
        size = g.emit("Shape", inputs[0], start=place.axis, end=place.axis + 1)
        old = g.emit("Mul", g.emit("Div", size, g.read_batch()),
                        g.const([g.analysis.batch]))  # fmt: skip
    span = range(start, end) if node.op == "Shape" else range(rank)
    elements: Elements = [
        old if i == place.axis else g.emit("Shape", inputs[0], start=i, end=i + 1) for i in span
    ]
    vector = g.join(elements)
    if node.op == "Shape":
        return "Identity", [vector], {}
    return "ReduceProd", [vector], {"keepdims": 0}


def _write_slice(g: Emitter, node: Node, place: Place, inputs: list[Value | None]) -> None:
    """A slice with all elements of the axis of the batch, whatever its size."""
    rank = node.inputs[0].rank  # type: ignore[union-attr]
    axes = node.inputs[3].ints() if len(inputs) > 3 and node.inputs[3] is not None else None
    named = range(g.length(node.inputs[1])) if axes is None else [a % rank for a in axes]
    if place.axis in named:
        at = list(named).index(place.axis)
        bounds = find_bounds(node, place, g.analysis.batch)
        start, end = (0, END) if bounds is None else map(g.times, bounds)
        inputs[1] = g.set_element(node.inputs[1], inputs[1], at, start)
        inputs[2] = g.set_element(node.inputs[2], inputs[2], at, end)


def _write_coordinate(
    g: Emitter, node: Node, indices: Value | None, place: Place, along: Place
) -> Value:
    """Indices with a coordinate of each that is a row of its sample."""
    shape, axis = node.inputs[1].ranked_shape, place.axis  # type: ignore[union-attr]
    if g.analysis.batch != 1:
        array = node.inputs[1].array().take([0], along.axis)  # type: ignore[union-attr]
        tensor = Tensor.of(array)
        one = Value(g.fresh_name(), tensor.dtype, array.shape, tensor)
        indices = g.expand(one, along)

    def slice_coordinates(start: int, end: int) -> Value:
        last = g.const([len(shape) - 1])
        return g.emit("Slice", indices, g.const([start]), g.const([end]), last)

    coordinate = slice_coordinates(axis, axis + 1)
    parts = [_write_rows(g, coordinate, (*shape[:-1], 1), place, along)]
    if axis:
        parts.insert(0, slice_coordinates(0, axis))
    if axis + 1 != shape[-1]:
        parts.append(slice_coordinates(axis + 1, END))
    return g.emit("Concat", *parts, axis=len(shape) - 1)


def _write_rows(
    g: Emitter, indices: Value | None, shape: Shape, place: Place, along: Place
) -> Value:
    """Indices that count the rows of each sample, as indices of the rows of all.

    ``shape`` was theirs, ``along`` is where they have the batch, and ``place`` where the rows do.
    """
    rows, axis = g.size_of(place.inner), along.axis
    x = g.emit("Cast", indices, to=ELEMENT_CODES[DType.INT64])
    x = g.emit("Mod", x, g.scalar(rows), fmod=0)  # negative ones count from the sample's end
    before, behind = g.sizes(x, shape, 0, axis), g.sizes(x, shape, axis + 1, len(shape))
    if along.is_alone:
        return g.emit("Add", x, _find_starts(g, len(shape), axis, rows))
    parts = [g.size_of(along.outer), -1, g.size_of(along.inner)]
    x = g.emit("Reshape", x, g.join([*before, *parts, *behind]))
    x = g.emit("Add", x, _find_starts(g, len(shape) + 2, axis + 1, rows))
    return g.emit("Reshape", x, g.join([*before, -1, *behind]))


def _find_starts(g: Emitter, rank: int, axis: int, rows: int) -> Value:
    """The first row of each sample, along one axis of several."""
    count = g.emit("Squeeze", g.read_batch(), g.const([0]))
    numbers = g.emit("Range", g.scalar(0), count, g.scalar(1))
    starts = g.emit("Mul", numbers, g.scalar(rows))
    return g.emit("Unsqueeze", starts, g.const([a for a in range(rank) if a != axis]))
