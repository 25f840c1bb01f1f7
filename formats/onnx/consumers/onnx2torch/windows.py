"""Layers that move windows, padding and resizing: what PyTorch has otherwise than ONNX."""

from __future__ import annotations

import math

import numpy as np

from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.indexing import extreme_value
from serde.version_converter.adapters.padding import decompose_pad, expand_pads
from serde.version_converter.adapters.pooling import Windows, pad_window_axes
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling, coordinates, nearest

from ..pooling import add_rules, are_even, average_padded, keep_apart

FLOATS = frozenset({DType.FLOAT32, DType.FLOAT64})
EXACT = 1 << 53  # integers below are float64
LONGEST = 1 << 12  # sizes that places are computed for


def legalize_windows(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    add_rules(legalize, average_pool, conv_transpose, lp_pool, max_pool, pad, resize)


def max_pool(g, x, *, storage_order: int, outputs: int = 1, **window):
    """``MaxPool``: other padding is written before it."""
    w = Windows(**window)
    if outputs > 1:
        form = {"storage_order": storage_order, "outputs": outputs}
        return g.decompose("MaxPool", 8, x, **form, **window)
    if (apart := keep_apart(g, x)) is not x:
        return g.MaxPool(apart, storage_order=storage_order, **window)
    if w.auto_pad != "NOTSET" or (are_even(w) and not storage_order):
        return None
    if w.ceil_mode:
        return g.decompose("MaxPool", 10, x, storage_order=storage_order, **window)
    padded = pad_window_axes(g, x, w.pads or (), extreme_value(x.type, False)) if w.pads else x
    return g.MaxPool(padded, **{**window, "pads": None})


def average_pool(g, x, *, count_include_pad: int, **window):
    """``AveragePool``: other padding is written before it, and what it adds to counts behind."""
    w = Windows(**window)
    form = {"count_include_pad": count_include_pad, **window}
    if w.is_spread:
        return g.decompose("AveragePool", 19, x, **form)
    if (apart := keep_apart(g, x)) is not x:
        return g.AveragePool(apart, **form)
    is_usual = are_even(w) and not exceeds_volume(x, w)
    if w.auto_pad != "NOTSET" or (is_usual and not (w.ceil_mode and any(w.pads or ()))):
        return None
    if w.ceil_mode:
        return g.decompose("AveragePool", 10, x, **form)
    return average_padded(g, x, w, count_include_pad)


def exceeds_volume(x: Value, w: Windows) -> bool:
    """Whether a window of three axes is larger than the data, which PyTorch takes no means of."""
    sizes = zip(x.ranked_shape[2:], w.covers, strict=True)
    return x.rank == 5 and any(isinstance(n, int) and n < k for n, k in sizes)


def lp_pool(g, x, *, p: int, **window):
    """``LpPool``: PyTorch has means of windows, and no other sums."""
    w = Windows(**window)
    if w.is_spread or w.ceil_mode or w.auto_pad != "NOTSET":
        return g.decompose("LpPool", 18, x, p=p, **window)
    powers = g.Pow(g.Abs(x), float(p))
    means = g.AveragePool(powers, count_include_pad=1, **w.basic)
    return g.Pow(g.Mul(means, float(math.prod(w.kernel_shape))), 1 / p)


def conv_transpose(g, x, w, b=None, *, pads: Ints = (), **frame):
    """``ConvTranspose``: PyTorch crops both ends alike."""
    n = len(pads) // 2
    if "auto_pad" in frame or "output_shape" in frame:
        return None
    if pads[:n] == pads[n:] and all(p >= 0 for p in pads):
        return None
    y = g.ConvTranspose(x, w, b, pads=(0,) * 2 * n, **frame)
    return pad_window_axes(g, y, tuple(-p for p in pads))


def pad(g, x, pads, fill=None, axes=None, *, mode: str):
    """``Pad``: PyTorch fills with what a float64 holds, and repeats the inner axes of floats."""
    if mode == "wrap":
        return g.decompose("Pad", 19, x, pads, fill, axes, mode=mode)
    if mode == "constant":
        if fill is None or fill.rank:
            return None if fill is None else g.Pad(x, pads, g.Reshape(fill, []), axes, mode=mode)
        is_wide = x.type in (DType.INT64, DType.UINT64)
        if not is_wide or (fill.tensor is not None and abs(int(fill.array())) <= EXACT):
            return None
    every = expand_pads(g, x, pads, axes)
    if mode != "constant" and repeats_inner_axes(x, every, mode):
        return None if axes is None else g.Pad(x, every, mode=mode)
    return decompose_pad(g, x, every, fill, mode)


def repeats_inner_axes(x: Value, pads: Value, mode: str) -> bool:
    """Whether PyTorch pads a tensor with its own elements so."""
    if pads.tensor is None or x.type not in FLOATS or not 2 < x.rank < 6:
        return False
    listed, rank = pads.ints(), x.rank
    ends = [(listed[a], listed[a + rank]) for a in range(rank)]
    if any(p < 0 for p in listed) or any(map(any, ends[:2])):
        return False
    sizes = zip(x.ranked_shape[2:], ends[2:], strict=True)
    return mode == "edge" or all(
        not any(pair) or (isinstance(n, int) and max(pair) < n) for n, pair in sizes
    )


def resize(
    g, x, roi=None, scales=None, sizes=None, *, keep_aspect_ratio_policy: str,
    axes: Ints | None = None, **sampling,
):  # fmt: skip
    """``Resize``: PyTorch's interpolation where it looks at the same places."""
    how, policy = Sampling.of(sampling), keep_aspect_ratio_policy
    x, roi, scales, sizes = every_axis(
        g, x, roi, scales, sizes, keep_aspect_ratio_policy=policy, axes=axes
    )
    is_cropped = scales is not None and sizes is not None
    if is_cropped or not interpolates(x, how, static_scales(x, scales, sizes), sizes is not None):
        return decompose_resize(g, x, roi, scales, sizes, how)
    if how.mode == "nearest":
        sampling |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.as_is("Resize", (x, None, scales, sizes), sampling)


def interpolates(x: Value, how: Sampling, factors, by_size: bool) -> bool:
    """Whether PyTorch computes the same."""
    ranks = (4,) if how.mode == "cubic" else (3, 4, 5)
    if factors is None or x.type is not DType.FLOAT32 or x.rank not in ranks:
        return False
    if any(s != 1 for _, s in factors[:2]) or how.antialias:
        return False
    axes = [(n, m, s) for n, (m, s) in zip(x.ranked_shape, factors, strict=True)][2:]
    if how.mode == "nearest":
        return all(looks_at_same(n, m, s, how, by_size) for n, m, s in axes)
    if how.exclude_outside or (how.mode == "cubic" and how.cubic_coeff_a != -0.75):
        return False
    if how.coordinates == "half_pixel":
        return True
    is_whole = all(isinstance(n, int) and m == n * s for n, m, s in axes)
    is_aligned = how.coordinates in ("align_corners", "pytorch_half_pixel")
    return is_whole and is_aligned and all(m > 1 for _, m, _ in axes)


def looks_at_same(n, m, scale: float, how: Sampling, by_size: bool) -> bool:
    """Whether PyTorch picks the same elements, the product of a place and a step rounded down."""
    if not isinstance(n, int):
        n = LONGEST
        m = int(np.float32(n) * np.float32(scale))
    at = coordinates(n, m, 0.0 if by_size else scale, how.coordinates, (0.0, 1.0))
    step = np.float32(n) / np.float32(m) if by_size else np.float32(1.0 / float(np.float32(scale)))
    own = np.minimum(np.floor(np.arange(m, dtype=np.float32) * step), n - 1)
    return how.coordinates != "tf_crop_and_resize" and bool(
        (own == nearest(at, n, how.nearest_mode)).all()
    )
