"""Emulates element types that a target lacks by storing them in wider ones.

A constant of such a type is widened, a Cast to it rounds to the values it has, and operators that
move, choose or scale elements see the wider type. Arithmetic in integers of 16 and 32 bits, which
an opset has but not every target, wraps around after each operator. In others it rounds, which the
wider type would not: that is refused, and so is an output of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from serde.errors import UnsupportedOp, require
from serde.ir.graph import BYTES, DType, Graph, Tensor, Value
from serde.spec import canonicalize, schema
from serde.spec.schema import ELEMENT_CODES, ELEMENT_TYPES
from serde.spec.traits import BITWISE, KEEPS_DIGITS, MOVES, WRAPS

from ..version_converter.adapters.common import cast
from ..version_converter.adapters.quantization import (
    emit_dequantize,
    emit_quantize,
    per_filter,
    per_row,
    quantize_in_float,
    subtract_zero_point,
)
from ..version_converter.element_types import BORN, format_type, supports_type

STORAGE_TYPE = {
    DType.INT2: DType.INT8,
    DType.INT4: DType.INT8,
    DType.UINT2: DType.UINT8,
    DType.UINT4: DType.UINT8,
    DType.INT8: DType.FLOAT32,
    DType.UINT8: DType.FLOAT32,
    DType.INT16: DType.INT32,
    DType.UINT16: DType.INT32,
    DType.UINT32: DType.INT64,
} | dict.fromkeys(
    (DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2,
     DType.FLOAT8E5M2FNUZ, DType.FLOAT4E2M1, DType.FLOAT8E8M0),
    DType.FLOAT32,
)  # fmt: skip
INTEGERS = {  # and their bits
    DType.INT2: 2, DType.INT4: 4, DType.UINT2: 2, DType.UINT4: 4, DType.INT8: 8,
    DType.UINT8: 8, DType.INT16: 16, DType.UINT16: 16, DType.UINT32: 32,
}  # fmt: skip


class Grid(NamedTuple):
    """The values of a float type: bits of precision, lowest exponent, largest, what is beyond."""

    precision: int
    lowest: int
    largest: float
    beyond: float | None  # None: the largest, whatever is asked for


NAN, INF = float("nan"), float("inf")
GRIDS = {
    DType.BFLOAT16: Grid(8, -126, 3.3895313892515355e38, INF),
    DType.FLOAT8E4M3FN: Grid(4, -6, 448.0, NAN),
    DType.FLOAT8E4M3FNUZ: Grid(4, -7, 240.0, NAN),
    DType.FLOAT8E5M2: Grid(3, -14, 57344.0, INF),
    DType.FLOAT8E5M2FNUZ: Grid(3, -15, 57344.0, NAN),
    DType.FLOAT4E2M1: Grid(2, 0, 6.0, None),
}
# Operators that give elements as they took them; those that scatter may add them up.
EXACT = (KEEPS_DIGITS | MOVES.keys()) - {"Dropout", "ScatterElements", "ScatterND"}
# Operators of integers of which a result may wrap around, computed as integers everywhere.
WRAPPING = WRAPS - {"Conv", "ConvTranspose", "Gemm", "Pow"}
# Operators of integers of which no result exceeds its type.
STAYING = BITWISE | {"Div", "Mod", "Sign"}
TYPED = ("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear")  # they name a type, or leave one
PRODUCTS = ("ConvInteger", "MatMulInteger")  # of bytes only
BODIES = {"If": 0, "Loop": 1, "Scan": 0}  # operators with bodies: outputs before their own


class EmulatedTypes:
    """Which values stand for elements of a type that ``opset`` has not, or the target."""

    def __init__(self, opset: int, target: frozenset[DType] = frozenset()) -> None:
        self.target = target
        self.lacking = target | {d for d, born in BORN.items() if born > opset}
        self.logical_types: dict[Value, DType] = {}

    def of(self, value: Any) -> DType | None:
        """The type ``value`` stands for, None where it is of its own."""
        return self.logical_types.get(value) if isinstance(value, Value) else None

    def may_concern(self, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
        """Whether an operator reads values that stand for another type, or may in a subgraph."""
        known = self.logical_types
        if not known:
            return False
        has_bodies = any(isinstance(a, Graph) for a in attrs.values())
        return has_bodies or any(v in known for v in inputs if isinstance(v, Value))

    def emulate(self, value: Value, dtype: DType) -> Value:
        """Note that ``value`` stands for elements of ``dtype``."""
        self.logical_types[value] = dtype
        return value

    @contextmanager
    def as_stored(self, values: Sequence[Any]) -> Iterator[None]:
        """Within it, the values stand for no other type than that they are stored in."""
        known = self.logical_types
        removed = {v: known.pop(v) for v in values if isinstance(v, Value) and v in known}
        try:
            yield
        finally:
            known.update(removed)


def widen_constant(constant: Value) -> Value:
    """A constant in the type that carries its own."""
    tensor, dtype = constant.tensor, STORAGE_TYPE[constant.type]
    assert tensor is not None

    def load() -> np.ndarray[Any, Any]:
        array = tensor.load()
        return (array if array.dtype.kind in "iu" else array.astype(np.float32)).astype(dtype.numpy)

    return Value(constant.name, dtype, tensor.shape, Tensor(dtype, tensor.shape, load))


def round_to_type(g: Any, x: Value, dtype: DType, saturate: int) -> Value:
    """``x`` rounded to the values that ``dtype`` has, in the type that carries it."""
    if dtype in INTEGERS:
        count = 1 << INTEGERS[dtype]
        half = count // 2 if dtype.kind == "i" else 0
        integers = cast(g, x, DType.INT32 if INTEGERS[dtype] < 32 else DType.INT64)
        integers = g.Mod(g.Add(integers, half) if half else integers, count)
        return cast(g, g.Sub(integers, half) if half else integers, STORAGE_TYPE[dtype])
    require(dtype in GRIDS, f"rounding to {format_type(dtype)} elements")
    return cast(
        g, round_to_bits(g, cast(g, x, DType.FLOAT64), GRIDS[dtype], saturate), DType.FLOAT32
    )


def round_to_bits(g: Any, u: Value, grid: Grid, saturate: int) -> Value:
    """A float64 rounded to fewer bits, ties to even.

    Veltkamp's splitting keeps the leading bits; what lies below the lowest exponent is rounded by
    adding and taking off a number whose last bit counts as much as theirs.
    """
    spread = g.Mul(u, float(2 ** (53 - grid.precision) + 1))
    normal = g.Sub(spread, g.Sub(spread, u))
    heavy = 1.5 * 2.0 ** (52 + grid.lowest - grid.precision + 1)
    small = g.Sub(g.Add(u, heavy), heavy)
    size = g.Abs(u)
    y = g.Where(g.Less(size, 2.0**grid.lowest), small, normal)
    over = g.Or(g.Greater(g.Abs(y), grid.largest), g.Greater(size, 2 * grid.largest))
    top = grid.largest if saturate or grid.beyond is None else grid.beyond
    if grid.precision == 8:
        top = INF  # bfloat16 never saturates
    ends = g.Where(g.Less(u, 0.0), g.const(-top, u.type), g.const(top, u.type))
    return g.Where(over, ends, y)  # type: ignore[no-any-return]


def legalize_type_operator(
    g: Any, emulated: EmulatedTypes, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any],
    outputs: int,
) -> Value | None:  # fmt: skip
    """Legalize an operator that makes a type the opset lacks, has an attribute for one, or takes
    no other than such types.
    """
    if op not in TYPED and op not in PRODUCTS:
        return None
    logical_types = [emulated.of(v) for v in inputs]
    if op in PRODUCTS:
        if not any(dtype in BYTES for dtype in logical_types):
            return None
        with emulated.as_stored(inputs):
            return _multiply_bytes(g, op, inputs, attrs)
    result_type = None
    if op in ("Cast", "CastLike"):
        like = inputs[1] if op == "CastLike" else None
        result_type = ELEMENT_TYPES[attrs["to"]] if like is None else logical_types[1] or like.dtype
    elif op == "QuantizeLinear":
        zero = inputs[2] if len(inputs) > 2 else None
        declared = ELEMENT_TYPES[attrs["output_dtype"]] if attrs.get("output_dtype") else None
        result_type = declared or (DType.UINT8 if zero is None else emulated.of(zero))
    if result_type in emulated.lacking:
        if op == "QuantizeLinear":
            with emulated.as_stored(inputs[2:]):
                y = _quantize(g, inputs, attrs, result_type)
            return emulated.emulate(y, result_type)
        if logical_types[0] is result_type:
            return inputs[0]  # type: ignore[no-any-return]
        return emulated.emulate(
            round_to_type(g, inputs[0], result_type, attrs.get("saturate", 1)), result_type
        )
    if op in ("Cast", "CastLike") and logical_types[0] and inputs[0].dtype is result_type:
        return strip_emulation(g, inputs[0])
    if op == "CastLike" and logical_types[0]:
        return g.Cast(inputs[0], to=ELEMENT_CODES[result_type])  # type: ignore
    if op == "DequantizeLinear" and (logical_types[0] in GRIDS or logical_types[0] in BYTES):
        with emulated.as_stored(inputs):
            return _dequantize(g, inputs, attrs, logical_types)
    return None


def strip_emulation(g: Any, value: Value) -> Value:
    """The carrying value itself, which stands for no other type."""
    if value.tensor is not None:
        return g.const(value.tensor)  # type: ignore[no-any-return]
    return g.alias(value)  # type: ignore[no-any-return]


def _axis(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[int, int]:
    full = canonicalize.complete_attributes(schema.operator(op), tuple(inputs), attrs)
    return full["axis"], full["block_size"]


def _quantize(g: Any, inputs: Sequence[Any], attrs: Mapping[str, Any], kind: DType) -> Value:
    x, scale, zero = (*inputs, None)[:3]
    blocks = _axis("QuantizeLinear", inputs, attrs)
    if kind in BYTES:
        return quantize_in_float(g, x, scale, zero, kind, *blocks)  # type: ignore[no-any-return]
    return emit_quantize(  # type: ignore[no-any-return]
        g, x, scale, zero, kind, *blocks, attrs.get("saturate", 1)
    )


def _multiply_bytes(g: Any, op: str, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Value:
    """A product of bytes that float32 hold, added up in float32: exact below 2**24."""
    a, b, a_zero, b_zero = (*inputs, None, None)[:4]
    rows, filters = (
        (per_row(a_zero), None) if op == "MatMulInteger" else (None, per_filter(b, b_zero))
    )
    a = subtract_zero_point(g, a, a_zero, rows, DType.FLOAT32)
    b = subtract_zero_point(g, b, b_zero, filters, DType.FLOAT32)
    total = g.MatMul(a, b) if op == "MatMulInteger" else g.Conv(a, b, **attrs)
    return cast(g, g.Round(total), DType.INT32)


def _dequantize(
    g: Any, inputs: Sequence[Any], attrs: Mapping[str, Any], types: Sequence[DType | None]
) -> Value:
    x, scale, zero = (*inputs, None)[:3]
    code, scale_type = attrs.get("output_dtype"), types[1]
    require(code or not scale_type, f"{format_type(scale_type or x.type)} elements to compute in")
    kind = ELEMENT_TYPES[code] if code else scale.type
    axis = _axis("DequantizeLinear", inputs, attrs)
    zero = None if types[0] in GRIDS else zero  # of floats it is 0
    return emit_dequantize(g, x, scale, zero, kind, *axis)  # type: ignore[no-any-return]


def require_exact(
    emulated: EmulatedTypes, op: str, inputs: Sequence[Any], opset: int
) -> dict[str, DType]:  # fmt: skip
    """The types that results of ``op`` stand for, by type variable.

    Raises:
        UnsupportedOp: where the operator would compute in a type that is only emulated.
    """
    operator = schema.operator(op, opset)
    for i, v in enumerate(inputs):
        if (d := emulated.of(v)) and not supports_type(operator, "inputs", i, v.type):
            raise UnsupportedOp(_explain_unsupported(op, d, d in emulated.target))
    ties = {operator.input(i).tie: d for i, v in enumerate(inputs) if (d := emulated.of(v))}
    out_ties = {o.tie for o in operator.outputs}
    for tie in ties.keys() & out_ties:
        dtype = ties[tie]
        is_exact = INTEGERS.get(dtype, 0) >= 16 and op in WRAPPING | STAYING
        if op not in EXACT and op not in BODIES and not is_exact:
            raise UnsupportedOp(_explain_unsupported(op, dtype, dtype in emulated.target))
    return ties


def _explain_unsupported(op: str, dtype: DType, never: bool) -> str:
    """Why an operator is refused; ``never``: at any opset."""
    if never:
        return f"{op} of {format_type(dtype)} elements, which the target does not compute with"
    return (
        f"{op} takes no {format_type(dtype)} at this opset, and rounds as no other type does; "
        f"opset {BORN[dtype]} is the lowest with such elements"
    )


def wrap_integers(g: Any, op: str, ties: Mapping[str, DType], result: Any) -> Any:
    """The result of an operator, within the integers it stands for."""
    dtype = next((d for d in ties.values() if INTEGERS.get(d, 0) >= 16), None)
    return result if dtype is None or op not in WRAPPING else round_to_type(g, result, dtype, 1)


def mark(emulated: EmulatedTypes, op: str, ties: Mapping[str, DType], attrs: Mapping[str, Any],
         result: Any, opset: int) -> None:  # fmt: skip
    """Note what the results of an operator stand for."""
    results = result if isinstance(result, tuple) else (result,)
    bodies = [a for a in attrs.values() if isinstance(a, Graph)]
    if op in BODIES:
        for value, inner in zip(results, bodies[0].outputs[BODIES[op] :], strict=False):
            if (dtype := emulated.of(inner)) is not None:
                emulated.emulate(value, dtype)
        return
    outputs = schema.operator(op, opset).outputs
    for i, value in enumerate(results):
        if (type_ := ties.get(outputs[min(i, len(outputs) - 1)].tie)) is not None:
            emulated.emulate(value, type_)
