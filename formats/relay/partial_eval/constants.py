"""Scalars that are known before the model runs: the conditions of loops over what is static."""

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
Number = Any


def known(value: Value, makers: Mapping[Value, Node], found: dict[Value, Number]) -> Number:
    """The scalar ``value`` is, None where that depends on an input. ``found`` is a memory."""
    stack = [value]
    while stack:
        top = stack[-1]
        if top in found:
            stack.pop()
            continue
        node = makers.get(top)
        if top.tensor is not None:
            found[top] = _constant(top)
        elif node is None or node.op not in FUNCTIONS or node.attrs:
            found[top] = None
        else:
            inputs = [v for v in node.inputs if v is not None]
            missing = [v for v in inputs if v not in found]
            if missing:
                stack.extend(missing)
                continue
            numbers = [found[v] for v in inputs]
            whole = all(n is not None for n in numbers)
            found[top] = _applied(node.op, numbers) if whole else None
    return found[value]


def _applied(op: str, numbers: list[Number]) -> Number:
    """What an operator makes of scalars, None where it takes no such ones."""
    try:
        return FUNCTIONS[op](*numbers)
    except (TypeError, ValueError):  # of another number, or booleans
        return None


def _constant(value: Value) -> Number:
    """Integers and booleans of no dimensions."""
    tensor = value.tensor
    assert tensor is not None
    if tensor.shape != () or tensor.dtype.kind not in "iub":
        return None
    return tensor.load()[()]
