"""Between which numbers those of a value lie, as far as the nodes before it tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from serde.ir.graph import Node, Value
from serde.spec.number_traits import BOUNDED, MEANS, PERIODIC, SCALING, is_elementwise
from serde.spec.traits import ARRANGES, CHOOSES, COUNTS, MOVES, NON_NEGATIVE

Range = tuple[float, float]
EVERYTHING: Range = (-math.inf, math.inf)
MOST_NODES = 16  # that are looked at
OF_CALLERS = frozenset({"activations", "high"})  # attributes that bounds follow from
MAKING_NAN = PERIODIC | SCALING | {"Sub"}  # of infinities
MOST_ELEMENTS = 1 << 22  # of a constant that is looked at
MOST_STEPS = 128  # of a computation of places
# Whose results are less than 0 where one of these operands is, if there are any; () are all.
KEEPING_SIGNS: Mapping[str, tuple[int, ...]] = {
    **MOVES,
    **dict.fromkeys(("Add", "BitwiseAnd", "Div", "Mul", "Range", "Sum"), ()),
    **dict.fromkeys(("Cast", "Ceil", "CumSum", "Floor", "ReduceProd", "ReduceSum", "Round"), (0,)),
}
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


def may_be_negative(g: Any, x: Value, most: int = MOST_STEPS) -> bool:
    """Whether places that are computed may be less than 0; an overflow aside."""
    if x.dtype is not None and x.dtype.kind in "ub":
        return False
    if x.tensor is not None:
        return x.tensor.size > MOST_ELEMENTS or bool((x.array() < 0).any())
    node = g.producer(x)
    if node is None or node.domain or not most:
        return True
    if node.op in COUNTS and (node.op not in MOVES or x is not node.outputs[0]):
        return False
    if x is not node.outputs[0] or find_range(g, x)[0] >= 0:
        return x is not node.outputs[0]
    places = KEEPING_SIGNS.get(node.op, None)
    if node.op == "Mod":  # it has the sign of the divisor, unless C's is asked for
        places = (0,) if node.attrs.get("fmod") else (1,)
    if places is None:
        return True
    operands = [node.inputs[i] for i in places if i < len(node.inputs)] or node.inputs
    left = (most - 1) // len(operands)
    signs = (may_be_negative(g, v, left) for v in operands if v is not None)
    return all(signs) if node.op == "Max" else any(signs)


def may_be_nan(g: Any, x: Value, most: int = MOST_NODES) -> bool:
    """Whether infinities among the constants that ``x`` is made of, of masks, may become NaN."""
    if x.tensor is not None:
        return _is_small_float(x) and bool(np.isnan(x.array().astype(np.float32)).any())
    node = g.producer(x)
    if node is None or node.domain or not most or not node.inputs:
        return False
    if node.op == "Where" and g.maker(node.inputs[0], "IsNaN") is not None:
        return False
    operands = [v for v in node.inputs if v is not None]
    left = (most - 1) // len(operands)
    of_rows = node.op.endswith("Softmax")  # NaN only where all of a row are infinite
    makes_nan = of_rows or node.op in MAKING_NAN
    if makes_nan and any(_has_infinities(g, v, of_rows, left) for v in operands):
        return True
    return any(may_be_nan(g, v, left) for v in operands if v.tensor is None)


def _is_small_float(x: Value) -> bool:
    is_float = x.dtype is not None and x.dtype.kind == "f"
    return is_float and x.tensor is not None and x.tensor.size <= MOST_ELEMENTS


def _has_infinities(g: Any, x: Value, of_rows: bool, most: int) -> bool:
    """Whether ``x`` has elements, or rows, of infinities as constants before it have."""
    if x.tensor is not None:
        if not _is_small_float(x):
            return False
        infinite = np.isinf(x.array().astype(np.float32))
        return bool((infinite.all(-1) if of_rows and infinite.ndim else infinite).any())
    node = g.producer(x)
    if node is None or not most or node.op == "Clip" or not is_elementwise(node.op):
        return False
    operands = [v for v in node.inputs if v is not None]
    return any(_has_infinities(g, v, of_rows, (most - 1) // len(operands)) for v in operands)
