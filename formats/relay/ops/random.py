"""Operators that draw random numbers.

They are in a table of their own, as nothing is read of them unless asked for. Each takes ``draw``
first, see ``serde.decompositions.random_source``. A key, from which TVM makes its numbers, is
passed on and tells nothing.
"""

from __future__ import annotations

from serde.ir.geometry import Ints
from serde.ir.graph import DType
from serde.rewrite.rules import RuleTable

from ..rules import parse

draws = RuleTable("relay → ir", parse=parse)


@draws("random.uniform")
def read_uniform(draw, g, key, low, high, *, out_shape: Ints, out_dtype: DType | None = None):
    """From ``low`` to below ``high``."""
    noise = g.cast(draw(g, "uniform", out_shape), low.type)
    y = g.Add(g.Mul(noise, g.Sub(high, low)), low)
    return key, g.cast(y, out_dtype or low.type)


@draws("random.normal")
def read_normal(draw, g, key, mean, scale, *, out_shape: Ints, out_dtype: DType | None = None):
    noise = g.cast(draw(g, "normal", out_shape), mean.type)
    return key, g.cast(g.Add(g.Mul(noise, scale), mean), out_dtype or mean.type)


@draws("random.multinomial")
def read_multinomial(draw, g, key, shares, *, num_samples=1):
    """Indices along the last axis, each as likely as its share of all that are above 0."""
    shares = g.Max(shares, g.scalar(0, shares))
    last = shares.rank - 1
    total = g.ReduceSum(shares, [last], keepdims=1)
    noise = g.cast(draw(g, "uniform", [*g.sizes_of(shares)[:last], num_samples]), shares.type)
    points = g.Unsqueeze(g.Mul(noise, total), [last + 1])
    # sums of shares up to each but the last, so that no index lies behind it
    sums = g.CumSum(g.Slice(shares, [0], [-1], [last], [1]), last)
    before = g.LessOrEqual(g.Unsqueeze(sums, [last]), points)
    return key, g.ReduceSum(g.cast(before, DType.INT32), [last + 1], keepdims=0)


@draws("random.threefry_split")
def read_split(draw, g, key):
    return key, key
