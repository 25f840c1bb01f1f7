"""Between which numbers those of a value lie, as far as the nodes before it tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from serde.ir.graph import Node, Value
from serde.spec.number_traits import BOUNDED, MEANS
from serde.spec.traits import ARRANGES, CHOOSES, MOVES, NON_NEGATIVE

Range = tuple[float, float]
EVERYTHING: Range = (-math.inf, math.inf)
MOST_NODES = 16  # that are looked at
OF_CALLERS = frozenset({"activations", "high"})  # attributes that bounds follow from
PASSING = ARRANGES | CHOOSES | {"Clip", "Concat", "Relu", "Where"}  # elements of operands


def find_range(g: Any, x: Value, most: int = MOST_NODES) -> Range:
    """The least and the largest number that ``x`` may have; NaN aside."""
    node = g.producer(x)
    if node is None or node.domain or not most or x is not node.outputs[0] or not node.inputs:
        return EVERYTHING
    low, high = _find_of_operands(g, node, most)
    if node.op in BOUNDED and not OF_CALLERS & node.attrs.keys():
        low, high = -BOUNDED[node.op], BOUNDED[node.op]
    if node.op in NON_NEGATIVE:
        low, high = max(low, 0.0), max(high, 0.0)
    if node.op == "Clip":
        low, high = (_clip(n, node) for n in (low, high))
    return low, high


def _find_of_operands(g: Any, node: Node, most: int) -> Range:
    """The range of a result that is made of elements of operands."""
    is_mean = node.op in MEANS and node.attrs.get("mode") != "cubic"
    if node.op not in PASSING and not is_mean:
        return EVERYTHING
    places = () if node.op == "Mean" else MOVES.get(node.op, (0,))
    operands = [node.inputs[i] for i in places] if places else node.inputs
    left = (most - 1) // len(operands)
    ranges = [EVERYTHING if v is None else find_range(g, v, left) for v in operands]
    if is_mean or node.op == "MaxRoiPool":
        attrs: Mapping[str, Any] = node.attrs
        outside = float(attrs.get("extrapolation_value", 0.0))
        ranges.append((outside, outside))
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _clip(number: float, node: Node) -> float:
    """An end of a range, as a Clip of known bounds makes it."""
    bounds = [v.array().item() if v is not None and v.tensor is not None else None
              for v in (*node.inputs, None, None)[1:3]]  # fmt: skip
    low, high = bounds
    number = number if low is None else max(number, low)
    return number if high is None else min(number, high)
