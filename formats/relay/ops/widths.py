"""Element types ONNX Runtime has no kernel for, and those the same numbers are computed in."""

from __future__ import annotations

from serde.ir.graph import DType, Value

SMALL = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.BOOL)


def wide_type(dtype: DType) -> DType:
    """A type that holds every value of ``dtype`` and that every arithmetic operator takes."""
    if dtype in SMALL:
        return DType.INT32
    if dtype in (DType.UINT32, DType.UINT64):
        return DType.INT64  # 64-bit arithmetic is the same with and without a sign
    return dtype


def compute_widely(g, function, *xs: Value):
    """``function`` of operands of one type, computed in a wider type where theirs is narrow."""
    dtype = xs[0].type
    wider_dtype = wide_type(dtype)
    if wider_dtype is dtype:
        return function(g, *xs)
    return g.cast(function(g, *(g.cast(x, wider_dtype) for x in xs)), dtype)


def compute_in_order(g, function, *xs: Value):
    """The same of a function that depends on which numbers are larger: uint64 has no wider type."""
    if xs[0].type is DType.UINT64:
        return function(g, *xs)
    return compute_widely(g, function, *xs)


def compute_in_float(g, function, *xs: Value):
    """``function`` of floats, of numbers of any type."""
    dtype = xs[0].type
    if dtype.kind == "f":
        return function(g, *xs)
    return g.cast(function(g, *(g.cast(x, DType.FLOAT32) for x in xs)), dtype)
