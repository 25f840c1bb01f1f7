"""Preparing photographs: height, width and channels, one image or a batch of them."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import require
from serde.geometry import Ints
from serde.graph import DType, Value
from serde.idioms import cast

from ..rules import Floats, reads
from .resampling import resized
from .shaping import read_reverse


def channels_first(g, x: Value):
    """``(…, height, width, channels)`` as ``(…, channels, height, width)``."""
    last = x.rank - 1
    return g.Transpose(x, perm=(*range(last - 2), last, last - 2, last - 1))


@reads("_image_to_tensor")
def read_to_tensor(g, x):
    """Numbers up to 255 as floats up to 1, the channels first."""
    return g.Div(channels_first(g, cast(g, x, DType.FLOAT32)), 255.0)


@reads("_image_normalize")
def read_normalize(g, x, *, mean: Floats = (0.0,) * 4, std: Floats = (1.0,) * 4):
    """One number a channel, or one for all of them."""
    channels = x.known[x.rank - 3]
    require(len(mean) in (1, channels) and len(std) in (1, channels), f"{mean=} {std=}")
    away, scale = (np.array(v, x.type.numpy).reshape(-1, 1, 1) for v in (mean, std))
    return g.Div(g.Sub(x, away), scale)


@reads("_image_crop")
def read_image_crop(g, image, *, x: int, y: int, width: int, height: int):
    """``width`` by ``height`` pixels from column ``x`` and row ``y`` on."""
    axes = [image.rank - 3, image.rank - 2]
    return g.Slice(image, [y, x], [y + height, x + width], axes, [1, 1])


@reads("_image_resize", only={"keep_ratio": (False,), "interp": (1,)})
def read_image_resize(g, x, *, size: Ints = ()):
    """To a width and a height, or a square; OpenCV's bilinear interpolation."""
    require(len(size) in (1, 2), f"size={size}")
    require(x.type.kind == "f", f"resizing {x.type.value} pixels, which OpenCV rounds its own way")
    batch = x if x.rank == 4 else g.Unsqueeze(x, [0])
    way = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    y = resized(g, g.Transpose(batch, perm=(0, 3, 1, 2)), [size[-1], size[0]], **way)
    y = g.Transpose(y, perm=(0, 2, 3, 1))
    return y if x.rank == 4 else g.Squeeze(y, [0])


def read_flip(axis, g, x):
    return read_reverse(g, x, axis=(axis,))


for _name, _axis in {"left_right": -2, "top_bottom": -3}.items():
    reads(f"_image_flip_{_name}")(partial(read_flip, _axis))
