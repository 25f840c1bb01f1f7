"""Powers for runtimes that have those of floats, with exponents of one type."""

from __future__ import annotations

from functools import reduce

from serde.ir.graph import Value

MOST_FACTORS = 16  # of a power or product that is written factor by factor


def multiply_factors(g, x, y: Value):
    """A power of integers as a product; None where the exponent is no constant, or is large."""
    if x.type.kind not in "iu" or y.tensor is None or y.tensor.size != 1 or y.rank > x.rank:
        return None
    exponent = float(y.array().item())
    if not exponent.is_integer() or not 0 < exponent <= MOST_FACTORS:
        return None
    return reduce(g.Mul, [x] * int(exponent)) if exponent > 1 else g.Identity(x)


def power(g, x, y: Value):
    """``Pow``: a power of integers as a product, one of floats with an exponent of their type."""
    if (product := multiply_factors(g, x, y)) is not None:
        return product
    return None if x.type is y.type or x.type.kind != "f" else g.Pow(x, g.cast_like(y, x))
