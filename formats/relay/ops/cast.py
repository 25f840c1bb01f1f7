"""Element types: Cast, and bits read as another type."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES

from ..rules import reads
from ..target import TYPES, emit_cast, writes


@reads("cast")
def read_cast(g, x, *, dtype: DType):
    return cast_with_wrap(g, x, dtype)


@reads("cast_like")
def read_cast_like(g, x, like):
    return cast_with_wrap(g, x, like.type)


def cast_with_wrap(g, x: Value, dtype: DType):
    """Fractions are cut off; integers too wide keep their lowest bits."""
    return x if x.type is dtype else g.Cast(x, to=ELEMENT_CODES[dtype])


@reads("reinterpret")
def read_reinterpret(g, x, *, dtype: DType):
    return g.BitCast(x, to=ELEMENT_CODES[dtype])


@writes("Cast", ignore=("saturate", "round_mode"))
def write_cast(r, x, *, to: int):
    dtype = ELEMENT_TYPES[to]
    require(dtype in TYPES, f"Relay computes nothing with {dtype.value} elements")
    require(x.type in TYPES, f"Relay computes nothing with {x.type.value} elements")
    return emit_cast(r, x, dtype)


@writes("BitCast")
def write_bit_cast(r, x, *, to: int):
    dtype = ELEMENT_TYPES[to]
    require(dtype in TYPES, f"Relay computes nothing with {dtype.value} elements")
    if x.type is DType.BOOL:  # a byte each
        x = emit_cast(r, x, DType.UINT8)
    if dtype is DType.BOOL:
        return emit_cast(r, x, dtype)
    return r.reinterpret(x, dtype=dtype.value)
