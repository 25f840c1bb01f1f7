"""Pooling."""

from __future__ import annotations

import math

from serde.decompositions.expressions import full_like, lowest, scalar
from serde.errors import require
from serde.ir.geometry import Ints, window_output
from serde.ir.graph import Value

from ..rules import reads
from .convolution import in_channels_first, window
from .unary import cube_root

GLOBAL = {"avg": "GlobalAveragePool", "max": "GlobalMaxPool"}


@reads("Pooling", ignore=("cudnn_off",))
def read_pooling(
    g, x, *, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(),
    pad=(), p_value: int | None = None, count_include_pad: bool | None = None,
    layout: str | None = None,
):  # fmt: skip
    """``same`` is registered and has never run; ``lp`` is a signed root: of a sum where p is 1."""
    require(pool_type in POOLS, f"pool_type={pool_type!r} is unknown")
    require(pooling_convention in ("valid", "full"), f"pooling_convention={pooling_convention!r}")
    require(pool_type != "lp" or p_value in (1, 2, 3), f"p_value={p_value}")
    frame = None if global_pool else window(kernel, stride, (), pad)
    require(frame is None or min(frame["pads"], default=0) >= 0, f"pad={pad}")

    def pooled(x, kind):
        if frame is None:
            return everything(g, x, kind)
        up = pooling_convention == "full" and needs_ceil(x, frame)
        include = count_include_pad is not False
        if kind != "avg" and pads_reach_kernel(frame):
            x, inside = padded(g, x, frame, lowest(x) if kind == "max" else 0)
            return POOLS[kind](g, x, inside, up, include)
        return POOLS[kind](g, x, frame, up, include)

    def apply(x):
        if pool_type != "lp" or p_value == 2:
            return pooled(x, pool_type)
        return pooled(x, "sum") if p_value == 1 else cube_root(g, pooled(cube(g, x), "sum"))

    return in_channels_first(g, layout, apply, x)


@reads("Pooling_v1")
def read_pooling_v1(
    g, x, *, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(),
    pad=(),
):  # fmt: skip
    """Its pads are zeros, also for a maximum, and its mean is over the whole window."""
    require(pool_type in ("avg", "max", "sum"), f"pool_type={pool_type!r} is unknown")
    if global_pool:
        return everything(g, x, pool_type)
    x, frame = padded(g, x, window(kernel, stride, (), pad), 0)
    up = pooling_convention == "full" and needs_ceil(x, frame)
    if pool_type == "max":
        return maximum(g, x, frame, up, True)
    y = total(g, x, frame, up)
    return y if pool_type == "sum" else g.Mul(y, 1 / math.prod(kernel))


def cube(g, x: Value):
    return g.Mul(g.Mul(x, x), x)


def everything(g, x: Value, kind):
    if kind in GLOBAL:
        return g[GLOBAL[kind]](x)
    return g["ReduceSum" if kind == "sum" else "ReduceL2"](x, range(2, x.rank), keepdims=1)


def maximum(g, x: Value, frame, up, include):
    if up and may_drop(x, frame):
        x, frame = padded(g, x, frame, lowest(x), beyond(x, frame))
        up = False
    return g.MaxPool(x, ceil_mode=int(up), **frame)


def average(g, x: Value, frame, up, include):
    """The mean of the part of a window on the input, or on the input and its pads."""
    reach = pads_reach_kernel(frame)
    if include and any(frame["pads"]) and (up or reach):
        x, frame = padded(g, x, frame, 0)
    if (up and may_drop(x, frame)) or (reach and not include):
        count = total(g, full_like(g, x, 1), frame, up)
        is_volume = x.rank == 5  # whose mean of nothing is NaN, where an image's is 0
        require(not is_volume or not may_lie_outside(x, frame, up), "a window that lies outside")
        return g.Div(total(g, x, frame, up), count if is_volume else g.Max(count, 1.0))
    include = int(include and any(frame["pads"]))
    return g.AveragePool(x, ceil_mode=int(up), count_include_pad=include, **frame)


def total(g, x: Value, frame, up, include=True):
    """A sum is a mean over the whole window, zeros included, times its size."""
    if up or pads_reach_kernel(frame):
        x, frame = padded(g, x, frame, 0, beyond(x, frame) if up else ())
    mean = g.AveragePool(x, count_include_pad=int(any(frame["pads"])), **frame)
    return g.Mul(mean, scalar(g, math.prod(frame["kernel_shape"]), x))


def euclidean(g, x: Value, frame, up, include):
    if up:
        x, frame = padded(g, x, frame, 0, beyond(x, frame))
    return g.LpPool(x, p=2, **frame)


POOLS = {"avg": average, "lp": euclidean, "max": maximum, "sum": total}


def sizes(x: Value, frame):
    """Per axis: size or None, kernel, stride, pads at both ends."""
    half = len(frame["kernel_shape"])
    ends = zip(frame["pads"][:half], frame["pads"][half:], strict=True)
    dims = (d if isinstance(d, int) else None for d in x.known[2:])
    return list(zip(dims, frame["kernel_shape"], frame["strides"], ends, strict=True))


def needs_ceil(x: Value, frame) -> bool:
    """Whether rounding up gives another output size, or may where the size is not known."""
    return any(
        (size is None and s > 1)
        or (
            size is not None
            and window_output(size, k, s, 1, sum(ends), True)
            != window_output(size, k, s, 1, sum(ends), False)
        )
        for size, k, s, ends in sizes(x, frame)
    )


def may_drop(x: Value, frame) -> bool:
    """Whether ONNX may drop the last window: one that starts behind the input and its left pad."""
    for size, k, s, (begin, end) in sizes(x, frame):
        if size is None:
            if s + end > k:
                return True
        elif (window_output(size, k, s, 1, begin + end, True) - 1) * s >= size + begin:
            return True
    return False


def may_lie_outside(x: Value, frame, up) -> bool:
    """Whether a window may begin behind the input's end, or end before it begins."""
    for size, k, s, (begin, end) in sizes(x, frame):
        if size is None:
            behind = end + (s - 1 if up else 0) > k
        else:
            behind = (window_output(size, k, s, 1, begin + end, up) - 1) * s > size + begin
        if behind or begin > k:
            return True
    return False


def pads_reach_kernel(frame) -> bool:
    """Whether a window may lie on pads alone: runtimes pad by less than a window."""
    return any(p >= k for p, k in zip(frame["pads"], frame["kernel_shape"] * 2, strict=True))


def beyond(x: Value, frame) -> Ints:
    """Per axis: how far the last 'full' window can reach behind the input and its pad."""
    return tuple(
        s - 1
        if size is None
        else max((window_output(size, k, s, 1, sum(ends), True) - 1) * s + k - size - sum(ends), 0)
        for size, k, s, ends in sizes(x, frame)
    )


def padded(g, x: Value, frame, fill, more: Ints = ()):
    """Pad ``x`` itself, by ``more`` behind it, so that the window's own pads are none."""
    half = len(frame["kernel_shape"])
    ends = [p + m for p, m in zip(frame["pads"][half:], more or (0,) * half, strict=True)]
    pads: Ints = (0, 0, *frame["pads"][:half], 0, 0, *ends)
    return g.Pad(x, pads, scalar(g, fill, x)), {**frame, "pads": (0,) * 2 * half}
