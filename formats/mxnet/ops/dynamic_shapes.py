"""Shapes: those of other tensors, and tensors brought to them.

A size without a number is known by its name; MXNet takes it from a tensor that has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain

from serde.errors import ConversionError, require
from serde.ir.dim_expr import split_operands
from serde.ir.graph import Dim, Value

from ..target import storage_type_name

Sizes = tuple[Dim, ...]
COMPUTED = (
    "a shape that is only known when the model runs. Make the operand that holds it a constant, or "
    "give the inputs' sizes as numbers (--input)."
)
# Operators that find how long their results are when they run.
FINDS = frozenset({"_contrib_boolean_mask", "_npi_bincount", "_npi_unique", "_npx_nonzero"})


def emit_arange(s, size: Dim) -> Value:
    """``0, 1, 2 … size - 1`` as floats, where MXNet takes a size from: a tensor, not a number.

    Sizes that no tensor has are put together from those of their operands.
    """
    if isinstance(size, int):
        return s["_arange"](start=0, stop=size, dtype="float64")
    require(size is not None, COMPUTED)
    values = chain(s.inputs, (v for node in s.nodes for v in node.outputs))
    like = next((v for v in values if size in (v.shape or ())), None)
    if like is not None:
        return emit_arange_like(s, like, like.rank, like.ranked_shape.index(size))
    parts = split_operands(size)
    if parts is None:
        raise ConversionError(f"needs the size {size}, which no tensor before it has")
    sign, left, right = parts
    if sign in "+*":
        a, b = (s.ones_like(emit_arange(s, d)) for d in (left, right))
        if sign == "+":
            return emit_arange_like(s, s.Concat(a, b, dim=0, num_args=2))
        each = s.broadcast_mul(s.expand_dims(a, axis=1), s.expand_dims(b, axis=0))
        return emit_arange_like(s, s.Reshape(each, shape=(-1,)))
    require(isinstance(right, int) and right > 0, f"the size {size}, computed of others")
    if sign == "-":
        return s.slice_axis(emit_arange(s, left), axis=0, begin=0, end=-right)
    every = s.slice(emit_arange(s, left), begin=(right - 1,), end=(None,), step=(right,))
    return emit_arange_like(s, every)


def emit_arange_like(s, like: Value, rank: int = 1, axis: int = 0, kind: str = "float64") -> Value:
    """``0, 1, 2 …`` as many as ``like``, of that rank, is long along an axis.

    MXNet 1.4 and 1.5 infer the length from what the numbers are added to.
    """
    like = s.Cast(like, dtype=kind)
    if s.release.has("_contrib_arange_like") or not s.release.has("_arange", infer_range=True):
        return s["_contrib_arange_like"](like, axis=axis)  # type: ignore[no-any-return]
    for other in (a for a in range(rank) if a != axis):
        like = s.slice_axis(like, axis=other, begin=0, end=1)
    row = s.zeros_like(s.Reshape(like, shape=(-1,)))
    return s.elemwise_add(row, s["_arange"](start=0, infer_range=True, dtype=kind))  # type: ignore


def broadcast_axes_to(s, x: Value, sizes: Sequence[Dim]):
    """``x`` repeated along its axes of size 1, and new ones in front, up to ``sizes``."""
    kind, sizes_of_x = storage_type_name(x.type), list(x.ranked_shape) or [1]
    for _ in range(len(sizes) - len(sizes_of_x)):
        x = s.expand_dims(x, axis=0)
        sizes_of_x.insert(0, 1)
    expected = [1] * (len(sizes_of_x) - len(sizes)) + list(sizes)
    pairs = list(zip(sizes_of_x, expected, strict=True))
    fixed = [new if old == 1 and isinstance(new, int) and new != 1 else 0 for old, new in pairs]
    some = [axis for axis, size in enumerate(fixed) if size]
    for pair in (some[i : i + 2] for i in range(0, len(some), 2)):  # MXNet takes few axes at once
        x = s.broadcast_to(x, shape=tuple(d if a in pair else 0 for a, d in enumerate(fixed)))
    for axis, (old, new) in enumerate(pairs):
        if (new in (1, old) and new is not None) or fixed[axis]:
            continue
        counted = emit_arange(s, new)
        if old == 1 and s.release.has("broadcast_like", lhs_axes=()) and not wants_one_type(s):
            x = s.broadcast_like(x, counted, lhs_axes=(axis,), rhs_axes=(0,))
        else:  # it may be 1 where the model runs, or the new size may
            x = match_axis_length(s, x, counted, axis, len(sizes_of_x), kind)
    return x


def emit_broadcast_like(s, x: Value, like: Value) -> Value:
    """``x`` in the shape of ``like``, which has the same element type."""
    if s.release.has("broadcast_like"):
        return s.broadcast_like(x, like)  # type: ignore[no-any-return]
    return s.broadcast_mul(x, s.ones_like(like))  # type: ignore[no-any-return]


def align_to_axis(s, row: Value, axis: int, rank: int) -> Value:
    """A tensor of one axis as that axis of ``rank`` axes."""
    return s.Reshape(row, shape=tuple(-1 if a == axis else 1 for a in range(rank)))  # type: ignore


def match_axis_length(s, x: Value, row: Value, axis: int, rank: int, kind: str) -> Value:
    """``x`` as long along an axis as ``row`` is, where either is of size 1."""
    ones = s.Cast(s.ones_like(row), dtype=kind)
    return s.broadcast_mul(x, align_to_axis(s, ones, axis, rank))  # type: ignore[no-any-return]


def broadcast_together(s, values: Sequence[Value]) -> list[Value]:
    """The values expanded to the dynamic shape they broadcast to."""
    rank = max(v.rank for v in values)
    operands, zeros = [], []
    for value in values:
        x = value
        for _ in range(rank - max(value.rank, 1)):
            x = s.expand_dims(x, axis=0)
        operands.append(x)
        zeros.append(s.Cast(s.zeros_like(x), dtype="float32"))
    full = reduce(s.broadcast_add, zeros)
    likes = [full] * len(values)
    if wants_one_type(s):
        likes = [s.Cast(full, dtype=storage_type_name(v.type)) for v in values]
    return [s.broadcast_like(x, like) for x, like in zip(operands, likes, strict=True)]


def wants_one_type(s) -> bool:
    """Whether both operands of ``broadcast_like`` have to be of one element type."""
    return s.release.name.startswith("1.7")  # type: ignore[no-any-return]


def broadcast_shapes(shapes: Sequence[Sequence[Dim]]) -> list[Dim] | None:
    """The shape that shapes broadcast to; None where it is dynamic."""
    rank = max(map(len, shapes))
    sizes: list[set[Dim]] = [set() for _ in range(rank)]
    for shape in shapes:
        for at, size in enumerate(reversed(shape), 1):
            sizes[-at] |= {size} - {1}
    is_known = all(len(s) <= 1 and None not in s for s in sizes)
    return [next(iter(s), 1) for s in sizes] if is_known else None


def emit_iterations(s, count: Value) -> Value:
    """``0, 1, 2 … count - 1`` as floats: there are as many counts of numbers as the last one has
    before it, and one more. There is at least one: MXNet has no tensors without elements.
    """
    s.note("takes a size from a tensor when it runs, where MXNet takes no 0")
    top = s.Cast(s["_minus_scalar"](count, scalar=1), dtype="int64")
    return emit_arange_like(s, s["_npi_bincount"](top, has_weights=False))
