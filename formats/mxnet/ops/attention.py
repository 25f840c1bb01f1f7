"""The interleaved products of GluonNLP's attention.

Queries, keys and values lie in one tensor of shape ``(length, batch, heads * 3 * units)``, head by
head.
"""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value

from ..rules import reads

PREFIX = "_contrib_interleaved_matmul_"


def select_heads(g, x: Value, heads: int, parts: int, part: int):
    """One of the parts of an interleaved tensor, as ``(batch * heads, length, units)``."""
    width = x.ranked_shape[2]
    fits = not isinstance(width, int) or width % (heads * parts) == 0
    require(fits, f"{width} numbers for {heads} heads of {parts} parts each")
    split = g.Reshape(x, [0, 0, heads, parts, -1])
    one = g.Gather(split, part, axis=3)
    moved = g.Transpose(one, perm=(1, 2, 0, 3))
    return g.reshape(moved, [-1, g.size_of(x, 0), g.size_of(moved, 3)])


def scores(g, q: Value, k: Value):
    """Queries times keys, divided by the root of their length."""
    return g.MatMul(read_div_sqrt_dim(g, q), g.Transpose(k, perm=(0, 2, 1)))


@reads("_contrib_div_sqrt_dim")
def read_div_sqrt_dim(g, x):
    """``x`` divided by the root of its last size, which among integers is cut off."""
    units = g.size_of(x, x.rank - 1)
    if x.type.kind != "f":
        count = g.cast(g.shape_from([units]), DType.FLOAT32)
        return g.Div(x, g.cast_like(g.Floor(g.Sqrt(count)), x))
    if isinstance(units, int):
        return g.Mul(x, g.scalar(units**-0.5, x))
    return g.Div(x, g.Sqrt(g.cast_like(units, x)))


@reads(f"{PREFIX}selfatt_qk")
def read_selfatt_qk(g, qkv, *, heads: int):
    return scores(g, select_heads(g, qkv, heads, 3, 0), select_heads(g, qkv, heads, 3, 1))


@reads(f"{PREFIX}selfatt_valatt")
def read_selfatt_valatt(g, qkv, attention, *, heads: int):
    return weight_values(g, select_heads(g, qkv, heads, 3, 2), attention, heads)


@reads(f"{PREFIX}encdec_qk")
def read_encdec_qk(g, q, kv, *, heads: int):
    return scores(g, select_heads(g, q, heads, 1, 0), select_heads(g, kv, heads, 2, 0))


@reads(f"{PREFIX}encdec_valatt")
def read_encdec_valatt(g, kv, attention, *, heads: int):
    return weight_values(g, select_heads(g, kv, heads, 2, 1), attention, heads)


def weight_values(g, v: Value, attention: Value, heads: int):
    """Weights times values, as ``(length, batch, heads * units)``."""
    return join_heads(g, g.MatMul(attention, v), heads)


def join_heads(g, y: Value, heads: int):
    """``(batch * heads, length, units)`` as ``(length, batch, heads * units)``."""
    split = g.reshape(y, [-1, heads, g.size_of(y, 1), g.size_of(y, 2)])
    return g.Reshape(g.Transpose(split, perm=(2, 0, 1, 3)), [0, 0, -1])
