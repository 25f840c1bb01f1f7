"""Element types of results, as PyTorch promotes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Value

from .operands import Number

ORDER = "bu iu f".split()
FLOATS = (DType.FLOAT16, DType.BFLOAT16)


def promote_types(a: DType | None, b: DType | None) -> DType | None:
    """The smallest type that takes both."""
    if a is None or b is None or a is b:
        return a if b is None else b
    if {a, b} == set(FLOATS):
        return DType.FLOAT32
    if (a.kind == "f") != (b.kind == "f"):
        return a if a.kind == "f" else b
    if a.kind == "f":
        return a if a.bits >= b.bits else b
    return DType.of(np.promote_types(a.numpy, b.numpy))


def result_type(*operands: Any) -> DType:
    """The type that operands are computed in: tensors, those of no axes, and numbers."""
    ranked = scalars = numbers = None
    for x in operands:
        if isinstance(x, Value):
            if x.shape == ():
                scalars = promote_types(scalars, x.type)
            else:
                ranked = promote_types(ranked, x.type)
        elif x is not None:
            numbers = promote_types(numbers, number_type(x))
    result = _combine(_combine(ranked, scalars), numbers)
    require(result is not None, "no operand has a type")
    return result  # type: ignore[return-value]


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    if higher is not None and higher.kind == "f":
        return higher
    if higher is DType.BOOL or (lower is not None and lower.kind == "f"):
        return promote_types(higher, lower)
    return lower if higher is None else higher


def number_type(x: Any) -> DType:
    """The type of a tensor of one number."""
    if isinstance(x, Number):
        return DType.FLOAT32 if x.value.type.kind == "f" else x.value.type
    if isinstance(x, bool):
        return DType.BOOL
    return DType.INT64 if isinstance(x, int) else DType.FLOAT32


def as_type(g: Any, x: Any, dtype: DType) -> Any:
    """A tensor, or a number, as a tensor of a type."""
    if isinstance(x, Number):
        return g.cast(g.Squeeze(x.value, [0]), dtype)
    if isinstance(x, Value):
        return g.cast(x, dtype)
    if dtype is DType.BOOL:
        return g.const(np.array(bool(x)))
    if dtype.kind in "iu":
        x = int(x) if x == x and abs(x) != float("inf") else 0
        with np.errstate(over="ignore"):
            return g.const(np.array(x).astype(dtype.numpy))
    with np.errstate(over="ignore"):
        return g.const(np.array(x, np.float64).astype(dtype.numpy))


def promote(g: Any, *xs: Any) -> tuple[Any, ...]:
    """Operands in the type that PyTorch computes them in."""
    dtype = result_type(*xs)
    return tuple(as_type(g, x, dtype) for x in xs)


def promote_to_float(g: Any, *xs: Any) -> tuple[Any, ...]:
    """Operands in a floating-point type: integers become float32."""
    dtype = result_type(*xs)
    dtype = dtype if dtype.kind == "f" else DType.FLOAT32
    return tuple(as_type(g, x, dtype) for x in xs)
