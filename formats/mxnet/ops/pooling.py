"""Pooling."""

from __future__ import annotations

from serde.errors import require
from serde.geometry import Ints, inverse, window_output
from serde.graph import Value
from serde.idioms import lowest, scalar

from ..rules import reads
from .convolution import CHANNELS_FIRST, CHANNELS_LAST, channels_first, window

GLOBAL = {"avg": "GlobalAveragePool", "max": "GlobalMaxPool", "sum": "ReduceSum"}


@reads("Pooling", ignore=("cudnn_off",))
def read_pooling(
    g, x, *, kernel=(), pool_type="max", global_pool=False, pooling_convention="valid", stride=(),
    pad=(), p_value: int | None = None, count_include_pad: bool | None = None, layout="None",
):  # fmt: skip
    known = layout in CHANNELS_FIRST + CHANNELS_LAST
    require(known and pool_type in ("avg", "max", "sum", "lp"), f"{layout=} {pool_type=}")
    order = channels_first(x.rank) if layout in CHANNELS_LAST else None
    x = x if order is None else g.Transpose(x, perm=order)
    if global_pool:
        y = global_pooling(g, x, pool_type, p_value)
    else:
        frame = window(kernel, stride, (), pad)
        include = count_include_pad is not False
        y = pooling(g, x, pool_type, frame, pooling_convention, p_value, include)
    return y if order is None else g.Transpose(y, perm=inverse(order))


def global_pooling(g, x: Value, pool_type, p_value):
    if pool_type == "lp":
        return g.GlobalLpPool(x, p=p_value)
    if pool_type == "sum":
        return g.ReduceSum(x, list(range(2, x.rank)), keepdims=1)
    return g[GLOBAL[pool_type]](x)


def pooling(g, x: Value, pool_type, frame, convention, p_value, include):
    """One window operator, behind a Pad where the window's rule is not ONNX's own."""
    require(convention in ("valid", "full", "same"), f"pooling_convention={convention!r}")
    require(convention != "same", "pooling_convention='same'")
    up = convention == "full" and needs_ceil(x, frame)
    if up and may_drop(x, frame):
        fill = lowest(x) if pool_type == "max" else 0
        x, frame = padded(g, x, frame, fill)
        require(not may_drop(x, frame), "a 'full' window that lies wholly behind the input")
    elif up and pool_type != "max" and include and any(frame["pads"]):
        x, frame = padded(g, x, frame, 0)
    if pool_type == "max":
        return g.MaxPool(x, ceil_mode=int(up), **frame)
    if pool_type == "lp":
        return g.LpPool(x, ceil_mode=int(up), p=p_value, **frame)
    if pool_type == "sum":
        return summed(g, x, frame, up)
    padded_in = int(include and any(frame["pads"]))
    return g.AveragePool(x, ceil_mode=int(up), count_include_pad=padded_in, **frame)


def summed(g, x: Value, frame, up):
    """A sum is a mean over the whole window, padding included, times its size."""
    require(not up, "sum pooling with pooling_convention='full' and a last window cut short")
    size = 1
    for k in frame["kernel_shape"]:
        size *= k
    mean = g.AveragePool(x, count_include_pad=1, **frame)
    return g.Mul(mean, scalar(g, size, x))


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


def padded(g, x: Value, frame, fill):
    """Pad ``x`` itself, so that the window's own pads are none."""
    half = len(frame["kernel_shape"])
    pads: Ints = (0, 0, *frame["pads"][:half], 0, 0, *frame["pads"][half:])
    return g.Pad(x, pads, scalar(g, fill, x)), {**frame, "pads": (0,) * 2 * half}
