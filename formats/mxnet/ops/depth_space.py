"""Operators that rearrange or cut out blocks of images."""

from __future__ import annotations

import math

from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import Ints
from serde.spec.expressions import Size

from ..rules import reads
from .convolution import window


@reads("depth_to_space")
def read_depth_to_space(g, x, *, block_size: int):
    return g.DepthToSpace(x, blocksize=block_size, mode="DCR")


@reads("space_to_depth")
def read_space_to_depth(g, x, *, block_size: int):
    return g.SpaceToDepth(x, blocksize=block_size)


@reads("Crop", ignore=("num_args",))
def read_crop(g, x, like=None, *, offset=(0, 0), h_w=(0, 0), center_crop=False):
    """To the size of the second operand, where there is one, from ``offset`` or the middle."""
    expected: list[Size] = list(h_w) if like is None else [g.size_of(like, a) for a in (2, 3)]
    height_width = g.shape_from(expected)
    start = g.shape_from(list(offset))
    if center_crop:
        have = g.shape_from([g.size_of(x, a) for a in (2, 3)])
        start = g.Div(g.Sub(have, height_width), 2)
    return g.Slice(x, start, g.Add(start, height_width), [2, 3], [1, 1])


@reads("im2col")
def read_im2col(g, x, *, kernel: Ints, stride=(), dilate=(), pad=()):
    """The elements under each window, as a convolution that picks them one by one."""
    channels = x.ranked_shape[1]
    require(isinstance(channels, int), "needs to know the number of channels")
    count = math.prod(kernel)
    picks = arrays.tile(arrays.eye(count, dtype=x.type.numpy), (channels, 1))
    w = g.const(picks.reshape(channels * count, 1, *kernel), name="picks")
    y = g.Conv(x, w, group=channels, **window(kernel, stride, dilate, pad))
    return g.Reshape(y, [0, channels * count, -1])


@reads("col2im")
def read_col2im(g, x, *, output_size: Ints, kernel: Ints, stride=(), dilate=(), pad=()):
    frame = window(kernel, stride, dilate, pad)
    block = frame.pop("kernel_shape")
    return g.Col2Im(x, list(output_size), list(block), **frame)
