"""Comparisons of integers, which OpenVINO makes in float32: those above 2^24 may be alike there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from serde.ir.graph import Value
from serde.rewrite.rules import RuleTable
from serde.spec.traits import ARRANGES, COUNTS

EXACT = 2**24  # float32 has all integers up to it
SMALL = (COUNTS | {"Range"}) - {"MaxPool", "TopK"}  # places and numbers of elements
MOVES = ARRANGES | {"Cast", "Concat"}
# What holds of the difference to 0 where two integers are the same float32.
ORDERS: Mapping[str, str] = MappingProxyType(
    {"Greater": "Greater", "GreaterOrEqual": "Greater", "Less": "Less", "LessOrEqual": "Less"}
)


def legalize_comparisons(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Equal")(legalize_equal)
    legalize.for_each({op: (op, strict) for op, strict in ORDERS.items()})(legalize_order)


def legalize_equal(g, a, b):
    """A difference of 0, which is exact."""
    if not is_lossy(g, a, b):
        return None
    return g.as_is("Equal", (g.Sub(a, b), g.const(0, a.type)), {})


def legalize_order(forms, g, a, b):
    """The order of the floats, or that of the difference to 0 where these are the same."""
    if not is_lossy(g, a, b):
        return None
    op, strict = forms
    zero = g.const(0, a.type)
    same, apart = (g.as_is(o, (a, b), {}) for o in ("Equal", strict))
    return g.Or(apart, g.And(same, g.as_is(op, (g.Sub(a, b), zero), {})))


def is_lossy(g, a: Value, b: Value) -> bool:
    """Whether integers may be larger than float32 has them all."""
    return a.type.kind == "i" and a.type.bits > 16 and not (is_small(g, a) or is_small(g, b))


def is_small(g, x: Value) -> bool:
    """Whether all elements are places, sizes or small constants."""
    if x.tensor is not None:
        return bool(np.all(np.abs(x.array().astype(np.float64)) < EXACT))
    node = g.producer(x)
    if x.shape_data is not None or (node is not None and node.op in SMALL):
        return True
    if node is None or node.op not in MOVES or node.inputs[0].type.kind not in "iub":
        return False
    return all(is_small(g, v) for v in node.inputs[: None if node.op == "Concat" else 1])
