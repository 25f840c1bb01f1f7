"""Shapes of operators that an operand spells out, as far as its elements are known by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serde import symbolic
from serde.graph import Dim, Shape, Value

# Operators, and the input that tells a shape or a part of it.
TOLD = {
    "Reshape": 1, "Expand": 1, "ConstantOfShape": 0, "Tile": 1, "Resize": 3, "TopK": 1, "Range": 1,
}  # fmt: skip
RANK = 64  # the longest list followed


def improved(
    op: str, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any], said: Shape | None
) -> Shape | None:
    """What ONNX's inference said of the first output's shape, and what is known besides."""
    if len(inputs) <= TOLD[op]:
        return said
    x, told = inputs[0], inputs[TOLD[op]]
    wanted = symbolic.elements_of(told)
    if wanted is None and (length := _length(told)) is not None:
        wanted = (None,) * length  # so many sizes, all unknown
    if wanted is None or x is None:
        return said
    shape = _shape(op, x, wanted, inputs, attrs)
    if shape is not None:
        shape = tuple([None if isinstance(d, int) and d < 0 else d for d in shape])
    if said is None or shape is None or len(said) != len(shape):
        return shape or said
    return tuple(_better(a, b) for a, b in zip(said, shape, strict=True))


def _shape(
    op: str, x: Value, wanted: Shape, inputs: tuple[Value | None, ...], attrs: Mapping[str, Any]
) -> Shape | None:
    """The shape by the rule of the operator."""
    if op == "ConstantOfShape":
        return wanted
    if op == "Range":
        return _counted(*map(symbolic.elements_of, inputs))
    own = x.shape
    if own is None:
        return None
    if op == "Expand":
        return _broadcast(own, wanted)
    if op == "Reshape":
        return _reshaped(own, wanted, bool(attrs.get("allowzero", 0)))
    if op == "TopK":
        axis = attrs.get("axis", -1) % max(len(own), 1)
        return (*own[:axis], wanted[0] if len(wanted) == 1 else None, *own[axis + 1 :])
    if len(wanted) != len(own):
        return None
    if op == "Tile":
        return tuple(symbolic.combine("*", d, n) for d, n in zip(own, wanted, strict=True))
    fixed = attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch"
    return None if fixed or attrs.get("axes") else wanted  # Resize


def _counted(first: Shape | None, limit: Shape | None, step: Shape | None) -> Shape | None:
    """As many steps of 1 from 0 as a size, which is not negative, tells."""
    if first != (0,) or step != (1,) or limit is None or "-" in str(limit[0]):
        return None
    return limit


def _length(value: Value | None) -> int | None:
    """How many elements a list has, if it is one worth following."""
    if value is None or value.shape is None or len(value.shape) != 1:
        return None
    (size,) = value.shape
    return size if isinstance(size, int) and size <= RANK else None


def _better(a: Dim, b: Dim) -> Dim:
    return b if a is None or (isinstance(b, int) and not isinstance(a, int)) else a


def _reshaped(shape: Shape, wanted: Shape, allowzero: bool) -> Shape | None:
    """Dimensions of a Reshape: 0 copies, -1 is what is left over."""
    out = [
        shape[i] if d == 0 and not allowzero and i < len(shape) else d for i, d in enumerate(wanted)
    ]
    if -1 not in out:
        return tuple(out)
    place = out.index(-1)
    rest, left = [d for i, d in enumerate(out) if i != place], list(shape)
    for dim in list(rest):  # cancel what stands on both sides, names first
        if dim is not None and dim in left:
            left.remove(dim)
            rest.remove(dim)
    above, below = symbolic.product(tuple(left)), symbolic.product(tuple(rest))
    exact = isinstance(above, int) and isinstance(below, int)
    out[place] = above if below == 1 else symbolic.combine("/", above, below)
    if exact and below == 0:
        out[place] = None
    return tuple(out)


def _broadcast(a: Shape, b: Shape) -> Shape:
    size = max(len(a), len(b))
    pairs = zip((1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b, strict=True)
    return tuple(_wider(x, y) for x, y in pairs)


def _wider(x: Dim, y: Dim) -> Dim:
    if x == 1:
        return y
    if y == 1 or x == y:
        return x
    if isinstance(x, int):
        return x
    return y if isinstance(y, int) else None
