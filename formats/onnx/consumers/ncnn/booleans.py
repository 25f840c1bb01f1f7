"""Booleans, which ncnn has none of: 1 and 0 in float32, followed back to what they compare."""

from __future__ import annotations

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.graph import DType, Value
from serde.passes.single_precision import NARROW
from serde.rewrite.rules import RuleTable
from serde.spec.schema import ELEMENT_TYPES

from ..narrow_floats import describe_lacking, is_weight_in_fewer_bits, widen_weight

LARGEST = float(np.finfo(np.float32).max)
LACKING = "ncnn has booleans that compare float32 only"
LAST_INTEGER = 2**24  # up to which float32 has all integers
MOVES = frozenset(("Expand", "Reshape", "Squeeze", "Unsqueeze"))  # by constants


def legalize_booleans(legalize: RuleTable) -> None:
    """Add the rules of this module."""
    legalize("Cast")(cast)
    legalize("Where")(where)


def cast(g, x, *, to: int, **form):
    """A boolean, a weight in fewer bits, or what was a number in float32, as one."""
    dtype = ELEMENT_TYPES[to]
    if is_weight_in_fewer_bits(x) and dtype is DType.FLOAT32:
        return widen_weight(g, x)
    for lacking in NARROW & {x.type, dtype}:
        raise ConversionError(describe_lacking("ncnn", lacking))
    require(dtype is DType.FLOAT32, "ncnn has no Cast")
    if x.dtype is DType.BOOL:
        return as_float(g, x)
    number = as_number(g, x)
    require(number is not None, "ncnn has no Cast")
    return number


def where(g, condition, x, y):
    """A sum of two tensors, each 0 where the other is chosen; infinities become large numbers."""
    require(x.type is DType.FLOAT32, "ncnn has Where of float32 only. Use float32 (--fp32)")
    chosen = as_float(g, condition)
    return g.Add(keep(g, x, chosen), keep(g, y, negate(g, chosen)))


def keep(g, x: Value, chosen: Value):
    """``x`` where ``chosen`` is 1, and 0 where it is 0."""
    if x.tensor is not None:
        is_finite = bool(np.isfinite(x.array()).all())
        require(is_finite, "ncnn has Where of finite numbers: give a large one for infinity")
        return g.Mul(x, chosen)
    bound = g.Mul(chosen, LARGEST)
    return g.Max(g.Min(x, bound), g.Neg(bound))


def negate(g, chosen: Value):
    """The other ones."""
    return g.Sub(1.0, chosen)


def as_float(g, condition: Value) -> Value:
    """1 where a condition holds, and 0 where it does not."""
    if condition.tensor is not None:
        return g.const(condition.array().astype(np.float32))
    node = g.producer(condition)
    require(node is not None and node.op in FLOATS, LACKING)
    return FLOATS[node.op](g, *node.inputs)


def as_number(g, x: Value) -> Value | None:
    """An integer in float32: a constant, or what a Cast makes of float32; None for others."""
    if x.type is DType.FLOAT32:
        return x
    if x.type.kind not in "iu":
        return None
    if x.tensor is not None:
        array = x.array()
        is_exact = not array.size or int(np.abs(array).max()) <= LAST_INTEGER
        return g.const(array.astype(np.float32)) if is_exact else None
    node = g.producer(x)
    if node is None:
        return None
    source = node.inputs[0]
    if node.op == "Cast" and source.type is DType.FLOAT32:
        return g.Mul(g.Sign(source), g.Floor(g.Abs(source)))
    if node.op == "Cast":
        is_wider = source.type.kind == x.type.kind and source.type.bits <= x.type.bits
        return as_number(g, source) if is_wider else None
    moved = as_number(g, source) if node.op in MOVES else None
    return None if moved is None else g[node.op](moved, *node.inputs[1:])


def _step(g, x: Value):
    """1 for what is above 0, otherwise 0."""
    return g.Relu(g.Sign(x))


def difference(g, a: Value, b: Value):
    """How far two numbers are apart."""
    numbers = [n for v in (a, b) if (n := as_number(g, v)) is not None]
    require(len(numbers) == 2, LACKING)
    arrays = [n.array() for n in numbers if n.tensor is not None]
    require(
        all(np.isfinite(h).all() for h in arrays),
        "ncnn compares finite numbers only. Use a large one for infinity",
    )
    return g.Sub(*numbers)


def _differs(g, a: Value, b: Value):
    return g.Abs(g.Sign(difference(g, a, b)))


def _equal(g, a: Value, b: Value):
    if a.dtype is DType.BOOL:
        a, b = as_float(g, a), as_float(g, b)
    return negate(g, _differs(g, a, b))


def _nonzero(g, x: Value):
    require(x.type is DType.FLOAT32, LACKING)
    return g.Abs(g.Sign(x))


def _move_elements(op: str):
    """An operator that moves elements."""

    def move(g, x: Value, *places: Value):
        return g[op](as_float(g, x), *places)

    return move


FLOATS = {
    "And": lambda g, a, b: g.Mul(as_float(g, a), as_float(g, b)),
    "Cast": _nonzero,
    "Equal": _equal,
    "Expand": _move_elements("Expand"),
    "Greater": lambda g, a, b: _step(g, difference(g, a, b)),
    "GreaterOrEqual": lambda g, a, b: negate(g, _step(g, difference(g, b, a))),
    "Less": lambda g, a, b: _step(g, difference(g, b, a)),
    "LessOrEqual": lambda g, a, b: negate(g, _step(g, difference(g, a, b))),
    "Not": lambda g, a: negate(g, as_float(g, a)),
    "Or": lambda g, a, b: g.Max(as_float(g, a), as_float(g, b)),
    "Reshape": _move_elements("Reshape"),
    "Squeeze": _move_elements("Squeeze"),
    "Unsqueeze": _move_elements("Unsqueeze"),
    "Xor": lambda g, a, b: g.Abs(g.Sub(as_float(g, a), as_float(g, b))),
}
