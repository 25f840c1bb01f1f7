"""Layers that move windows, and resizing: what ncnn has otherwise than ONNX."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.pooling import Windows, pad_window_axes
from serde.version_converter.adapters.resize import every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling

from ..onnx2torch.windows import interpolates
from ..pooling import add_rules, are_even, average_padded, keep_apart

LEAST = -float(np.finfo(np.float32).max)  # of a window that lies in the padding


def legalize_windows(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    add_rules(legalize, average_pool, conv, conv_transpose, lp_pool, max_pool, resize)


def max_pool(g, x, *, storage_order: int, outputs: int = 1, **window):
    """``MaxPool`` without dilations and places, padded alike at both ends."""
    w = Windows(**window)
    form = {"storage_order": storage_order}
    require(outputs == 1, "ncnn has no places of the largest elements")
    pads, n = w.reach(x), len(w.kernel_shape)
    if pads is None or (w.is_spread and not any(pads)):
        return g.decompose("MaxPool", 10, x, **form, **window)
    bare = {**window, "ceil_mode": 0}
    is_alike = pads[:n] == pads[n:] or (fills_windows(x, w, pads) and not any(pads[:n]))
    if w.is_spread or not is_alike:
        return g.MaxPool(pad_window_axes(g, x, pads, LEAST), **{**bare, "pads": None})
    return g.MaxPool(x, **{**bare, "pads": pads}) if w.ceil_mode else None


def fills_windows(x, w: Windows, pads) -> bool:
    """Whether windows reach the end: ncnn has one more otherwise, where pads are not alike."""
    ends = pads[len(w.kernel_shape) :]
    axes = zip(x.ranked_shape[2:], ends, w.kernel_shape, w.strides, strict=True)
    return all(isinstance(size, int) and (size + end - k) % s == 0 for size, end, k, s in axes)


def average_pool(g, x, *, count_include_pad: int, **window):
    """``AveragePool`` without dilations, padded alike at both ends."""
    w = Windows(**window)
    form = {"count_include_pad": count_include_pad}
    if w.is_spread and w.auto_pad == "NOTSET":
        return average_spread(g, x, w, count_include_pad)
    if w.is_spread:
        return g.decompose("AveragePool", 19, x, **form, **window)
    if (apart := keep_apart(g, x)) is not x:
        return g.AveragePool(apart, **form, **window)
    if w.ceil_mode or w.auto_pad != "NOTSET":
        return g.decompose("AveragePool", 10, x, **form, **window)
    return None if are_even(w) else average_padded(g, x, w, count_include_pad)


def average_spread(g, x, w: Windows, count_include_pad: int):
    """``AveragePool`` with gaps in its windows: sums, divided by how many elements each holds."""
    pads, n = w.reach(x), len(w.kernel_shape)
    own = (w.pads if count_include_pad else None) or (0,) * 2 * n
    counts = np.ones((1,) * (n + 2), np.float32)
    for at, size in enumerate(x.static_shape[2:]):
        last = pads[at] + size + pads[at + n] - w.covers[at]
        starts = np.arange(0, last + 1, w.strides[at]) - pads[at]
        places = starts[:, None] + w.gaps[at] * np.arange(w.kernel_shape[at])
        inside = ((places >= -own[at]) & (places < size + own[at + n])).sum(1)
        counts = counts * inside.reshape([-1 if a == at + 2 else 1 for a in range(n + 2)])
    return g.Mul(sum_windows(g, x, w, pads), (1 / np.maximum(counts, 1)).astype(np.float32))


def sum_windows(g, x, w: Windows, pads):
    """Sums of windows, by a convolution of each channel with ones."""
    channels = x.static_shape[1]
    ones = np.ones((channels, 1, *w.kernel_shape), np.float32)
    window = {"kernel_shape": w.kernel_shape, "strides": w.strides, "dilations": w.gaps}
    return g.Conv(x, ones, group=channels, pads=pads, **window)


def lp_pool(g, x, *, p: int, **window):
    """``LpPool``: a root of sums of powers."""
    w = Windows(**window)
    if (pads := w.reach(x)) is None:
        return g.decompose("LpPool", 18, x, p=p, **window)
    return g.Pow(sum_windows(g, g.Pow(g.Abs(x), float(p)), w, pads), 1 / p)


def conv(g, x, w, b=None, **frame):
    """``Conv``: ncnn takes no computed bias of volumes, and none beside constants."""
    return add_bias(g, "Conv", x, w, b, **frame)


def add_bias(g, op: str, x, w, b, **frame):
    """A sum, where ncnn has no layer with this bias."""
    if b is None or b.tensor is not None or (x.tensor is None and x.rank < 5):
        return None
    y = g[op](x, w, **frame)
    return g.Add(y, g.Unsqueeze(b, list(range(1, x.rank - 1))))


def conv_transpose(g, x, w, b=None, *, pads=(), **frame):
    """``ConvTranspose``: ncnn crops both ends alike."""
    require("auto_pad" not in frame and "output_shape" not in frame, "pads of sizes by name")
    n = len(pads) // 2
    if pads[:n] == pads[n:] and all(p >= 0 for p in pads):
        return add_bias(g, "ConvTranspose", x, w, b, pads=pads, **frame)
    y = g.ConvTranspose(x, w, b, pads=(0,) * 2 * n, **frame)
    return pad_window_axes(g, y, tuple(-p for p in pads))


def resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str, axes=None, **sampling
):
    """``Resize`` of images, where ncnn looks at the same places."""
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=keep_aspect_ratio_policy, axes=axes
    )
    how = Sampling.of(sampling)
    is_one = scales is None or sizes is None
    factors = static_scales(x, scales, sizes)
    if is_one and factors is not None and all(scale == 1 for _, scale in factors):
        return g.Identity(x)
    is_alike = is_one and interpolates(x, how, factors, sizes is not None)
    require(is_alike and x.rank == 4, f"ncnn has no Resize with {how}")
    attrs = {**sampling, "nearest_mode": "floor"}
    if how.mode == "nearest":
        attrs["coordinate_transformation_mode"] = "asymmetric"
    return g.as_is("Resize", (x, None, scales, sizes), attrs)
