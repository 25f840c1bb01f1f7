"""Tensors repeated to a shape."""

from __future__ import annotations

from serde.errors import require
from serde.ir.dim_expr import shape_data_of
from serde.ir.geometry import Ints
from serde.ir.graph import Dim, DType

from ..rules import reads
from ..target import writes
from .shape import declare_sizes


@reads("broadcast_to", ignore=("dtype",))
def read_broadcast_to(g, x, *, shape: Ints):
    return g.Expand(x, shape)


@reads("dyn.broadcast_to", ignore=("shape", "dtype"))
def read_dyn_broadcast_to(g, x, shape):
    return g.Expand(x, g.cast(shape, DType.INT64))


@reads("broadcast_to_like")
def read_broadcast_to_like(g, x, like):
    return g.Expand(x, g.Shape(like))


@writes("Expand")
def write_expand(r, x, shape):
    target, dims = shape_data_of(shape), x.ranked_shape
    if target is None:
        return dynamic_expand(r, x, shape)
    padded_target = (1,) * (x.rank - len(target)) + target
    padded = (1,) * (len(padded_target) - x.rank) + dims
    pairs = list(zip(padded, padded_target, strict=True))
    full = tuple(_larger(d, w) for d, w in pairs)
    if not all(w == 1 or (isinstance(d, int) and isinstance(w, int)) for d, w in pairs):
        return declare_sizes(r, dynamic_expand(r, x, shape), full)
    if full == dims:
        return r.copy(x)
    if not all(isinstance(d, int) for d in full):
        ones = r.ones(shape=padded_target, dtype=x.type.value)
        require(x.type is not DType.BOOL, "an Expand of booleans of dynamic size")
        return r.multiply(x, ones)
    return r.broadcast_to(x, shape=full)


def _larger(size: Dim, target: Dim) -> Dim:
    """The size that two broadcast to; None where neither is known to be more than 1."""
    if target == 1 or size == target:
        return size
    return next((d for d in (target, size) if isinstance(d, int) and d != 1), None)


def dynamic_expand(r, x, shape):
    """The sizes asked for, and those of ``x`` where 1 is."""
    count = shape.ranked_shape[0]
    require(isinstance(count, int), "an Expand to a dynamic number of axes")
    rank = max(count, x.rank)
    if not x.rank:
        return r.dyn.broadcast_to(x, shape)
    sizes = r.cast(r.shape_of(x, dtype="int64"), dtype="int64")
    expected, sizes = (
        r.concatenate(r.const([1] * (rank - n), DType.INT64), v, axis=0) if n < rank else v
        for v, n in ((shape, count), (sizes, x.rank))
    )
    is_one = r.equal(expected, r.const([1], DType.INT64))
    return r.dyn.broadcast_to(x, r.where(is_one, sizes, expected))
