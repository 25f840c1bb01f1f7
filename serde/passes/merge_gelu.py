"""Gelu that exporters have decomposed, as one operator.

Gelu is ``x / 2 * (1 + erf(x / √2))``, or with a polynomial in ``tanh`` in place of ``erf``. The
factors are written in any order, and the polynomials in several forms: those are compared by their
coefficients.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from serde.ir.graph import DType, Node, Value
from serde.rewrite.patterns import Neighbours, Patterns, orders

Polynomial = Mapping[int, float]  # coefficients by the power of the variable
ROOT = math.sqrt(2 / math.pi)
INNER: Mapping[str, tuple[str, Polynomial]] = {
    "Erf": ("none", {1: math.sqrt(0.5)}),
    "Tanh": ("tanh", {1: ROOT, 3: ROOT * 0.044715}),
}
NEAR = 2e-5  # relative difference of coefficients: exporters round them
MOST_POWER, MOST_NODES = 3, 12
patterns = Patterns()


@patterns("Mul")
def merge_gelu(near: Neighbours, node: Node) -> Node | None:
    """A product of the variable, a half, and one plus the function of a polynomial."""
    if node.outputs[0].dtype is not DType.FLOAT32:
        return None
    factor = 1.0
    rest: list[Value] = []
    waiting = [v for v in node.inputs if v is not None]
    while waiting and len(rest) < 3:
        value = waiting.pop()
        product = near.sole_maker(node, value, "Mul")
        if (number := read_number(value)) is not None:
            factor *= number
        elif product is not None:
            waiting += [v for v in product.inputs if v is not None]
        else:
            rest.append(value)
    if len(rest) != 2 or waiting:
        return None
    for x, other in (rest, rest[::-1]):
        kind = find_kind(near, x, other, factor)
        if kind is not None and x.shape == node.outputs[0].shape:
            return replace(node, op="Gelu", inputs=(x,), attrs={"approximate": kind})
    return None


def find_kind(near: Neighbours, x: Value, other: Value, factor: float) -> str | None:
    """Which Gelu ``factor * x * other`` is, None where it is none."""
    total = near.maker(other, "Add")
    for function, one in () if total is None else orders(total):
        curve = near.maker(function, *INNER)
        share = None if one is None else read_number(one)
        if curve is None or share is None or curve.inputs[0] is None:
            continue
        kind, wanted = INNER[curve.op]
        if abs(share - 1) > NEAR or abs(factor - 0.5) > NEAR:
            continue
        got = read_polynomial(near, curve.inputs[0], x, [MOST_NODES])
        if got is not None and _is_near(got, wanted):
            return kind
    return None


def _is_near(got: Polynomial, wanted: Polynomial) -> bool:
    return got.keys() == wanted.keys() and all(
        math.isclose(got[power], wanted[power], rel_tol=NEAR) for power in wanted
    )


def read_number(value: Value) -> float | None:
    """The number that all elements of a small constant are."""
    if value.tensor is None or value.tensor.size != 1:
        return None
    return float(value.array().reshape(()))


def read_polynomial(
    near: Neighbours, value: Value, x: Value, budget: list[int]
) -> Polynomial | None:
    """The polynomial of ``x`` that a value is; ``budget`` has how many nodes may be looked at."""
    if value is x:
        return {1: 1.0}
    if (number := read_number(value)) is not None:
        return {0: number}
    node = near.maker(value, "Add", "Div", "Mul", "Pow")
    budget[0] -= 1
    if node is None or budget[0] < 0:
        return None
    a, b = (None if v is None else read_polynomial(near, v, x, budget) for v in node.inputs)
    if a is None or b is None:
        return None
    if node.op == "Add":
        return {power: a.get(power, 0) + b.get(power, 0) for power in a.keys() | b.keys()}
    if node.op == "Mul":
        return multiply(a, b)
    if b.keys() != {0} or not b[0]:
        return None
    if node.op == "Div":
        return multiply(a, {0: 1 / b[0]})
    return raise_to(a, b[0])


def multiply(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """The product, None above the largest power."""
    product: dict[int, float] = defaultdict(float)
    for power, x in a.items():
        for other, y in b.items():
            product[power + other] += x * y
    return product if max(product) <= MOST_POWER else None


def raise_to(a: Polynomial, power: float) -> Polynomial | None:
    """A small whole power of a polynomial."""
    if power not in (1.0, 2.0, 3.0):
        return None
    result: Polynomial | None = {0: 1.0}
    for _ in range(int(power)):
        result = None if result is None else multiply(result, a)
    return result


merge_gelus = patterns.apply
