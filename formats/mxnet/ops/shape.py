"""Operators that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from serde.decompositions.reshape_codes import SKIP, resolve_reshape_codes
from serde.errors import ConversionError, require
from serde.ir.dim_expr import combine, shape_data_of
from serde.ir.geometry import Ints, axes_of, axis_of, swap_axes_perm
from serde.ir.graph import Dim, DType, Value
from serde.rewrite.rules import Hint
from serde.spec import shape_functions
from serde.spec.expressions import Size

from ..rules import note_old_meaning, reads, reads_between, reads_second
from ..target import legalizations, storage_type_name, writes
from .dynamic_shapes import COMPUTED, Sizes, broadcast_axes_to, emit_iterations, match_axis_length
from .slicing import flatten_without_axis

NUMPY_CODES = {-2: 0, -3: SKIP, -4: -2, -5: -3, -6: -4}  # what they are in MXNet's
MOST_AXES = 6  # of a tensor that MXNet transposes
AT_ONCE = {"allowzero": (0,)}


@reads("Flatten")
def read_flatten(g, x):
    return g.Flatten(x, axis=1)


@reads("Reshape")
def read_reshape(g, x, *, shape: Ints = (), reverse=False, target_shape: Ints = (),
                 keep_highest=False):  # fmt: skip
    """MXNet's codes: 0 copy, -1 infer, -2 the rest, -3 merge two, -4 split one in the next two.

    ``reverse`` takes codes and axes from the right. Files before 0.9 have a ``target_shape``
    instead, in which 0 is the size to infer.
    """
    require(shape or target_shape, "no shape is given")
    if not shape:
        first = (0,) if keep_highest else ()
        return g.Reshape(x, first + tuple(d or -1 for d in target_shape[len(first) :]))
    if not reverse and all(d > 0 or d == -1 or (d == 0 and at < x.rank)
                           for at, d in enumerate(shape)):  # fmt: skip
        numbers = [
            d or (n if isinstance(n := x.ranked_shape[at], int) else 0)
            for at, d in enumerate(shape)
        ]  # ONNX copies sizes by name as well
        check_count(x, numbers, shape)
        return g.Reshape(x, numbers)
    sizes = resolve_codes(g, x, shape, reverse)
    check_count(x, sizes, shape)
    return g.reshape(x, sizes)


def resolve_codes(g, x: Value, codes: Ints, reverse: bool):
    """The sizes that codes ask for, which ``reverse`` takes from the right."""
    if not reverse:
        return resolve_reshape_codes(g, g.sizes_of(x), codes)
    return resolve_reshape_codes(g, g.sizes_of(x)[::-1], codes[::-1])[::-1]


def check_count(x: Value, sizes: Sequence[Size], shape: Ints) -> None:
    """Refuse sizes that hold another number of elements, which MXNet reads from beyond its own."""
    known = [n for n in sizes if isinstance(n, int) and n > 0]
    if not x.is_static or len(known) + sizes.count(-1) < len(sizes):
        return
    count, known_count = math.prod(x.static_shape), math.prod(known)
    if count % known_count if -1 in sizes else count != known_count:
        raise ConversionError(
            f"shape={shape} of {x.static_shape}, which does not hold as much. Where a batch is "
            "baked in, give that with --input, and --rebatch N for any other"
        )


@reads("_npx_reshape", only={"order": ("C",)})
def read_numpy_reshape(g, x, *, newshape: Ints, reverse=False):
    """The codes are -1 infer, -2 copy, -3 skip, -4 the rest, -5 merge two, -6 split in two."""
    if all(d > 0 or d == -1 for d in newshape):
        return g.Reshape(x, newshape)
    require(0 not in newshape, f"newshape={newshape} makes no elements")
    if newshape in ((-2,) * x.rank, (*(-2,) * (len(newshape) - 1), -4)) and not reverse:
        return x  # as after each slice, also of no elements
    codes = tuple(NUMPY_CODES.get(d, d) for d in newshape)
    return g.reshape(x, resolve_codes(g, x, codes, reverse))


@reads("_np_reshape", only={"order": ("C",)})
def read_plain_reshape(g, x, *, newshape: Ints):
    require(all(d > 0 or d == -1 for d in newshape), f"newshape={newshape}")
    return g.Reshape(x, newshape)


@reads("reshape_like")
def read_reshape_like(
    g, x, like, *, lhs_begin: int | None = None, lhs_end: int | None = None,
    rhs_begin: int | None = None, rhs_end: int | None = None,
):  # fmt: skip
    """Some axes of ``x``, by default all, take the sizes of some axes of ``like``."""
    if (lhs_begin, lhs_end, rhs_begin, rhs_end) == (None,) * 4:
        return g.Reshape(x, g.Shape(like))
    mine, other = g.sizes_of(x), g.sizes_of(like)
    mine[slice(lhs_begin, lhs_end)] = other[slice(rhs_begin, rhs_end)]
    return g.reshape(x, mine)


@reads("transpose")
def read_transpose(g, x, *, axes=()):
    return g.Transpose(x, perm=axes_of(axes, x.rank) if axes else tuple(reversed(range(x.rank))))


@reads("SwapAxis")
def read_swap_axis(g, x, *, dim1=0, dim2=0):
    return g.Transpose(x, perm=swap_axes_perm(x.rank, axis_of(dim1, x.rank), axis_of(dim2, x.rank)))


@reads("expand_dims")
def read_expand_dims(g, x, *, axis: int):
    return g.Unsqueeze(x, [axis_of(axis, x.rank + 1)])


@reads_between(0, 10000)("expand_dims")
def read_old_expand_dims(g, x, *, axis: int):
    """Before MXNet 1.0 a negative axis counts from the end of the operand's own axes."""
    if axis < 0:
        note_old_meaning(g, "1.0")
    return read_expand_dims(g, x, axis=axis_of(axis, x.rank) if axis < 0 else axis)


@reads("squeeze")
def read_squeeze(g, x, *, axis: Ints | None = None):
    """A tensor squeezed of all its axes keeps one: MXNet's legacy operators have no scalars."""
    axes = axes_of(axis, x.rank) if axis is not None else None
    if axes is None:
        axes = tuple(i for i, d in enumerate(x.static_shape) if d == 1)
    return g.Squeeze(x, axes[1:] if len(axes) == x.rank else axes)


@reads("Concat", "_rnn_param_concat", ignore=("num_args",))
def read_concat(g, *xs, dim=1):
    return g.Concat(*xs, axis=axis_of(dim, xs[0].rank))


@reads_second("Concat", ignore=("num_args",))
def read_second_concat(g, *xs, dim: int | None = 1):
    """Without an axis all are flattened first."""
    if dim is None:
        return g.Concat(*(g.Reshape(x, [-1]) for x in xs), axis=0)
    return read_concat(g, *xs, dim=dim)


@reads("_contrib_dynamic_reshape")
def read_dynamic_reshape(g, x, shape):
    """A shape that is computed, in which -1 is inferred and 0 copied."""
    return g.Reshape(x, g.cast(shape, DType.INT64))


@reads("stack", "_npi_stack", ignore=("num_args",))
def read_stack(g, *xs, axis=0):
    return g.stack(xs, axis)


@reads("tile")
def read_tile(g, x, *, reps: Ints):
    return g.tile(x, reps)


@reads("repeat")
def read_repeat(g, x, *, repeats: int, axis: int | None = None):
    """Each element, or slice along ``axis``, ``repeats`` times in a row."""
    require(repeats > 0, f"repeats={repeats} makes no elements")
    x, at = flatten_without_axis(g, x, axis)
    return g.repeat(x, repeats, at)


@reads("broadcast_axis")
def read_broadcast_axis(g, x, *, axis: Ints = (), size: Ints = ()):
    sizes = g.sizes_of(x)
    for at, new_size in zip(axes_of(axis, x.rank), size, strict=True):
        sizes[at] = new_size
    return g.Expand(x, g.shape_from(sizes))


@reads("broadcast_to")
def read_broadcast_to(g, x, *, shape: Ints = ()):
    sizes = [g.size_of(x, i) if d == 0 else d for i, d in enumerate(shape)]
    return g.Expand(x, g.shape_from(sizes))


@reads("broadcast_like")
def read_broadcast_like(g, x, like, *, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None):
    if not lhs_axes and not rhs_axes:
        return g.Expand(x, g.Shape(like))
    sizes = g.sizes_of(x)
    pairs = zip(axes_of(lhs_axes or (), x.rank), axes_of(rhs_axes or (), like.rank), strict=True)
    for mine, other in pairs:
        sizes[mine] = g.size_of(like, other)
    return g.Expand(x, g.shape_from(sizes))


@reads("reverse", "_npi_flip")
def read_reverse(g, x, *, axis: Ints):
    axes = axes_of(axis, x.rank)
    far = [-(2**31)] * len(axes)
    return g.Slice(x, [-1] * len(axes), far, axes, [-1] * len(axes))


reads("shape_array")(lambda g, x: g.Shape(x))
reads("size_array")(lambda g, x: g.Reshape(g.Size(x), [1]))


@writes("Flatten")
def write_flatten(s, x, *, axis):
    if axis == 1:
        return s.Flatten(x)
    return s.Reshape(x, shape=(math.prod(x.static_shape[:axis]), -1))


@writes("Transpose")
def write_transpose(s, x, *, perm):
    if len(perm) <= MOST_AXES:
        return s.transpose(x, axes=perm) if len(perm) > 1 else x
    runs = [[perm[0]]]  # axes that stay side by side move as one
    for before, axis in pairwise(perm):
        if axis == before + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    sizes = [d if isinstance(d, int) else -1 for d in x.ranked_shape]  # one may be inferred
    fits = len(runs) <= MOST_AXES and sizes.count(-1) <= 1
    require(fits, f"an order of {len(perm)} axes: MXNet's have up to {MOST_AXES}")
    order = sorted(range(len(runs)), key=runs.__getitem__)  # of the runs, as they are in ``x``
    joined = s.Reshape(x, shape=[max(math.prod(sizes[a] for a in runs[i]), -1) for i in order])
    moved = s.transpose(joined, axes=[order.index(i) for i in range(len(runs))])
    return s.Reshape(moved, shape=[sizes[a] for a in perm])


@writes("Squeeze")
def write_squeeze(s, x, axes=None):
    chosen = (
        axes.ints()
        if axes is not None
        else tuple(i for i, d in enumerate(x.static_shape) if d == 1)
    )
    if len(chosen) == x.rank:
        return s.Reshape(x, shape=(1,))
    return s.squeeze(x, axis=chosen)


@writes("Unsqueeze")
def write_unsqueeze(s, x, axes):
    if x.rank == 0:
        return s.Reshape(x, shape=(1,) * len(axes.ints()))
    for axis in sorted(axes.ints()):
        x = s.expand_dims(x, axis=axis)
    return x


@writes("Concat")
def write_concat(s, *xs, axis):
    return s.Concat(*xs, dim=axis, num_args=len(xs))


@writes("Tile")
def write_tile(s, x, repeats):
    return s.tile(x, reps=repeats.ints() or (1,))


@writes("Expand")
def write_expand(s, x, shape=None, *, sizes: Hint[Sizes | None] = None):
    """ONNX's shape broadcasts with the operand's own: 1 keeps an axis as it is."""
    sizes = shape_data_of(shape) if sizes is None else sizes
    if sizes is None:
        (length,) = shape.ranked_shape if shape.rank == 1 else (None,)
        require(isinstance(length, int), COMPUTED)
        sizes = (None,) * length
    kind, rank = storage_type_name(x.type), max(x.rank, 1, len(sizes))
    x = broadcast_axes_to(s, x, [1 if d is None else d for d in sizes])
    for axis, size in enumerate(sizes):
        if size is None:
            turns = emit_iterations(s, s.slice_axis(shape, axis=0, begin=axis, end=axis + 1))
            x = match_axis_length(s, x, turns, rank - len(sizes) + axis, rank, kind)
    return x


@writes("Reshape", only=AT_ONCE)
def write_reshape(s, x, shape=None, *, sizes: Hint[Sizes | None] = None):
    """0 and -1 mean the same to both; named sizes are said in MXNet's other codes.

    What these cannot say is made like a tensor of those sizes.
    """
    if sizes is None:
        return reshape_to_sizes(s, x, shape_data_of(shape))
    full = shape_functions.infer_reshape(x.ranked_shape, sizes, allowzero=False)
    require(None not in full, f"a shape {list(sizes)} of {list(x.ranked_shape)}")
    codes = reshape_codes(x.ranked_shape, full)
    if codes is not None:
        return s.Reshape(x, shape=tuple(codes))
    one = s["_ones"](shape=(1,) * len(full), dtype="float32")
    one.dtype, one.shape = DType.FLOAT32, (1,) * len(full)
    return s.reshape_like(x, broadcast_axes_to(s, one, full))


def reshape_to_sizes(s, x: Value, sizes: Sizes | None):
    """Numbers stand for themselves, and one dynamic size is -1."""
    require(sizes is not None, COMPUTED)
    open_ = [at for at, d in enumerate(sizes) if not isinstance(d, int)]
    kept = [
        at
        for at in open_
        if at < x.rank and sizes[at] is not None and sizes[at] == x.ranked_shape[at]
    ]
    plain = [0 if at in kept else d for at, d in enumerate(sizes)]
    if rest := [at for at in open_ if at not in kept]:
        require(len(rest) == 1 and -1 not in sizes, COMPUTED)
        plain[rest[0]] = -1
    return s.Reshape(x, shape=tuple(plain) or (1,))


def reshape_codes(
    source_sizes: Sequence[Dim], sizes: Sequence[Dim], inferred: bool = False
) -> list[int] | None:
    """How ``Reshape`` says ``sizes``: 0 keeps a size, -3 joins two, -4 parts one, -1 is the rest.

    A number stands for itself; each code but -3 is about the next source size. There is no -1
    behind -4, whose numbers MXNet counts as sizes: it writes the inferred one to another place.
    """
    if not sizes:
        return []
    first, second = sizes[0], sizes[1] if len(sizes) > 1 else None
    ways: list[tuple[list[int], int, int]] = []
    if source_sizes and source_sizes[0] == first:
        ways.append(([0], 1, 1))
    if len(source_sizes) > 1 and combine("*", source_sizes[0], source_sizes[1]) == first:
        ways.append(([-3], 2, 1))
    if source_sizes and second is not None and combine("*", first, second) == source_sizes[0]:
        parts = [d if isinstance(d, int) else -1 for d in (first, second)]
        ways += [([-4, *parts], 1, 2)] * (parts != [-1, -1])
    if isinstance(first, int):
        ways.append(([first], 1, 1))
    ways += [([-1], 1, 1)] * (not inferred)
    for code, read, count in ways:
        rest = reshape_codes(source_sizes[read:], sizes[count:], inferred or code[0] in (-1, -4))
        if rest is not None:
            return code + rest
    return None


@writes("Shape")
def write_shape(s, x, *, start: int = 0, end: int | None = None):
    require(x.rank > 0, "the shape of a tensor of no axes")
    begin, last, _ = slice(start, end).indices(x.rank)
    require(begin < last, "no part of a shape")
    sizes = s.shape_array(x)
    sizes.shape = (x.rank,)
    return s.slice_axis(sizes, axis=0, begin=begin, end=last) if last - begin < x.rank else sizes


writes("Size")(lambda s, x: s.size_array(x))


@legalizations("Shape")
def legalize_shape(g, x, *, start: int = 0, end: int | None = None):
    """No part of a shape is a constant without elements."""
    if range(x.rank)[start:end]:
        return None
    return g.const(np.zeros(0, np.int64))


@legalizations("Concat")
def legalize_concat(g, *xs, axis):
    """What has no elements adds none."""
    some = [x for x in xs if x.ranked_shape[axis] != 0]
    if len(some) == len(xs) or not some:
        return None
    return g.Identity(some[0]) if len(some) == 1 else g.Concat(*some, axis=axis)


@legalizations("Reshape")
def legalize_reshape(g, x, shape, *, allowzero):
    """Where no size is 0 it matters not what 0 means."""
    if not allowzero:
        return None
    sizes = shape_data_of(shape)
    require(sizes is not None and 0 not in sizes, "a shape that may have sizes of 0")
    return g.Reshape(x, shape)


@legalizations("Tile")
def legalize_tile(g, x, repeats):
    """MXNet repeats two axes at once, wherever they are."""
    counts = repeats.ints()
    some = [i for i, n in enumerate(counts) if n > 1]
    if len(some) <= 2:
        return None
    first = [n if i in some[:2] else 1 for i, n in enumerate(counts)]
    rest = [1 if i in some[:2] else n for i, n in enumerate(counts)]
    return g.Tile(g.Tile(x, first), rest)
