"""NumPy's ways to move, join and part tensors, of which a scalar is one."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints, axes_of, axis_of, swap_axes_perm
from serde.ir.graph import DType, Value

from ..rules import reads, reads_second
from .shape import read_reverse
from .slicing import FAR, split_evenly


@reads("_np_squeeze", "_npi_squeeze")
def read_numpy_squeeze(g, x, *, axis: Ints | None = None):
    axes = axes_of(axis, x.rank) if axis is not None else None
    return g.Squeeze(
        x, [i for i, d in enumerate(x.static_shape) if d == 1] if axes is None else axes
    )


@reads("_np_transpose", "_npi_transpose")
def read_numpy_transpose(g, x, *, axes: Ints | None = None):
    return g.Transpose(x, perm=axes_of(axes, x.rank) if axes else tuple(reversed(range(x.rank))))


@reads("_np_moveaxis", "_npi_moveaxis")
def read_moveaxis(g, x, *, source: Ints, destination: Ints):
    """The axes that are not moved keep their order."""
    places = dict(zip(axes_of(destination, x.rank), axes_of(source, x.rank), strict=True))
    others = iter(a for a in range(x.rank) if a not in places.values())
    return g.Transpose(x, perm=[places[a] if a in places else next(others) for a in range(x.rank)])


@reads("_np_roll", "_npi_roll")
def read_roll(g, x, *, shift: Ints | None = None, axis: Ints | None = None):
    """What is pushed out at one end comes in at the other."""
    require(shift, "no shift is given")
    if axis is None:
        return g.Reshape(roll(g, g.Reshape(x, [-1]), (0, sum(shift))), g.Shape(x))
    shifts = shift * len(axis) if len(shift) == 1 else shift
    moves = zip((axis_of(a, x.rank) for a in axis), shifts, strict=True)
    return reduce(lambda y, move: roll(g, y, move), moves, x)


@reads("_npi_rollaxis")
def read_rollaxis(g, x, *, axis: int, start=0):
    """The axis goes in front of the one that is at ``start``."""
    at, before = axis_of(axis, x.rank), start + x.rank if start < 0 else start
    others = [a for a in range(x.rank) if a != at]
    others.insert(before - (at < before), at)
    return g.Transpose(x, perm=others)


@reads("_npi_repeats")
def read_repeats(g, x, *, repeats: Ints, axis: int | None = None):
    """Each element, or row, as often as its place says."""
    require(axis in (None, 0), f"axis={axis}, along which MXNet repeats other elements")
    x = g.Reshape(x, [-1]) if axis is None else x
    if len(repeats) == 1:
        return g.repeat(x, repeats[0], 0)
    size = x.ranked_shape[0]
    require(size == len(repeats), f"repeats={repeats} along an axis of {size}")
    require(min(repeats) >= 0, f"repeats={repeats}")
    arrays.charge_elements(sum(repeats))
    return g.Gather(x, g.const(np.repeat(np.arange(size), repeats), DType.INT64), axis=0)


def roll(g, x: Value, move: tuple[int, int]):
    axis, shift = move
    size = g.size_of(x, axis)
    cut = size - shift % size if isinstance(size, int) else g.Sub(size, g.Mod([shift], size))
    parts = g.slice_axis(x, axis, cut, FAR), g.slice_axis(x, axis, 0, cut)
    return g.Concat(*parts, axis=axis)


@reads("_npi_rot90")
def read_rot90(g, x, *, k=1, axes: Ints | None = None):
    require(axes is not None and len(axes) == 2, f"axes={axes} are not two")
    a, b = axes_of(axes, x.rank)
    turned = swap_axes_perm(x.rank, a, b)
    if k % 4 == 1:
        return g.Transpose(read_reverse(g, x, axis=(b,)), perm=turned)
    if k % 4 == 3:
        return read_reverse(g, g.Transpose(x, perm=turned), axis=(b,))
    return read_reverse(g, x, axis=(a, b)) if k % 4 == 2 else x


def ensure_rank(g, x: Value, rank: int):
    """``x`` with axes of size 1 added as NumPy's ``atleast_nd`` does."""
    missing = {1: {0: [0]}, 2: {0: [0, 1], 1: [0]}, 3: {0: [0, 1, 2], 1: [0, 2], 2: [2]}}
    return g.Unsqueeze(x, missing[rank].get(x.rank, []))


def read_atleast(rank, g, *xs):
    return tuple(ensure_rank(g, x, rank) for x in xs)


for _rank in (1, 2, 3):
    _names = f"_np_atleast_{_rank}d", f"_npi_atleast_{_rank}d"
    reads(*_names, ignore=("num_args",))(partial(read_atleast, _rank))


@reads("_npi_concatenate", ignore=("num_args",))
def read_concatenate(g, *xs, axis: int | None = 0):
    """Without an axis all are flattened first."""
    flat = xs if axis is not None else tuple(g.Reshape(x, [-1]) for x in xs)
    return g.Concat(*flat, axis=axis_of(axis or 0, flat[0].rank))


@reads("_npi_hstack", ignore=("num_args", "dim"))
def read_hstack(g, *xs):
    parts = [ensure_rank(g, x, 1) for x in xs]
    return g.Concat(*parts, axis=0 if parts[0].rank == 1 else 1)


@reads("_npi_vstack", ignore=("num_args",))
def read_vstack(g, *xs):
    return g.Concat(*(ensure_rank(g, x, 2) for x in xs), axis=0)


@reads("_npi_dstack", ignore=("num_args", "dim"))
def read_dstack(g, *xs):
    return g.Concat(*(ensure_rank(g, x, 3) for x in xs), axis=2)


@reads("_npi_column_stack", ignore=("num_args",))
def read_column_stack(g, *xs):
    return g.Concat(*(g.Unsqueeze(x, [1]) if x.rank == 1 else x for x in xs), axis=1)


@reads("_split_v2")
def read_split_v2(g, x, *, indices: Ints, axis=1, squeeze_axis=False, sections=0):
    """Into sections as even as they can be, or parts that begin at ``indices``."""
    axis = axis_of(axis, x.rank)
    if sections:
        parts = split_evenly(g, x, axis, sections)
    else:
        ends = (*indices[1:], FAR)
        parts = [g.slice_axis(x, axis, a, b) for a, b in zip(indices, ends, strict=True)]
    return tuple(g.Squeeze(p, [axis]) for p in parts) if squeeze_axis else tuple(parts)


def read_numpy_split(place, g, x, *, indices: Ints, axis=1, squeeze_axis=False, sections=0):
    """Along one place only: MXNet takes the shapes along it, whatever it splits."""
    place = min(place, x.rank - 1)
    same = axis % x.rank == place
    require(same, f"axis={axis}: MXNet splits along it and takes the shapes along {place}")
    return read_split_v2(
        g, x, indices=indices, axis=place, squeeze_axis=squeeze_axis, sections=sections
    )


for _name, _place in {"h": 1, "d": 2}.items():
    reads(f"_npi_{_name}split")(partial(read_numpy_split, _place))


@reads_second("_npi_hsplit", ignore=("axis",))
def read_second_hsplit(g, x, *, indices: Ints, squeeze_axis=False, sections=0):
    """MXNet 2.0 looks at no ``axis``, and writes 0."""
    frame = {"squeeze_axis": squeeze_axis, "sections": sections}
    return read_split_v2(g, x, indices=indices, axis=min(1, x.rank - 1), **frame)


@reads("_npi_broadcast_to")
def read_numpy_broadcast_to(g, x, *, shape: Ints = ()):
    """-2 keeps a size."""
    return g.Expand(x, [1 if d == -2 else d for d in shape])
