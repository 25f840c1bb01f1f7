"""Rounded quotients for runtimes that multiply by the reciprocal of a divisor.

The float32 reciprocal of 41 is below 1/41, so that 41 times it is below 1, and its floor 0. The
remainder tells whether a rounded quotient is off by one. It is exact for divisors that are integers
in value, as those of indices are; other quotients stay as the runtime rounds them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.decompositions.elementwise import is_power_of_two
from serde.ir.graph import DType, Value
from serde.rewrite.rules import RuleTable
from serde.spec.number_traits import SUMS
from serde.spec.schema import ELEMENT_TYPES
from serde.spec.traits import MOVES, list_moved
from serde.version_converter.adapters.elementwise import round_half_to_even

LARGEST = 2**24  # up to which float32 has all integers
DEEPEST = 8  # nodes that a divisor is followed back through


def legalize_quotients(legalize: RuleTable, has_round: bool = True) -> None:
    """Add the rules but that of ``Cast``, which is ``truncate_quotient``."""
    legalize("Ceil")(partial(round_quotient, "Ceil"))
    legalize("Floor")(partial(round_quotient, "Floor"))
    legalize("Round")(partial(round_quotient, "Round") if has_round else decompose_round)


def round_quotient(op: str, g, q: Value):
    """A quotient by integers, rounded as an operator does; None for other numbers."""
    operands = find_quotient(g, q)
    if operands is None:
        return None
    rounded = g.Floor(g.Add(q, 0.5)) if op == "Round" else g.as_is(op, (q,), {})
    above, below = COMPARISONS[op](g, rounded, *compute_remainder(g, rounded, *operands))
    return g.Sub(g.Add(rounded, g.cast(above, q.type)), g.cast(below, q.type))


def compare_floor(g, rounded: Value, remainder: Value, size: Value):
    """Where the floor is above ``rounded``, and where it is below."""
    return g.GreaterOrEqual(remainder, size), g.Less(remainder, 0.0)


def compare_ceiling(g, rounded: Value, remainder: Value, size: Value):
    """Where the ceiling is above ``rounded``, and where it is below."""
    return g.Greater(remainder, 0.0), g.LessOrEqual(remainder, g.Neg(size))


def compare_nearest(g, rounded: Value, remainder: Value, size: Value):
    """Where the nearest integer, half to even, is above ``rounded``, and where it is below."""
    half, twice = g.Mul(rounded, 0.5), g.Mul(remainder, 2.0)
    is_odd = g.Not(g.Equal(half, g.Floor(half)))
    return (
        g.Or(g[order](twice, most), g.And(is_odd, g.Equal(twice, most)))
        for order, most in (("Greater", size), ("Less", g.Neg(size)))
    )


COMPARISONS = {"Ceil": compare_ceiling, "Floor": compare_floor, "Round": compare_nearest}


def decompose_round(g, x: Value):
    """The nearest integer, for a runtime without ``Round``."""
    nearest = round_quotient("Round", g, x)
    return round_half_to_even(g, x) if nearest is None else nearest


def truncate_quotient(g, q: Value, to: int):
    """A quotient by integers that is cast to an integer type; None for other numbers."""
    if ELEMENT_TYPES[to].kind not in "iu" or find_quotient(g, q) is None:
        return None
    return g.as_is("Cast", (g.Mul(g.Sign(q), g.Floor(g.Abs(q))),), {"to": to})


def find_quotient(g, q: Value) -> tuple[Value, Value] | None:
    """The dividend and the integer divisor of a quotient, or those of its absolute value."""
    if q.type not in (DType.FLOAT32, DType.FLOAT64):
        return None
    node = g.producer(q)
    if node is not None and node.op == "Abs":
        inside = find_quotient(g, node.inputs[0])
        return None if inside is None else (g.Abs(inside[0]), g.Abs(inside[1]))
    if node is None or node.op != "Div":
        return None
    x, y = node.inputs
    return (x, y) if is_integer_valued(g, y) and not is_power_of_two(y) else None


def is_integer_valued(g, y: Value, depth: int = 0) -> bool:
    """Whether numbers are integers in value, by how they are computed."""
    if y.type.kind in "iub":
        return True
    if y.tensor is not None:
        numbers = y.array()
        return bool(((numbers == np.floor(numbers)) & (abs(numbers) <= LARGEST)).all())
    node = g.producer(y)
    if node is None or depth == DEEPEST:
        return False
    if node.op in COMPARISONS:
        return True
    if node.op in MOVES or node.op == "Cast":
        operands = list_moved(node) if node.op in MOVES else iter(node.inputs)
    elif node.op in SUMS or node.op in ("Abs", "Mul", "Neg"):
        operands = iter(node.inputs)
    else:
        return False
    return all(v is not None and is_integer_valued(g, v, depth + 1) for v in operands)


def compute_remainder(g, rounded: Value, x: Value, y: Value) -> tuple[Value, Value]:
    """The remainder, as of a positive divisor, and the magnitude of the divisor."""
    remainder = g.Sub(x, g.Mul(rounded, y))
    if y.tensor is not None and (y.array() > 0).all():
        return remainder, y
    return g.Mul(remainder, g.Sign(y)), g.Abs(y)
