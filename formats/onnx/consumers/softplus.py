"""Softplus for runtimes that cut off what is large, or overflow."""

from __future__ import annotations

from serde.ir.graph import Value


def stable_softplus(g, x: Value):
    """A sum of what is above 0 and of a logarithm between 0 and log 2."""
    return g.Add(g.Relu(x), g.Log(g.Add(g.Exp(g.Neg(g.Abs(x))), 1.0)))
