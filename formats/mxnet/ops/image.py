"""Preparing photographs: height, width and channels, one image or a batch of them."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value

from ..rules import Floats, note_old_meaning, reads, reads_between
from .resize import NEAREST, resize_to
from .shape import read_reverse
from .shared_attributes import with_attributes_of


def channels_first(g, x: Value):
    """``(…, height, width, channels)`` as ``(…, channels, height, width)``."""
    last = x.rank - 1
    return g.Transpose(x, perm=(*range(last - 2), last, last - 2, last - 1))


@reads("_image_to_tensor")
def read_to_tensor(g, x):
    """Numbers up to 255 as floats up to 1, the channels first."""
    return g.Div(channels_first(g, g.cast(x, DType.FLOAT32)), 255.0)


@reads("_image_normalize")
def read_normalize(g, x, *, mean: Floats = (0.0,) * 4, std: Floats = (1.0,) * 4):
    """One number a channel, or one for all of them; integers are cut off."""
    channels = x.ranked_shape[x.rank - 3]
    require(len(mean) in (1, channels) and len(std) in (1, channels), f"{mean=} {std=}")
    pixels = x if x.type.kind == "f" else g.cast(x, DType.FLOAT32)
    away, scale = (np.array(v, pixels.type.numpy).reshape(-1, 1, 1) for v in (mean, std))
    y = g.Div(g.Sub(pixels, away), scale)
    return y if pixels is x else g.cast_like(g.cast(y, DType.INT32), x)


@reads_between(0, 10500)("_image_normalize")
def read_old_normalize(g, x, *, mean: Floats, std: Floats):
    """Before MXNet 1.5 the numbers are brought into the type of integers first."""
    if x.type.kind != "f":
        note_old_meaning(g, "1.5")
        mean, std = (tuple(float(int(v)) for v in numbers) for numbers in (mean, std))
        require(0.0 not in std, "std is 0 in the type of the image")
    return read_normalize(g, x, mean=mean, std=std)


@reads_between(10500, 10600)("_image_normalize")
def read_normalize_of_1_5(g, x, *, mean: Floats = (0.0,) * 4, std: Floats = (1.0,) * 4):
    """One mean is that of the first two channels only."""
    channels = x.ranked_shape[x.rank - 3]
    require(len(mean) != 1 or isinstance(channels, int), "needs to know the number of channels")
    if channels == 3 and len(mean) == 1:
        note_old_meaning(g, "1.6")
        mean = (*mean, *mean, 0.0)
    return read_normalize(g, x, mean=mean, std=std)


@reads("_image_crop")
def read_image_crop(g, image, *, x: int, y: int, width: int, height: int):
    """``width`` by ``height`` pixels from column ``x`` and row ``y`` on."""
    require(x >= 0 and y >= 0, f"x={x} and y={y}")
    axes = [image.rank - 3, image.rank - 2]
    return g.Slice(image, [y, x], [y + height, x + width], axes, [1, 1])


HALF_PIXEL = {"coordinate_transformation_mode": "half_pixel"}
WAYS = {  # OpenCV's numbers of them
    0: NEAREST,
    1: {"mode": "linear", **HALF_PIXEL},
    2: {"mode": "cubic", **HALF_PIXEL},
}


@reads("_cvimresize")
def read_cv_resize(g, x, *, w: int, h: int, interp=1):
    return resize_image(g, x, w, h, interp)


@reads("_image_resize", only={"keep_ratio": (False,)})
def read_image_resize(g, x, *, size: Ints = (), interp=1):
    """To a width and a height, or a square."""
    require(len(size) in (1, 2), f"size={size}")
    return resize_image(g, x, size[0], size[-1], interp)


def resize_image(g, x: Value, width: int, height: int, interp: int):
    """Resized as OpenCV does it."""
    require(interp in WAYS, f"interp={interp}; supported: 0 (nearest), 1 (linear), 2 (cubic)")
    require(x.dtype is not DType.BOOL, "resizing booleans")
    must_round = x.type.kind != "f" and interp != 0
    require(not must_round, f"resizing {x.type.value} pixels, which OpenCV rounds its own way")
    batch = x if x.rank == 4 else g.Unsqueeze(x, [0])
    y = resize_to(g, g.Transpose(batch, perm=(0, 3, 1, 2)), [height, width], **WAYS[interp])
    y = g.Transpose(y, perm=(0, 2, 3, 1))
    return y if x.rank == 4 else g.Squeeze(y, [0])


def read_flip(axis, g, x):
    return read_reverse(g, x, axis=(axis,))


for _name, _axis in {"left_right": -2, "top_bottom": -3}.items():
    reads(f"_image_flip_{_name}")(partial(read_flip, _axis))


MODES = {0: "constant", 1: "edge", 4: "reflect"}  # OpenCV's numbers of them
# Colours of light that vary most over photographs, and by how much (Krizhevsky et al., 2012).
LIGHT = np.array(
    [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
) * np.array([55.46, 4.794, 1.148])


@reads("_cvcopyMakeBorder")
def read_border(
    g, x, *, top: int, bot: int, left: int, right: int, type=0, value=0.0, values: Floats = ()
):
    require(x.type not in (DType.INT64, DType.BOOL), f"OpenCV has no images of {x.type.value}")
    require(type in MODES, f"type={type}; supported: 0 (constant), 1 (replicate), 4 (reflect 101)")
    pads = [top, left, 0, bot, right, 0]
    require(min(pads) >= 0, f"a border of {min(pads)}")
    fits = not isinstance(x.ranked_shape[2], int) or len(values) in (0, x.ranked_shape[2])
    require(fits, f"values={values} for {x.ranked_shape[2]} channels")
    if type == 4:
        for pad, size in (
            (max(top, bot), x.ranked_shape[0]),
            (max(left, right), x.ranked_shape[1]),
        ):
            known = isinstance(size, int)
            require(not known or pad < size, f"a border of {pad} mirrored from {size}")
    if type != 0:
        return g.Pad(x, pads, mode=MODES[type])
    fill = np.array(values or [value]).astype(x.type.numpy)
    if len(set(fill.tolist())) == 1:
        return g.Pad(x, pads, fill[0])
    inside = g.Pad(g.full_like(x, 1, DType.INT32), pads)
    return g.Where(g.Greater(inside, 0), g.Pad(x, pads), fill)


@reads_between(0, 1100)("_cvcopyMakeBorder")
@with_attributes_of(read_border)
def read_old_border(g, x, *, type=0, value=0.0, values: Floats = (), **attrs):
    """The value is that of the first channel, and 0 of others."""
    channels = x.ranked_shape[2]
    if type == 0 and not values and value and channels != 1:
        require(isinstance(channels, int), "needs to know the number of channels")
        note_old_meaning(g, "0.11")
        values = (value, *(0.0,) * (channels - 1))
    return read_border(g, x, type=type, value=value, values=values, **attrs)


@reads("_image_adjust_lighting")
def read_adjust_lighting(g, x, *, alpha: Floats):
    """One image of three colours; integers stay within their type."""
    require(len(alpha) == 3, f"alpha={alpha}")
    require(x.ranked_shape[2] != 1, "an image of one colour, which MXNet computes wrongly")
    shift = (LIGHT @ np.array(alpha)).astype("float32")
    y = g.Add(g.cast(x, DType.FLOAT32), shift)
    if x.type.kind == "f":
        return g.cast_like(y, x)
    limits = np.iinfo(x.type.numpy)
    return g.cast_like(g.Clip(y, float(limits.min), float(limits.max)), x)
