"""Scalars that are constant: conditions of loops and choices over static values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from serde.ir.graph import Node, Value

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
}
Scalar = Any


def fold_scalar(
    value: Value, producers: Mapping[Value, Node], folded: dict[Value, Scalar]
) -> Scalar:
    """The constant scalar that ``value`` is; None for any other value.

    ``folded`` caches the results.
    """
    stack = [value]
    while stack:
        top = stack[-1]
        if top in folded:
            stack.pop()
            continue
        node = producers.get(top)
        if top.tensor is not None:
            folded[top] = _load_scalar(top)
        elif node is None or node.op not in FUNCTIONS or node.attrs:
            folded[top] = None
        else:
            inputs = [v for v in node.inputs if v is not None]
            missing = [v for v in inputs if v not in folded]
            if missing:
                stack.extend(missing)
                continue
            scalars = [folded[v] for v in inputs]
            is_constant = all(s is not None for s in scalars)
            folded[top] = _apply(node.op, scalars) if is_constant else None
    return folded[value]


def _apply(op: str, scalars: list[Scalar]) -> Scalar:
    """The result of an operator; None where it does not take these operands."""
    try:
        return FUNCTIONS[op](*scalars)
    except (TypeError, ValueError):  # of another number of operands, or booleans
        return None


def _load_scalar(value: Value) -> Scalar:
    """An integer or boolean of rank 0."""
    tensor = value.tensor
    assert tensor is not None
    if tensor.shape != () or tensor.dtype.kind not in "iub":
        return None
    return tensor.load()[()]
