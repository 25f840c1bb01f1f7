"""Pooling."""

from __future__ import annotations

import math
from functools import partial

from serde.errors import require
from serde.ir.geometry import Ints, window_output
from serde.ir.graph import DType, Value
from serde.spec.expressions import lowest_value
from serde.version_converter.adapters.pooling import pad_window_axes

from ..rules import reads, reads_between
from ..target import legalizations, require_symmetric_pads, writes
from .convolution import apply_channels_first, window
from .padding import is_symmetric
from .shared_attributes import with_attributes_of
from .unary import cube_root

GLOBAL = {"avg": "GlobalAveragePool", "max": "GlobalMaxPool"}


@reads("Pooling", ignore=("cudnn_off",))
def read_pooling(
    g, x, *, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(),
    pad=(), p_value: int | None = None, count_include_pad: bool | None = None,
    layout: str | None = None, output_size: Ints | None = None,
):  # fmt: skip
    """``same`` is registered and has never run; ``lp`` is a signed root: of a sum where p is 1."""
    require(pool_type in POOLS, f"pool_type={pool_type!r} is unknown")
    require(output_size is None, f"output_size={output_size}, which MXNet does not look at")
    require(pooling_convention in ("valid", "full"), f"pooling_convention={pooling_convention!r}")
    require(pool_type != "lp" or p_value in (1, 2, 3), f"p_value={p_value}")
    frame = None if global_pool else window(kernel, stride, (), pad)
    require(frame is None or min(frame["pads"], default=0) >= 0, f"pad={pad}")

    def pool(x, kind):
        if frame is None:
            return pool_globally(g, x, kind)
        up = pooling_convention == "full" and needs_ceil(x, frame)
        include = count_include_pad is not False
        if kind != "avg" and pads_reach_kernel(frame):
            x, inside = pad_input(g, x, frame, lowest_value(x) if kind == "max" else 0)
            return POOLS[kind](g, x, inside, up, include)
        return POOLS[kind](g, x, frame, up, include)

    def apply(x):
        if pool_type != "lp" or p_value == 2:
            return pool(x, pool_type)
        if p_value == 1:
            return pool(x, "sum")
        return cube_root(g, pool(g.Mul(g.Mul(x, x), x), "sum"))

    return apply_channels_first(g, layout, apply, x)


@reads_between(0, 10300)("Pooling", ignore=("cudnn_off",))
@with_attributes_of(read_pooling, leave_out=("output_size",))
def read_old_pooling(g, x, *, pool_type="max", global_pool=False, **attrs):
    """Before MXNet 1.3 the mean over a window that lies outside is NaN."""
    if pool_type == "avg" and attrs["pooling_convention"] == "full" and not global_pool:
        frame = window(attrs["kernel"], attrs["stride"], (), attrs["pad"])
        outside = may_drop(x, frame) or may_lie_outside(x, frame, True)
        require(not outside, "a window that lies outside, before MXNet 1.3")
    return read_pooling(g, x, pool_type=pool_type, global_pool=global_pool, **attrs)


@reads_between(0, 10200)("Pooling", ignore=("cudnn_off",))
@with_attributes_of(read_old_pooling)
def read_oldest_pooling(g, x, *, global_pool=False, pad=(), **attrs):
    """Before MXNet 1.2 a global pooling counts its pads."""
    padded = global_pool and any(pad)
    require(not padded, f"global_pool with pad={pad}, which MXNet counts before 1.2")
    return read_old_pooling(g, x, global_pool=global_pool, pad=pad, **attrs)


@reads("Pooling_v1")
def read_pooling_v1(
    g, x, *, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(),
    pad=(),
):  # fmt: skip
    """Its pads are zeros, also for a maximum, and its mean is over the whole window."""
    require(pool_type in ("avg", "max", "sum"), f"pool_type={pool_type!r} is unknown")
    if global_pool:
        return pool_globally(g, x, pool_type)
    x, frame = pad_input(g, x, window(kernel, stride, (), pad), 0)
    up = pooling_convention == "full" and needs_ceil(x, frame)
    if pool_type == "max":
        return maximum(g, x, frame, up, True)
    y = total(g, x, frame, up)
    return y if pool_type == "sum" else g.Mul(y, 1 / math.prod(kernel))


def pool_globally(g, x: Value, kind):
    if kind in GLOBAL:
        return g[GLOBAL[kind]](x)
    return g["ReduceSum" if kind == "sum" else "ReduceL2"](x, range(2, x.rank), keepdims=1)


def maximum(g, x: Value, frame, up, include):
    if up and may_drop(x, frame):
        x, frame = pad_input(g, x, frame, lowest_value(x), ceil_mode_overhang(x, frame))
        up = False
    return g.MaxPool(x, ceil_mode=int(up), **frame)


def average(g, x: Value, frame, up, include):
    """The mean of the part of a window on the input, or on the input and its pads."""
    reach = pads_reach_kernel(frame)
    if include and any(frame["pads"]) and (up or reach):
        x, frame = pad_input(g, x, frame, 0)
    if (up and may_drop(x, frame)) or (reach and not include):
        count = total(g, g.full_like(x, 1), frame, up)
        is_volume = x.rank == 5  # whose mean of nothing is NaN, where an image's is 0
        require(not is_volume or not may_lie_outside(x, frame, up), "a window that lies outside")
        return g.Div(total(g, x, frame, up), count if is_volume else g.Max(count, 1.0))
    include = int(include and any(frame["pads"]))
    return g.AveragePool(x, ceil_mode=int(up), count_include_pad=include, **frame)


def total(g, x: Value, frame, up, include=True):
    """A sum is a mean over the whole window, zeros included, times its size."""
    if up or pads_reach_kernel(frame):
        x, frame = pad_input(g, x, frame, 0, ceil_mode_overhang(x, frame) if up else ())
    mean = g.AveragePool(x, count_include_pad=int(any(frame["pads"])), **frame)
    return g.Mul(mean, g.scalar(math.prod(frame["kernel_shape"]), x))


def euclidean(g, x: Value, frame, up, include):
    if up:
        x, frame = pad_input(g, x, frame, 0, ceil_mode_overhang(x, frame))
    return g.LpPool(x, p=2, **frame)


POOLS = {"avg": average, "lp": euclidean, "max": maximum, "sum": total}


def window_sizes(x: Value, frame):
    """Per axis: size or None, kernel, stride, pads at both ends."""
    half = len(frame["kernel_shape"])
    ends = zip(frame["pads"][:half], frame["pads"][half:], strict=True)
    dims = (d if isinstance(d, int) else None for d in x.ranked_shape[2:])
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
        for size, k, s, ends in window_sizes(x, frame)
    )


def may_drop(x: Value, frame) -> bool:
    """Whether ONNX may drop the last window: one that starts behind the input and its left pad."""
    for size, k, s, (begin, end) in window_sizes(x, frame):
        if size is None:
            if s + end > k:
                return True
        elif (window_output(size, k, s, 1, begin + end, True) - 1) * s >= size + begin:
            return True
    return False


def may_lie_outside(x: Value, frame, up) -> bool:
    """Whether a window may begin behind the input's end, or end before it begins."""
    for size, k, s, (begin, end) in window_sizes(x, frame):
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


def ceil_mode_overhang(x: Value, frame) -> Ints:
    """Per axis: how far the last 'full' window can reach behind the input and its pad."""
    return tuple(
        s - 1
        if size is None
        else max((window_output(size, k, s, 1, sum(ends), True) - 1) * s + k - size - sum(ends), 0)
        for size, k, s, ends in window_sizes(x, frame)
    )


def pad_input(g, x: Value, frame, fill, more: Ints = ()):
    """Pad ``x`` itself, by ``more`` behind it, so that the window's own pads are none."""
    half = len(frame["kernel_shape"])
    ends = [p + m for p, m in zip(frame["pads"][half:], more or (0,) * half, strict=True)]
    pads: Ints = (0, 0, *frame["pads"][:half], 0, 0, *ends)
    return g.Pad(x, pads, g.scalar(fill, x)), {**frame, "pads": (0,) * 2 * half}


def write_pool(
    kind, s, x, *, kernel_shape, strides, dilations, pads, ceil_mode,
    count_include_pad: int | None = None,
):  # fmt: skip
    require(set(dilations) == {1}, f"dilations={dilations}")
    require(x.type.kind == "f", f"pooling of {x.type.value} elements")
    window = {"kernel_shape": kernel_shape, "strides": strides, "pads": pads}
    require(not ceil_mode or not may_drop(x, window), "a last window in the pads")
    frame = {
        "pool_type": kind, "pooling_convention": "full" if ceil_mode else "valid",
        "kernel": kernel_shape, "stride": strides, "pad": require_symmetric_pads(pads),
    }  # fmt: skip
    if kind == "max":
        return s.Pooling(x, **frame)
    if s.release.has("Pooling", count_include_pad=True):
        return s.Pooling(x, count_include_pad=bool(count_include_pad), **frame)
    mean = s.Pooling(x, **frame)  # before MXNet 1.3 of the pads too
    if count_include_pad or not any(pads):
        return mean
    return s.elemwise_div(mean, s.Pooling(s.ones_like(x), **frame))


writes("AveragePool")(partial(write_pool, "avg"))


@writes("MaxPool", only={"storage_order": (0,)})
@with_attributes_of(write_pool, leave_out=("count_include_pad",))
def write_max_pool(s, x, **window):
    return write_pool("max", s, x, **window)


def write_global_pool(kind, s, x):
    ones = (1,) * (x.rank - 2)
    return s.Pooling(x, pool_type=kind, global_pool=True, kernel=ones)


writes("GlobalMaxPool")(partial(write_global_pool, "max"))
writes("GlobalAveragePool")(partial(write_global_pool, "avg"))


@legalizations("MaxPool")
def legalize_max_pool(
    g, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, outputs: int = 1
):
    """MXNet pads both ends alike, has no gaps, and keeps windows that begin in the padding."""
    frame = {"kernel_shape": kernel_shape, "strides": strides, "pads": pads}
    spread = set(dilations) != {1}
    if spread or (ceil_mode and (outputs > 1 or may_drop(x, frame))):
        return g.decompose(
            "MaxPool", 10, x, ceil_mode=ceil_mode, dilations=dilations, outputs=outputs,
            storage_order=storage_order, **frame,
        )  # fmt: skip
    if outputs > 1:
        return g.decompose("MaxPool", 8, x, storage_order=storage_order, outputs=outputs, **frame)
    if is_symmetric(pads):
        return None
    x = pad_window_axes(g, x, pads, -math.inf)
    return g.MaxPool(x, kernel_shape=kernel_shape, strides=strides, ceil_mode=ceil_mode)


@legalizations("AveragePool")
def legalize_average_pool(
    g, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad
):
    frame = {"kernel_shape": kernel_shape, "strides": strides}
    gaps = set(dilations) != {1}
    uneven = not is_symmetric(pads) or may_drop(x, {**frame, "pads": pads})
    if gaps or (ceil_mode and uneven):
        more, version = ({"dilations": dilations}, 19) if gaps else ({}, 10)
        return g.decompose(
            "AveragePool", version, x, ceil_mode=ceil_mode, count_include_pad=count_include_pad,
            pads=pads, **frame, **more,
        )  # fmt: skip
    if is_symmetric(pads):
        return None
    sums = g.AveragePool(pad_window_axes(g, x, pads), count_include_pad=1, **frame)
    if count_include_pad:
        return sums
    counted = pad_window_axes(g, g.full_like(x, 1.0), pads)
    return g.Div(sums, g.AveragePool(counted, count_include_pad=1, **frame))


@legalizations("LpPool")
def legalize_lp_pool(g, x, *, p, kernel_shape, strides, dilations, pads, ceil_mode):
    """The root of the sum, which is an average times the size of the window."""
    frame = {"kernel_shape": kernel_shape, "strides": strides, "pads": pads}
    if x.type is DType.FLOAT16:
        form = {"p": p, "dilations": dilations, "ceil_mode": ceil_mode, **frame}
        return g.compute_in_float32(lambda g, x: g.LpPool(x, **form), x)
    if set(dilations) != {1} or ceil_mode:
        return g.decompose("LpPool", 18, x, p=p, ceil_mode=ceil_mode, dilations=dilations, **frame)
    powers = g.Pow(g.Abs(x), float(p))
    mean = g.AveragePool(powers, count_include_pad=1, **frame)
    return g.Pow(g.Mul(mean, float(math.prod(kernel_shape))), 1.0 / p)
