"""Products for tract, and Expand, whose axes it drops where a product follows."""

from __future__ import annotations

import numpy as np

from serde.ir.dim_expr import shape_data_of
from serde.ir.graph import Shape, Value
from serde.rewrite.rules import RuleTable


def legalize_broadcasts(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Einsum")(legalize_einsum)
    legalize("Expand")(legalize_expand)
    legalize("Tile")(legalize_tile)


def legalize_expand(g, x, shape):
    """tract loses axes that an Expand adds or makes longer where its result is multiplied.

    It leaves a sum in place: that with -0 changes no number.
    """
    (count,) = shape.ranked_shape
    if not isinstance(count, int):
        return None
    if count == 1 and x.shape in ((), (1,)) and (rows := find_rows(g, shape)) is not None:
        return repeat_by_rows(g, x, rows)
    if x.rank >= count and x.is_static and 1 not in x.static_shape:
        return g.Identity(x)
    sizes = shape_data_of(shape)
    if x.rank < count:
        return g.Expand(g.Unsqueeze(x, list(range(count - x.rank))), shape)
    if x.tensor is None and x.type.kind == "f" and sizes and is_wider(x.ranked_shape, sizes):
        return add_zeros(g, x, shape, sizes)
    known = broadcast_sizes(x, shape)
    return g.Expand(x, known) if known is not None and shape.tensor is None else None


def find_rows(g, shape: Value) -> Value | None:
    """The tensor whose number of rows, which depends on data, is all that ``shape`` has."""
    node, is_first = g.producer(shape), False
    if node is not None and node.op == "Slice":
        bounds = [
            v.ints() if v is not None and v.tensor is not None else () for v in node.inputs[1:]
        ]
        is_first = bounds[:2] == [(0,), (1,)]
        node = g.producer(node.inputs[0])
    elif node is not None and node.op == "Shape":
        x = node.inputs[0]
        end = node.attrs.get("end", None if x is None or x.shape is None else x.rank)
        is_first = (node.attrs.get("start", 0), end) == (0, 1)
    rows = node.inputs[0] if node is not None and node.op == "Shape" and is_first else None
    if rows is None or not rows.shape or rows.shape[0] is not None or rows.type.kind not in "iuf":
        return None
    return rows if all(isinstance(d, int) and d > 0 for d in rows.shape[1:]) else None


def repeat_by_rows(g, x: Value, rows: Value):
    """One element for each row, chosen by rows: tract expands to no size that depends on data."""
    for _ in rows.ranked_shape[1:]:
        rows = g.Gather(rows, 0, axis=1)
    return g.Where(g.Equal(rows, rows), x, x)


def keep_expanded(g, x: Value) -> Value:
    """An operand of a product, as a sum with -0 where it is an Expand of a constant.

    Elsewhere tract fails at sums in its place.
    """
    node = g.producer(x)
    if node is None or node.op != "Expand" or node.inputs[0].tensor is None:
        return x
    source, shape = node.inputs
    sizes = shape_data_of(shape)
    is_kept = x.type.kind == "f" and sizes and is_wider(source.ranked_shape, sizes)
    return add_zeros(g, source, shape, sizes) if is_kept else x


def add_zeros(g, x: Value, shape: Value, sizes: Shape):
    """``x``, broadcast to sizes by sums with -0."""
    if not all(isinstance(d, int) for d in sizes):
        zero = g.const(np.full((1,) * len(sizes), -0.0), x.type)
        return g.Add(x, g.as_is("Expand", (zero, shape), {}))
    for axis, size in enumerate(sizes):
        if x.ranked_shape[axis] == 1 != size and isinstance(size, int):
            row = [1] * len(sizes)
            row[axis] = size
            x = g.Add(x, g.const(np.full(row, -0.0), x.type))
    return x


def is_wider(shape: Shape, sizes: Shape) -> bool:
    """Whether axes of one element, and no others, become longer."""
    return all(d == 1 or d == size or size == 1 for d, size in zip(shape, sizes, strict=True))


def broadcast_sizes(x: Value, shape: Value) -> list[int] | None:
    """The sizes of an Expand, where those of ``x`` or what is known of ``shape`` tell."""
    known = shape.shape_data
    if known is None or not x.is_static or not all(isinstance(d, int) for d in known):
        return None
    return list(np.broadcast_shapes(x.static_shape, tuple(known)))


def legalize_tile(g, x, repeats):
    """tract makes an Expand of axes of one element that are repeated."""
    known = repeats.ints() if repeats.tensor is not None else ()
    pairs = list(zip(x.ranked_shape, known, strict=True)) if known else []
    if not any(d == 1 != n for d, n in pairs) or 0 in known:
        return None
    expanded = add_zeros(g, x, repeats, [n if d == 1 else 1 for d, n in pairs])
    return g.Tile(expanded, [1 if d == 1 else n for d, n in pairs])


def legalize_einsum(g, *operands, equation: str):
    """tract adds up no axis that is left where the result has none."""
    terms, arrow, result = "".join(equation.split()).partition("->")
    kept = result if arrow else [a for a in terms if a.isalpha() and terms.count(a) == 1]
    letter = next((letter for letter in terms if letter.isalpha()), None)
    if kept or letter is None or "." in terms:
        return None
    part = g.Einsum(*operands, equation=f"{terms}->{letter}")
    return g.ReduceSum(part, [0], keepdims=0)
