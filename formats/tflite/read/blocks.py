"""Blocks of images that become samples of a batch, and samples that become blocks."""

from __future__ import annotations

import numpy as np

from serde.errors import require
from serde.ir.graph import Value
from serde.rewrite.rules import Hint

from ..quantization import Forms
from ..rules import reads
from .shapes import fill_of, swap_blocks
from .slicing import flatten_pads


def read_blocks(block: Value):
    """The sizes of blocks."""
    blocks = block.ints()
    require(min(blocks, default=1) > 0, f"blocks of {blocks[:8]}. Give numbers above 0")
    return blocks


def divide(g, size, divisor: int):
    """A size that is a multiple of ``divisor``, in parts."""
    return size // divisor if isinstance(size, int) else g.Div(size, divisor)


@reads("BATCH_TO_SPACE_ND")
def read_batch_to_space(g, x, block, crops):
    blocks = read_blocks(block)
    n = len(blocks)
    batch, *areas = g.sizes_of(x)
    outer = divide(g, batch, int(np.prod(blocks)))
    order = [n, *(a for k in range(n) for a in (n + 1 + k, k)), *range(2 * n + 1, x.rank + n)]
    sizes = [g.multiply_sizes(pair) for pair in zip(areas, blocks, strict=False)]
    result = [outer, *sizes, *areas[n:]]
    y = swap_blocks(g, x, [*blocks, outer, *areas], order, result)
    starts, behind = g.Split(flatten_pads(g, crops), [n, n], axis=0, outputs=2)
    ends = g.Sub(g.shape_from(sizes), behind)
    return g.Slice(y, starts, ends, list(range(1, n + 1)), [1] * n)


@reads("SPACE_TO_BATCH_ND")
def read_space_to_batch(g, x, block, paddings, *, forms: Hint[Forms]):
    blocks = read_blocks(block)
    n = len(blocks)
    pads, axes = flatten_pads(g, paddings), list(range(1, n + 1))
    y = g.Pad(x, pads, fill_of(g, x, forms), axes)
    batch, *areas = g.sizes_of(y)
    parts = [divide(g, a, b) for a, b in zip(areas, blocks, strict=False)]
    split = [v for pair in zip(parts, blocks, strict=True) for v in pair]
    order = [*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n + 1, 2), *range(2 * n + 1, x.rank + n)]
    result = [g.multiply_sizes([*blocks, batch]), *parts, *areas[n:]]
    return swap_blocks(g, y, [batch, *split, *areas[n:]], order, result)
