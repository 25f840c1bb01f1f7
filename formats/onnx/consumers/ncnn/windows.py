"""Layers that move windows, and resizing: what ncnn has otherwise than ONNX."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.legalize.forms import windows
from serde.legalize.forms.form import Call, Form, decompose
from serde.legalize.forms.interpolation import interpolates
from serde.rewrite.rules import RuleTable
from serde.version_converter.adapters.pooling import Windows, pad_window_axes
from serde.version_converter.adapters.resize import every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling

from ..illegal_forms import OPEN_PADS

LEAST = -float(np.finfo(np.float32).max)  # of a window that lies in the padding


def legalize_windows(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Resize")(resize)


def has_open_windows(call: Call) -> bool:
    """Whether pads depend on sizes, or there are gaps and no pads."""
    pads = call.window.reach(call.x)
    return pads is None or (call.window.is_spread and not any(pads))


def is_unlike(call: Call) -> bool:
    """Whether windows have gaps, or ncnn does not pad so: alike at both ends."""
    w, n = call.window, len(call.window.kernel_shape)
    pads = w.reach(call.x)
    is_alike = pads[:n] == pads[n:] or (fills_windows(call.x, w, pads) and not any(pads[:n]))
    return w.is_spread or not is_alike


def pad_before(g, call: Call):
    """The padding as that of a Pad."""
    padded = pad_window_axes(g, call.x, call.window.reach(call.x), LEAST)
    return call.emit(g, padded, pads=None, ceil_mode=0, storage_order=0)


def pad_to_end(g, call: Call):
    """Padding that reaches what ``ceil_mode`` does."""
    pads = call.window.reach(call.x)
    return call.emit(g, call.x, pads=pads, ceil_mode=0, storage_order=0)


def average_fixed(g, call: Call):
    """The mean of windows with gaps, whose pads are numbers."""
    return average_spread(g, call.x, call.window, call.attrs["count_include_pad"])


def root_of_powers(g, call: Call):
    """The root of sums of powers."""
    w, p = call.window, call.attrs["p"]
    sums = sum_windows(g, g.Pow(g.Abs(call.x), float(p)), w, w.reach(call.x))
    return g.Pow(sums, 1 / p)


def has_lacking_bias(call: Call) -> bool:
    """Whether ncnn takes no computed bias: of volumes, and beside constants."""
    return windows.has_computed_bias(call) and (call.x.tensor is not None or call.x.rank > 4)


BIAS = windows.COMPUTED_BIAS._replace(has=has_lacking_bias)
OPEN = Form("pads that depend on sizes", has_open_windows, decompose(10))
WINDOWS = {
    "AveragePool": [
        Form("dilations", lambda call: call.window.is_spread and windows.is_fixed(call),
             average_fixed),
        windows.AVERAGE_DILATIONS, windows.ZEROS_BEFORE, windows.CEIL_MODE,
        Form("auto_pad", lambda call: not windows.is_fixed(call), decompose(10)),
        windows.UNEVEN_AVERAGE,
    ],
    "Conv": [BIAS],
    "ConvTranspose": [OPEN_PADS, windows.UNEVEN_CROP, BIAS],
    "LpPool": [
        OPEN._replace(has=lambda call: call.window.reach(call.x) is None, rewrite=decompose(18)),
        Form("any p", lambda call: True, root_of_powers),
    ],
    "MaxPool": [
        windows.PLACES._replace(rewrite=None, advice="Leave the second output out"),
        OPEN, Form("dilations or uneven pads", is_unlike, pad_before),
        windows.CEIL_MODE._replace(rewrite=pad_to_end),
    ],
}  # fmt: skip


def fills_windows(x, w: Windows, pads) -> bool:
    """Whether windows reach the end: ncnn has one more otherwise, where pads are not alike."""
    ends = pads[len(w.kernel_shape) :]
    axes = zip(x.ranked_shape[2:], ends, w.kernel_shape, w.strides, strict=True)
    return all(isinstance(size, int) and (size + end - k) % s == 0 for size, end, k, s in axes)


def average_spread(g, x, w: Windows, count_include_pad: int):
    """``AveragePool`` with gaps in its windows: sums, divided by how many elements each holds."""
    pads, n = w.reach(x), len(w.kernel_shape)
    counted_pads = (w.pads if count_include_pad else None) or (0,) * 2 * n
    counts = np.ones((1,) * (n + 2), np.float32)
    for at, size in enumerate(x.static_shape[2:]):
        last = pads[at] + size + pads[at + n] - w.covers[at]
        starts = np.arange(0, last + 1, w.strides[at]) - pads[at]
        places = starts[:, None] + w.gaps[at] * np.arange(w.kernel_shape[at])
        inside = ((places >= -counted_pads[at]) & (places < size + counted_pads[at + n])).sum(1)
        counts = counts * inside.reshape([-1 if a == at + 2 else 1 for a in range(n + 2)])
    return g.Mul(sum_windows(g, x, w, pads), (1 / np.maximum(counts, 1)).astype(np.float32))


def sum_windows(g, x, w: Windows, pads):
    """Sums of windows, by a convolution of each channel with ones."""
    channels = x.static_shape[1]
    ones = np.ones((channels, 1, *w.kernel_shape), np.float32)
    window = {"kernel_shape": w.kernel_shape, "strides": w.strides, "dilations": w.gaps}
    return g.Conv(x, ones, group=channels, pads=pads, **window)


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
