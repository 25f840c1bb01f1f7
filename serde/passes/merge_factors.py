"""Products with two constants, one after the other, as a product with one.

One rounding is left of two, so results differ by their last bits. Products that are rounded to
integers afterwards stay, and those whose merged constant would be larger than both, or is not a
normal number.
"""

from __future__ import annotations

import numpy as np

from serde.ir.constants import make_constant
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.rewrite.patterns import Neighbours, Patterns, merge, orders
from serde.spec.traits import ARRANGES, BROADCASTS, ELEMENTWISE, ROUNDS

FLOATS = (DType.FLOAT32, DType.FLOAT64)
PASSING = ELEMENTWISE | BROADCASTS | ARRANGES  # what hands numbers to what rounds them
patterns = Patterns()


@patterns("Mul")
def merge_factor(near: Neighbours, node: Node) -> Node | None:
    """``x * a * b`` as ``x * (a * b)``."""
    x, factor = _find_factor(node)
    inner = near.sole_maker(node, x, "Mul") if factor is not None else None
    x, first = (None, None) if inner is None else _find_factor(inner)
    if inner is None or factor is None or first is None:
        return None
    product = None if node.outputs[0] in near.find(_find_rounded) else _multiply(first, factor)
    if product is None:
        return None
    both = make_constant(f"{node.outputs[0].name}/factor", product)
    return merge(inner, node, inputs=(x, both), name=node.name)


def _find_factor(node: Node) -> tuple[Value | None, Value | None]:
    """The operand and the constant of a Mul of floats."""
    for x, factor in orders(node):
        if factor is not None and factor.tensor is not None and factor.dtype in FLOATS:
            return x, factor
    return None, None


def _find_rounded(graph: Graph) -> set[Value | None]:
    """The values that elementwise operators take to one that rounds them."""
    rounded: set[Value | None] = set()
    for node in reversed(graph.nodes):
        is_passed_on = node.op in PASSING and not rounded.isdisjoint(node.outputs)
        if is_passed_on or _rounds(node):
            rounded.update(node.inputs)
    return rounded


def _rounds(node: Node) -> bool:
    if node.op == "Cast":
        return node.outputs[0].dtype not in FLOATS
    return node.op in ROUNDS or node.op == "QuantizeLinear"


def _multiply(a: Value, b: Value) -> Tensor | None:
    """The product of two constants, if it is no larger than they are and every number is normal."""
    shape = np.broadcast_shapes(a.static_shape, b.static_shape)
    if int(np.prod(shape)) > max(int(np.prod(v.static_shape)) for v in (a, b)):
        return None
    exact = a.array().astype(np.float64) * b.array().astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.asarray(exact, a.type.numpy)
    least = np.finfo(a.type.numpy).tiny
    if not (np.isfinite(product) & (np.abs(product) >= least)).all():
        return None
    return Tensor.of(product)


merge_factors = patterns.apply
