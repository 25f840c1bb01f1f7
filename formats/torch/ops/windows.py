"""Layers that move windows, padding, resizing and powers: what PyTorch has otherwise than ONNX."""

from __future__ import annotations

from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.legalize.forms import windows
from serde.legalize.forms.form import Call, Form
from serde.legalize.forms.interpolation import interpolates
from serde.version_converter.adapters.padding import decompose_pad, expand_pads
from serde.version_converter.adapters.pooling import Windows
from serde.version_converter.adapters.resize import decompose_resize, every_axis, static_scales
from serde.version_converter.adapters.resize_coordinates import Sampling

from ..target import legalizations

FLOATS = frozenset({DType.FLOAT32, DType.FLOAT64})
EXACT = 1 << 53  # integers below are float64


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


@legalizations("Pad")
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


@legalizations("Pow")
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


@legalizations("Resize")
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
    factors = static_scales(x, scales, sizes)
    if is_cropped or not interpolates(x, how, factors, sizes is not None, antialias=True):
        return decompose_resize(g, x, roi, scales, sizes, how)
    if how.mode == "nearest":
        sampling |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.as_is("Resize", (x, None, scales, sizes), sampling)
