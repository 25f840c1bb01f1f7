"""Cast and CastLike."""

from __future__ import annotations

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.spec.schema import ELEMENT_CODES

from . import decomposition, downgrades, upgrades

FLOAT8 = frozenset(d for d in DType if d.value.startswith("float8") and d.bits == 8)
# Element types as Cast's attribute names them before opset 6.
TYPE_NAMES = {"FLOAT": DType.FLOAT32, "DOUBLE": DType.FLOAT64} | {
    d.name: d
    for d in (DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.UINT16,
              DType.UINT32, DType.UINT64, DType.FLOAT16, DType.BOOL, DType.STRING)
}  # fmt: skip


@downgrades[24]("Cast")
def cast_without_rounding_up(g, x: Value, *, to: int, saturate: int, round_mode: str):
    """``round_mode`` concerns float8_e8m0, which is as new as it is."""
    return g.Cast(x, to=to, saturate=saturate)


@downgrades[19]("Cast")
def cast_without_saturation(g, x: Value, *, to: int, saturate: int):
    """``saturate`` concerns the 8-bit floats, which are as new as it is."""
    return g.Cast(x, to=to)


@upgrades[6]("Cast")
def cast_to_code(g, x: Value, *, to: str):
    """At opset 1 the type was given by name."""
    require(to in TYPE_NAMES, f"Cast to {to!r}, which is no element type")
    return g.Cast(x, to=ELEMENT_CODES[TYPE_NAMES[to]])


@decomposition(15, "CastLike")
def cast_like(g, x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up"):
    return g.Cast(x, to=ELEMENT_CODES[like.type], saturate=saturate, round_mode=round_mode)
