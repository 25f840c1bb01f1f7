"""Types an older operator lacks, and wider element types that hold their values exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from serde.errors import UnsupportedOp, require
from serde.ir.graph import IR_OPSET, DType, Value
from serde.spec import schema
from serde.spec.traits import QUANTIZES, WRAPS

WIDER: dict[DType, tuple[DType, ...]] = {
    DType.BFLOAT16: (DType.FLOAT32, DType.FLOAT64),
    DType.FLOAT16: (DType.FLOAT32, DType.FLOAT64),
    DType.FLOAT8E4M3FN: (DType.FLOAT16, DType.FLOAT32),
    DType.FLOAT8E4M3FNUZ: (DType.FLOAT16, DType.FLOAT32),
    DType.FLOAT8E5M2: (DType.FLOAT16, DType.FLOAT32),
    DType.FLOAT8E5M2FNUZ: (DType.FLOAT16, DType.FLOAT32),
    DType.INT8: (DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32),
    DType.UINT8: (DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32),
    DType.INT16: (DType.INT32, DType.INT64, DType.FLOAT32),
    DType.UINT16: (DType.INT32, DType.INT64, DType.FLOAT32),
    DType.INT32: (DType.INT64, DType.FLOAT64),
    DType.UINT32: (DType.INT64, DType.UINT64, DType.FLOAT64),
    DType.BOOL: (DType.INT32, DType.INT64, DType.FLOAT32),
}
# The element types that opsets after the first brought, and the opset that brought each.
NEWER: dict[int, tuple[DType, ...]] = {
    13: (DType.BFLOAT16,),
    19: (DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ),
    21: (DType.INT4, DType.UINT4),
    23: (DType.FLOAT4E2M1,),
    24: (DType.FLOAT8E8M0,),
    25: (DType.INT2, DType.UINT2),
}
BORN = {dtype: opset for opset, dtypes in NEWER.items() for dtype in dtypes}
# Operators for whose first version onnx infers nothing; what they give has not changed since.
UNINFERRED = {("GreaterOrEqual", 12), ("LessOrEqual", 12)}
# Operators whose result depends on the width of their element type.
WIDTH_MATTERS = QUANTIZES | {"BitCast", "BitShift", "Cast", "CastLike"}
WRAPPERS = {"sequence": "seq", "optional": "optional"}


def wider_types(operator: schema.Operator, place: int, dtype: DType) -> tuple[DType, ...]:
    """The element types that an operator computes the same with as an operand's, the narrowest
    first.

    Integers wrap around when they are cast back from wider ones, not from floats: those of 8 and 16
    bits, as they easily exceed their bounds, are computed in integers only.
    """
    if operator.name in WIDTH_MATTERS or operator.has_bodies or not operator.deterministic:
        return ()
    types = WIDER.get(dtype, ())
    is_result = operator.input(place).tie == operator.outputs[0].tie
    wraps = operator.name in WRAPS and is_result and dtype.kind in "iu" and dtype.bits < 32
    return tuple(t for t in types if t.kind in "iu") if wraps else types


def format_type(dtype: DType, wrap: Sequence[str] = ()) -> str:
    """A type as users call it: ``int8``, ``string``, ``sequence of float32``."""
    return " of ".join([*wrap, dtype.title])


def require_elements(dtype: DType, opset: int) -> None:
    """Refuse an element type that came after ``opset``."""
    born = BORN.get(dtype, 1)
    require(
        born <= opset, f"no {format_type(dtype)} elements; opset {born} is the lowest with them"
    )


@lru_cache(4096)
def schema_type_name(dtype: DType, wrap: tuple[str, ...] = ()) -> str:
    """A type as schemas spell it: ``tensor(float)``, ``seq(tensor(float))``."""
    names = {d: n for n, d in schema.DTYPES_BY_NAME.items()}
    text = f"tensor({names[dtype]})"
    for outer in reversed(wrap):
        text = f"{WRAPPERS.get(outer, outer)}({text})"
    return text


@lru_cache(4096)
def _types(op: str, version: int, side: str, index: int) -> frozenset[str]:
    """The types allowed at ``index``; the last formal repeats where it is variadic."""
    formals = getattr(schema.operator(op, version).raw, side)
    return frozenset(formals[min(index, len(formals) - 1)].types) if formals else frozenset()


def supports_type(
    operator: schema.Operator, side: str, index: int, dtype: DType, wrap: tuple[str, ...] = ()
) -> bool:
    """Whether the operator takes (``inputs``) or gives (``outputs``) the type at ``index``."""
    types = _types(operator.name, operator.since, side, index)
    return not types or schema_type_name(dtype, wrap) in types


def refuse_type(
    operator: schema.Operator, side: str, index: int, dtype: DType, wrap: tuple[str, ...] = ()
) -> None:
    """Raise the refusal of a type, naming the lowest opset that has it there."""
    verb = "takes" if side == "inputs" else "gives"
    versions = (o for v in range(1, IR_OPSET + 1) if (o := schema.find(operator.name, v)))
    newer = (o.since for o in versions if supports_type(o, side, index, dtype, wrap))
    lowest = next(newer, None)
    hint = "" if lowest is None else f"; opset {lowest} is the lowest that does"
    raise UnsupportedOp(f"{operator.name} {verb} no {format_type(dtype, wrap)} at this opset{hint}")


def require_results(
    operator: schema.Operator, attrs: Mapping[str, Any], values: Sequence[Value] = ()
) -> None:
    """Refuse a type the operator does not give yet, found or asked for by an attribute."""
    for name in ("to", "dtype", "output_dtype"):
        dtype = schema.ELEMENT_TYPES.get(attrs.get(name) or 0)
        types = _types(operator.name, operator.since, "outputs", 0)
        if dtype is not None and not any(schema_type_name(dtype) in t for t in types):
            refuse_type(operator, "outputs", 0, dtype)
    for i, v in enumerate(values):
        if v.dtype is not None and not supports_type(operator, "outputs", i, v.dtype, v.container):
            refuse_type(operator, "outputs", i, v.dtype, v.container)


def promote_types(operator: schema.Operator, operands: Sequence[Value | None]) -> dict[str, DType]:
    """The wider element type for each type variable whose present one the operator lacks."""
    if supports_types(operator, "inputs", operands):
        return {}
    wider: dict[str, DType] = {}
    for i, v in enumerate(operands):
        if (
            v is None
            or v.dtype is None
            or supports_type(operator, "inputs", i, v.dtype, v.container)
        ):
            continue
        choices = () if v.container else wider_types(operator, i, v.type)
        dtype = next((d for d in choices if supports_type(operator, "inputs", i, d)), None)
        if dtype is None:
            refuse_type(operator, "inputs", i, v.dtype, v.container)
        else:
            wider[operator.input(i).tie] = dtype
    return wider


def supports_types(operator: schema.Operator, side: str, values: Sequence[Value | None]) -> bool:
    """Whether the operator takes, or gives, values of these types."""
    types = tuple([None if v is None else (v.dtype, v.container) for v in values])
    return are_allowed(operator.name, operator.since, side, types)


@lru_cache(4096)
def are_allowed(
    op: str, since: int, side: str, types: tuple[tuple[DType | None, tuple[str, ...]] | None, ...]
) -> bool:
    """Whether a version of an operator takes (``inputs``) or gives (``outputs``) element types."""
    operator = schema.operator(op, since)
    return all(
        t is None or t[0] is None or supports_type(operator, side, i, t[0], t[1])
        for i, t in enumerate(types)
    )
