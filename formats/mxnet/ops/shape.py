"""Operators that move elements without changing them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from serde.decompositions.expressions import (
    Size,
    reshape,
    scalar,
    shape_from,
    size_of,
    sizes_of,
    times,
)
from serde.decompositions.reshape_codes import SKIP, coded
from serde.errors import require
from serde.ir.geometry import Ints, axes_of, axis_of, swapped
from serde.ir.graph import Value

from ..rules import reads

NUMPY_CODES = {-2: 0, -3: SKIP, -4: -2, -5: -3, -6: -4}  # what they are in MXNet's


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
    if all(d > 0 or d == -1 for d in shape):
        check_count(x, shape, shape)
        return g.Reshape(x, shape)
    if not reverse:
        sizes = coded(g, sizes_of(g, x), shape)
    else:
        sizes = coded(g, sizes_of(g, x)[::-1], shape[::-1])[::-1]
    check_count(x, sizes, shape)
    return reshape(g, x, sizes)


def check_count(x: Value, sizes: Sequence[Size], shape: Ints) -> None:
    """Refuse sizes that hold another number of elements, which MXNet reads from beyond its own."""
    known = [n for n in sizes if isinstance(n, int) and n > 0]
    if not x.is_static or len(known) + sizes.count(-1) < len(sizes):
        return
    left = math.prod(x.dims) % math.prod(known)  # type: ignore[arg-type]
    same = left == 0 if -1 in sizes else math.prod(x.dims) == math.prod(known)  # type: ignore
    require(same, f"shape={shape} of {x.dims}, which does not hold as much")


@reads("_npx_reshape", only={"order": ("C",)})
def read_numpy_reshape(g, x, *, newshape: Ints, reverse=False):
    """The codes are -1 infer, -2 copy, -3 skip, -4 the rest, -5 merge two, -6 split in two."""
    if all(d > 0 or d == -1 for d in newshape):
        return g.Reshape(x, newshape)
    require(0 not in newshape, f"newshape={newshape} makes no elements")
    codes = tuple(NUMPY_CODES.get(d, d) for d in newshape)
    if not reverse:
        return reshape(g, x, coded(g, sizes_of(g, x), codes))
    return reshape(g, x, coded(g, sizes_of(g, x)[::-1], codes[::-1])[::-1])


@reads("_np_reshape", only={"order": ("C",)})
def read_plain_reshape(g, x, *, newshape: Ints):
    require(all(d > 0 or d == -1 for d in newshape), f"newshape={newshape}")
    return g.Reshape(x, newshape)


@reads("reshape_like")
def read_reshape_like(
    g, x, like, *, lhs_begin: int | None = None, lhs_end: int | None = None,
    rhs_begin: int | None = None, rhs_end: int | None = None,
):  # fmt: skip
    """Some axes of ``x``, all unless told, take the sizes of some axes of ``like``."""
    if (lhs_begin, lhs_end, rhs_begin, rhs_end) == (None,) * 4:
        return g.Reshape(x, g.Shape(like))
    mine, other = sizes_of(g, x), sizes_of(g, like)
    mine[slice(lhs_begin, lhs_end)] = other[slice(rhs_begin, rhs_end)]
    return reshape(g, x, mine)


@reads("transpose")
def read_transpose(g, x, *, axes=()):
    return g.Transpose(x, perm=axes_of(axes, x.rank) if axes else tuple(reversed(range(x.rank))))


@reads("SwapAxis")
def read_swap_axis(g, x, *, dim1=0, dim2=0):
    return g.Transpose(x, perm=swapped(x.rank, axis_of(dim1, x.rank), axis_of(dim2, x.rank)))


@reads("expand_dims")
def read_expand_dims(g, x, *, axis: int):
    return g.Unsqueeze(x, [axis_of(axis, x.rank + 1)])


@reads("squeeze")
def read_squeeze(g, x, *, axis: Ints | None = None):
    """A tensor squeezed of all its axes keeps one: MXNet's legacy operators have no scalars."""
    axes = axes_of(axis, x.rank) if axis is not None else None
    if axes is None:
        axes = tuple(i for i, d in enumerate(x.dims) if d == 1)
    return g.Squeeze(x, axes[1:] if len(axes) == x.rank else axes)


@reads("Concat", "_rnn_param_concat", ignore=("num_args",))
def read_concat(g, *xs, dim=1):
    return g.Concat(*xs, axis=axis_of(dim, xs[0].rank))


@reads("stack", ignore=("num_args",))
def read_stack(g, *xs, axis=0):
    axis = axis_of(axis, xs[0].rank + 1)
    return g.Concat(*(g.Unsqueeze(x, [axis]) for x in xs), axis=axis)


@reads("tile")
def read_tile(g, x, *, reps: Ints):
    reps = (1,) * (x.rank - len(reps)) + reps
    extra = len(reps) - x.rank
    x = g.Unsqueeze(x, list(range(extra))) if extra else x
    return g.Tile(x, reps)


@reads("repeat")
def read_repeat(g, x, *, repeats: int, axis: int | None = None):
    """Each element, or slice along ``axis``, ``repeats`` times in a row."""
    require(repeats > 0, f"repeats={repeats} makes no elements")
    if axis is None:
        x, axis = g.Reshape(x, [-1]), 0
    axis = axis_of(axis, x.rank)
    sizes = sizes_of(g, x)
    spread = [*sizes[: axis + 1], repeats, *sizes[axis + 1 :]]
    wide = g.Expand(g.Unsqueeze(x, [axis + 1]), shape_from(g, spread))
    return reshape(g, wide, [*sizes[:axis], times(g, [sizes[axis], repeats]), *sizes[axis + 1 :]])


@reads("broadcast_axis")
def read_broadcast_axis(g, x, *, axis: Ints = (), size: Ints = ()):
    sizes = sizes_of(g, x)
    for at, wide in zip(axes_of(axis, x.rank), size, strict=True):
        sizes[at] = wide
    return g.Expand(x, shape_from(g, sizes))


@reads("broadcast_to")
def read_broadcast_to(g, x, *, shape: Ints = ()):
    sizes = [size_of(g, x, i) if d == 0 else d for i, d in enumerate(shape)]
    return g.Expand(x, shape_from(g, sizes))


@reads("broadcast_like")
def read_broadcast_like(g, x, like, *, lhs_axes: Ints | None = None, rhs_axes: Ints | None = None):
    if not lhs_axes and not rhs_axes:
        return g.Expand(x, g.Shape(like))
    sizes = sizes_of(g, x)
    pairs = zip(axes_of(lhs_axes or (), x.rank), axes_of(rhs_axes or (), like.rank), strict=True)
    for mine, other in pairs:
        sizes[mine] = size_of(g, like, other)
    return g.Expand(x, shape_from(g, sizes))


@reads("reverse")
def read_reverse(g, x, *, axis: Ints):
    axes = axes_of(axis, x.rank)
    far = [-(2**31)] * len(axes)
    return g.Slice(x, [-1] * len(axes), far, axes, [-1] * len(axes))


@reads("Pad")
def read_pad(g, x, *, mode: str, pad_width: Ints, constant_value=0.0):
    require(mode in ("constant", "edge", "reflect"), f"mode={mode!r} is unknown")
    fill = scalar(g, constant_value, x) if mode == "constant" and constant_value else None
    return g.Pad(x, pad_width[::2] + pad_width[1::2], fill, mode=mode)


@reads("shape_array")
def read_shape_array(g, x):
    return g.Shape(x)


@reads("size_array")
def read_size_array(g, x):
    return g.Reshape(g.Size(x), [1])
