"""Places named by an index, blocks of images, and optional values."""

from __future__ import annotations

from serde.decompositions.table import decompositions
from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.expressions import Size


@decompositions("OneHot")
def one_hot(g, index: Value, depth: Value, values: Value, *, axis: int):
    """A comparison with every place."""
    index_int64 = g.cast(index, DType.INT64)
    count = g.Reshape(g.cast(depth, DType.INT64), [])
    at = axis % (index.rank + 1)
    steps = g.Reshape(g.Range(0, count, 1), [-1] + [1] * (index.rank - at))
    index_int64 = g.Unsqueeze(
        g.Where(g.Less(index_int64, 0), g.Add(index_int64, count), index_int64), [at]
    )
    low, high = (g.Gather(values, i, axis=0) for i in (0, 1))
    return g.Where(g.Equal(index_int64, steps), high, low)


@decompositions("Size")
def count_elements(g, x: Value):
    """The product of the sizes."""
    return g.Squeeze(g.shape_from([g.multiply_sizes(g.sizes_of(x))]), [0])


def divide_size(g, size: Size, by: int) -> Size:
    """A size in parts, whose number is an integer."""
    if not isinstance(size, int):
        return g.Div(size, by)
    require(size % by == 0, f"a size of {size} in blocks of {by}")
    return size // by


@decompositions("DepthToSpace")
def depth_to_space(g, x: Value, *, blocksize: int, mode: str):
    """``DCR``: the block's rows and columns before the channels; ``CRD``: behind them."""
    b, (_, channels, h, w) = blocksize, g.sizes_of(x)
    c = divide_size(g, channels, b * b)
    is_first = mode == "DCR"
    split = g.reshape(x, [0, *([b, b, c] if is_first else [c, b, b]), h, w])
    moved = g.Transpose(split, perm=(0, 3, 4, 1, 5, 2) if is_first else (0, 1, 4, 2, 5, 3))
    return g.reshape(moved, [0, c, g.multiply_sizes([h, b]), g.multiply_sizes([w, b])])


@decompositions("SpaceToDepth")
def space_to_depth(g, x: Value, *, blocksize: int, mode: str = "DCR"):
    b, (_, c, h, w) = blocksize, g.sizes_of(x)
    rows, columns = divide_size(g, h, b), divide_size(g, w, b)
    split = g.reshape(x, [0, c, rows, b, columns, b])
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    deep = g.multiply_sizes([c, b * b])
    return g.reshape(g.Transpose(split, perm=order), [0, deep, rows, columns])


@decompositions("OptionalGetElement")
def optional_get(g, x: Value):
    """A tensor is its own element."""
    return None if x.container else g.Identity(x)


@decompositions("OptionalHasElement")
def optional_has(g, x: Value | None = None):
    """Nothing has none, a tensor one."""
    return None if x is not None and x.container else g.const(x is not None, DType.BOOL)
