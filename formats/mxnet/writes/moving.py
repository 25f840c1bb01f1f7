"""Operators that move elements without changing them."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import Dim

from ..target import number, writes
from .layers import padded
from .sizes import Sizes, along, extent

FAR = 2**31 - 1


@writes("Flatten")
def write_flatten(s, x, *, axis):
    if axis == 1:
        return s.Flatten(x)
    sizes = x.dims
    lead = 1
    for d in sizes[:axis]:
        lead *= d
    return s.Reshape(x, shape=(lead, -1))


@writes("Transpose")
def write_transpose(s, x, *, perm):
    require(len(perm) <= 6, f"an order of {len(perm)} axes: MXNet's have up to 6")
    return s.transpose(x, axes=perm) if len(perm) > 1 else x


@writes("Squeeze")
def write_squeeze(s, x, axes=None):
    chosen = axes.ints() if axes is not None else tuple(i for i, d in enumerate(x.dims) if d == 1)
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


@writes("Split", ignore=("num_outputs",))
def write_split(s, x, sizes=None, *, axis, outputs: int = 1):
    counts = sizes.ints() if sizes is not None else None
    require(counts is not None, "a split into parts of unknown sizes")
    require(min(counts, default=1) > 0, "a split with a part without elements")
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return tuple(
        s.slice_axis(x, axis=axis, begin=b, end=b + n) for b, n in zip(starts, counts, strict=True)
    )


@writes("Slice")
def write_slice(s, x, starts, ends, axes, steps, *, sizes: Sizes | None = None):
    """Ends may be named: they are sizes of tensors, to which the operand is cut."""
    bounds = [v if v is None else v.ints() for v in (starts, ends, axes, steps)]
    bounds[1] = sizes if sizes is not None else bounds[1]
    begin: list[int | None] = [None] * x.rank
    end, step, cut = [*begin], [*begin], x
    for first, last, axis, by in zip(*bounds, strict=True):
        step[axis] = by
        if not isinstance(last, str):
            begin[axis], end[axis] = bounds_of(x.known[axis], first, last, by)
            continue
        require(by > 0 and first >= 0, "a slice from its end up to a size the run tells")
        begin[axis] = first
        if last != x.known[axis]:
            like = along(s, extent(s, last), axis, x.rank)
            cut = s.slice_like(cut, like, axes=(axis,))
    return s.slice(cut, begin=tuple(begin), end=tuple(end), step=tuple(step))


def bounds_of(size: Dim, first: int, last: int, by: int) -> tuple[int | None, int | None]:
    """Where a slice begins and ends: within an axis of known size, as 1.5 asks for."""
    if isinstance(size, int):
        first, last, _ = slice(first, last, by).indices(size)
        require(len(range(first, last, by)), "a slice without elements")
        return first, None if last < 0 else last
    open_end = last >= FAR or (by < 0 and last <= -FAR)
    return None if by < 0 and first >= FAR else first, None if open_end else last


@writes("Gather")
def write_gather(s, x, index, *, axis):
    """ONNX counts negative indices from the end, as ``wrap`` does."""
    if index.rank == 0 and (at := number(index)) is not None:
        end = "None" if at == -1 else int(at) + 1
        one = s.slice_axis(x, axis=axis, begin=int(at), end=end)
    else:
        one = s.take(x, index, axis=axis, mode="wrap")
    return s.squeeze(one, axis=axis) if index.rank == 0 and x.rank > 1 else one


@writes("NonZero")
def write_non_zero(s, x):
    """As many places as there are is known when the model runs; a value of no axes has none."""
    return s.transpose(s["_npx_nonzero"](x), axes=(1, 0))


@writes("Pad")
def write_pad(s, x, pads, fill=None, axes=None, *, mode):
    require(axes is None and mode in ("constant", "edge", "reflect"), f"{mode} pads of some axes")
    widths = pads.ints()
    half = len(widths) // 2
    ends = list(zip(widths[:half], widths[half:], strict=True))
    require(x.type.kind == "f", f"pads of {x.type.value} elements")
    image = x.rank in (4, 5) and set(ends[:2]) == {(0, 0)} and min(widths) >= 0
    require(image, f"pads {widths}: MXNet pads the axes of images and volumes behind the channels")
    if mode == "constant":
        value = 0.0 if fill is None else number(fill)
        require(value is not None, "a dynamic fill")
        return padded(s, x, widths[2:half] + widths[half + 2 :], value)
    return s.Pad(x, mode=mode, pad_width=tuple(p for pair in ends for p in pair))


@writes("Tile")
def write_tile(s, x, repeats):
    return s.tile(x, reps=repeats.ints() or (1,))
