"""Operators of which pnnx makes layers that ncnn lacks or gets wrong, written as it leaves them."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType, Value
from serde.rewrite.rules import RuleTable


def legalize_fusions(legalize: RuleTable) -> None:
    """Add the rules."""
    legalize("Div")(legalize_div)
    legalize("Neg")(legalize_neg)
    legalize("Softsign")(legalize_softsign)
    legalize("Sub")(legalize_sub)


def legalize_neg(g, x):
    """pnnx makes a layer of a rotary embedding, where ncnn reads other angles."""
    return g.as_is("Mul", (x, g.const(-1.0, x.type)), {}) if x.type is DType.FLOAT32 else None


def legalize_softsign(g, x):
    """pnnx makes a layer of the quotient, which ncnn lacks."""
    return g.Mul(x, g.Reciprocal(g.Add(g.Abs(x), 1.0)))


def legalize_div(g, x, y):
    """A quotient by the absolute value and 1 is that of a Softsign."""
    added = operands_of(g, y, "Add")
    is_softsign = any(operands_of(g, v, "Abs") == (x,) for v in added) and any(
        v.tensor is not None and np.all(v.array() == 1) for v in added
    )
    return g.Mul(x, g.Reciprocal(y)) if is_softsign else None


def legalize_sub(g, x, y):
    """pnnx makes a layer of what ``Tanh`` takes away, which ncnn lacks."""
    return g.Add(x, g.Neg(y)) if operands_of(g, y, "Tanh") == (x,) else None


def operands_of(g, x: Value, op: str) -> tuple[Value, ...]:
    """The operands of the node that makes ``x``, none where it is another operator's."""
    node = g.producer(x)
    return tuple(node.inputs) if node is not None and node.op == op else ()
