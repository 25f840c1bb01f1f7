"""Layers that move windows, padding, resizing and powers: what PyTorch has otherwise than ONNX."""

from __future__ import annotations

import numpy as np

from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.legalize.forms import windows
from serde.legalize.forms.form import Call, Form
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.padding import decompose_pad, expand_pads
from serde.version_converter.adapters.pooling import Windows
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling, coordinates, nearest

FLOATS = frozenset({DType.FLOAT32, DType.FLOAT64})
EXACT = 1 << 53  # integers below are float64
LONGEST = 1 << 12  # sizes that places are computed for


def add_pytorch_rules(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Pad")(pad)
    legalize("Pow")(power)
    legalize("Resize")(resize)


def exceeds_volume(x: Value, w: Windows) -> bool:
    """Whether a window of three axes is larger than the data, which PyTorch takes no means of."""
    sizes = zip(x.ranked_shape[2:], w.covers, strict=True)
    return x.rank == 5 and any(isinstance(n, int) and n < k for n, k in sizes)


def is_unusual(call: Call) -> bool:
    """Whether PyTorch takes other means: it pads by half a window at most, alike at both ends."""
    w = call.window
    return windows.is_fixed(call) and (not windows.are_even(w) or exceeds_volume(call.x, w))


def is_uneven(call: Call) -> bool:
    """Whether PyTorch takes no such maxima, nor the order of places that no one asks for."""
    is_usual = windows.are_even(call.window) and not call.attrs["storage_order"]
    return windows.is_fixed(call) and not is_usual


WINDOWS = {
    "MaxPool": [
        windows.PLACES, windows.ZEROS_BEFORE, windows.CEIL_MODE.where(is_uneven),
        Form("uneven pads", is_uneven, windows.pad_maximum),
    ],
    "AveragePool": [
        windows.AVERAGE_DILATIONS, windows.ZEROS_BEFORE,
        windows.CEIL_MODE.where(windows.is_fixed).where(
            lambda call: any(call.window.pads or ()) or is_unusual(call)
        ),
        Form("uneven pads", is_unusual, windows.pad_average),
    ],
    "ConvTranspose": [windows.UNEVEN_CROP],
    "LpPool": windows.LP_POOL,
}  # fmt: skip


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


def power(g, x, y):
    """``Pow``: PyTorch promotes both to one type, and has no integers to negative powers."""
    is_whole = y.type.kind in "iu" and y.tensor is not None and bool((y.array() >= 0).all())
    if x.type.kind != "f" and not is_whole:
        powers = g.Pow(g.cast(x, DType.FLOAT64), g.cast(y, DType.FLOAT64))
        return g.cast_like(powers, x)
    if y.type.kind == "f" and y.type.numpy.itemsize > x.type.numpy.itemsize:
        return g.cast_like(g.Pow(g.cast_like(x, y), y), x)
    return None if x.type is y.type else g.Pow(x, g.cast_like(y, x))


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
    pytorch_places = np.minimum(np.floor(np.arange(m, dtype=np.float32) * step), n - 1)
    return how.coordinates != "tf_crop_and_resize" and bool(
        (pytorch_places == nearest(at, n, how.nearest_mode)).all()
    )
