"""Blocks of images in the channels, and channels in blocks."""

from __future__ import annotations

from functools import partial

from serde.decompositions.indexing import depth_to_space, space_to_depth
from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import Value
from serde.spec.expressions import Size

from ..rules import Pairs, reads
from ..target import legalizations, writes
from .padding import split_pads
from .shape import FAR, divide_size


@reads("nn.space_to_batch_nd")
def read_space_to_batch_nd(g, x, *, block_shape: Ints, paddings: Pairs, pad_value=0.0):
    before, after = split_pads(paddings)
    count, rest = len(block_shape), x.rank - len(block_shape) - 1
    pads = (0, *before, *(0,) * rest, 0, *after, *(0,) * rest)
    x = g.Pad(x, pads, g.scalar(pad_value, x) if pad_value else None)
    sizes = g.sizes_of(x)
    spread: list[Size] = [sizes[0]]
    for size, block in zip(sizes[1:], block_shape, strict=False):
        spread += [divide_size(g, size, block), block]
    split = g.reshape(x, [*spread, *sizes[count + 1 :]])
    blocks, spots = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    tail = range(2 * count + 1, 2 * count + 1 + rest)
    turned = g.Transpose(split, perm=(*blocks, 0, *spots, *tail))
    batch = g.multiply_sizes([*block_shape, sizes[0]])
    return g.reshape(turned, [batch, *(spread[i] for i in spots), *sizes[count + 1 :]])


@reads("nn.batch_to_space_nd")
def read_batch_to_space_nd(g, x, *, block_shape: Ints, crops: Pairs):
    before, after = split_pads(crops)
    count, sizes = len(block_shape), g.sizes_of(x)
    batch = sizes[0]
    for block in block_shape:
        batch = divide_size(g, batch, block)
    split = g.reshape(x, [*block_shape, batch, *sizes[1:]])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    turned = g.Transpose(split, perm=(*order, *range(2 * count + 1, count + x.rank)))
    grown = [g.multiply_sizes([s, b]) for s, b in zip(sizes[1:], block_shape, strict=False)]
    y = g.reshape(turned, [batch, *grown, *sizes[count + 1 :]])
    ends = [-a if a else FAR for a in after]
    return g.Slice(y, before, ends, list(range(1, count + 1)), [1] * count)


@reads("nn.depth_to_space")
def read_depth_to_space(g, x, *, block_size=1, layout="NCHW", mode="DCR"):
    """Every mode but ``DCR`` is ONNX's ``CRD``, which TVM's documentation calls ``CDR``."""
    order = "DCR" if mode == "DCR" else "CRD"
    apply = partial(g.DepthToSpace, blocksize=block_size, mode=order)
    return apply_channels_first(g, x, layout, apply)


@reads("nn.space_to_depth", ignore=("mode",))
def read_space_to_depth(g, x, *, block_size=1, layout="NCHW"):
    return apply_channels_first(g, x, layout, partial(g.SpaceToDepth, blocksize=block_size))


def apply_channels_first(g, x: Value, layout: str, apply):
    """Apply a function of NCHW."""
    require(layout in ("NCHW", "NHWC"), f"layout={layout!r} is unknown")
    if layout == "NCHW":
        return apply(x)
    return g.Transpose(apply(g.Transpose(x, perm=(0, 3, 1, 2))), perm=(0, 2, 3, 1))


@writes("DepthToSpace")
def write_depth_to_space(r, x, *, blocksize: int, mode: str):
    return r.nn.depth_to_space(x, block_size=blocksize, mode=mode)


@legalizations("DepthToSpace")
def legalize_depth_to_space(g, x, *, blocksize: int, mode: str):
    return None if x.is_static else depth_to_space(g, x, blocksize=blocksize, mode=mode)


@legalizations("SpaceToDepth")
def legalize_space_to_depth(g, x, *, blocksize: int, mode: str):
    """Channels in front of the block, which Relay has not."""
    is_native = mode == "DCR" and x.is_static
    return None if is_native else space_to_depth(g, x, blocksize=blocksize, mode=mode)


@writes("SpaceToDepth", ignore=("mode",))
def write_space_to_depth(r, x, *, blocksize: int):
    return r.nn.space_to_depth(x, block_size=blocksize)
