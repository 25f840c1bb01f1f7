"""Element types by opset, and wider ones that hold the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import defs

from serde.errors import ConversionError, UnsupportedOp
from serde.ir.graph import IR_OPSET, DType, Value
from serde.spec import schema
from serde.spec.schema import operator
from serde.version_converter.element_types import (
    BORN,
    UNINFERRED,
    WIDER,
    WIDTH_MATTERS,
    format_type,
    promote_types,
    refuse_type,
    require_elements,
    require_results,
    schema_type_name,
    supports_types,
    wider_types,
)

F16, F32, F64, I8, I32, I64 = (
    DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.INT32, DType.INT64,
)  # fmt: skip


@pytest.mark.parametrize("dtype", WIDER)
def test_wider_types_hold_every_value(dtype: DType) -> None:
    """All of a type of 8 or 16 bits, and of others the ends and what is next to them."""
    codes = dtype.numpy
    if dtype.bits <= 16 and dtype is not DType.BOOL:
        values = np.arange(1 << dtype.bits).astype(f"u{codes.itemsize}").view(codes)
    else:
        ends = [0, 1] if dtype is DType.BOOL else [np.iinfo(codes).min, np.iinfo(codes).max]
        values = np.array([ends[0], ends[0] | 1, 0, 1, ends[1] - 1, ends[1]]).astype(codes)
    with np.errstate(invalid="ignore"):  # of what is no number
        numbers = values[~np.isnan(values.astype(np.float64))]
        for wider in WIDER[dtype]:
            assert (numbers.astype(wider.numpy).astype(codes) == numbers).all(), wider


def test_types_are_born_where_the_standards_schemas_have_them_first() -> None:
    """By Cast, which takes all there are."""
    for opset in range(1, IR_OPSET + 1):
        types = set(defs.get_schema("Cast", opset).inputs[0].types)
        younger = {d for d, born in BORN.items() if born > opset}
        assert {schema_type_name(d) for d in younger}.isdisjoint(types)
    newest = set(defs.get_schema("Cast", IR_OPSET).inputs[0].types)
    assert {schema_type_name(d) for d in BORN} <= newest


def test_operators_that_are_named_are_of_the_standard() -> None:
    assert {*schema.names()} >= WIDTH_MATTERS
    for op, opset in UNINFERRED:
        assert schema.first_version(op) == opset


@pytest.mark.parametrize(("op", "dtype", "expected"), [
    ("Relu", F16, (F32, F64)), ("Add", I8, (DType.INT16, I32, I64)),
    ("Greater", I8, (DType.INT16, I32, I64, F32)), ("Add", I32, (I64, F64)),
    ("BitShift", DType.UINT8, ()), ("Cast", I8, ()), ("Relu", F64, ()),
])  # fmt: skip
def test_types_that_an_operator_computes_the_same_with(
    op: str, dtype: DType, expected: tuple[DType, ...]
) -> None:
    """Sums of integers wrap around, which those of floats do not; comparisons do not wrap."""
    assert wider_types(operator(op), 0, dtype) == expected


def values(*dtypes: Any) -> list[Value | None]:
    return [None if d is None else Value(f"x{i}", d, (2,)) for i, d in enumerate(dtypes)]


@pytest.mark.parametrize(("op", "opset", "dtypes", "expected"), [
    ("Add", 13, [F32, F32], {}), ("Add", 13, [I8, I8], {"T": I32}), ("Add", 14, [I8, I8], {}),
    ("Greater", 7, [I32, I32], {"T": F64}), ("Relu", 13, [I32], {"T": F64}),
    ("Clip", 11, [F16, None, F16], {}), ("Relu", 13, [None], {}),
])  # fmt: skip
def test_operands_are_promoted_to_what_the_version_takes(
    op: str, opset: int, dtypes: list[Any], expected: dict[str, DType]
) -> None:
    assert promote_types(operator(op, opset), values(*dtypes)) == expected
    assert supports_types(operator(op, opset), "inputs", values(*dtypes)) == (not expected)


@pytest.mark.parametrize(("op", "opset", "dtypes", "reason"), [
    ("Equal", 7, [DType.STRING] * 2, "Equal takes no string at this opset; opset 19 is the lowest"),
    ("Add", 6, [DType.STRING] * 2, "Add takes no string at this opset$"),
    ("Mod", 10, [DType.BFLOAT16] * 2, None), ("BitShift", 11, [I8, I8], "BitShift takes no int8"),
])  # fmt: skip
def test_types_that_nothing_wider_stands_for_are_refused(
    op: str, opset: int, dtypes: list[DType], reason: str | None
) -> None:
    if reason is None:
        assert promote_types(operator(op, opset), values(*dtypes)) == {"T": F32}
        return
    with pytest.raises(UnsupportedOp, match=reason):
        promote_types(operator(op, opset), values(*dtypes))


def test_containers_are_not_promoted() -> None:
    sequence = Value("s", F32, (2,), container=("sequence",))
    with pytest.raises(UnsupportedOp, match="Relu takes no sequence of float32 at this opset$"):
        promote_types(operator("Relu"), [sequence])
    with pytest.raises(UnsupportedOp, match="Identity takes .* opset 14 is the lowest that does"):
        refuse_type(operator("Identity", 13), "inputs", 0, F32, ("sequence",))


def test_results_are_asked_about_before_they_are_made() -> None:
    """By the attribute that names their type, and by themselves."""
    require_results(operator("Cast", 21), {"to": schema.ELEMENT_CODES[DType.INT4]})
    with pytest.raises(UnsupportedOp, match="Cast gives no int4 at this opset; opset 21 is the"):
        require_results(operator("Cast", 20), {"to": schema.ELEMENT_CODES[DType.INT4]})
    with pytest.raises(UnsupportedOp, match="Shape gives no int32 at this opset$"):
        require_results(operator("Shape"), {}, values(I32))


@pytest.mark.parametrize("dtype", [F32, *BORN])
def test_elements_need_their_opset(dtype: DType) -> None:
    born = BORN.get(dtype, 1)
    require_elements(dtype, born)
    if born > 1:
        with pytest.raises(ConversionError, match=f"no {dtype.value} elements; opset {born} is"):
            require_elements(dtype, born - 1)


@pytest.mark.parametrize(("dtype", "wrap", "text", "name"), [
    (F32, (), "float32", "tensor(float)"), (DType.STRING, (), "string", "tensor(string)"),
    (I64, ("sequence",), "sequence of int64", "seq(tensor(int64))"),
    (F16, ("optional", "sequence"), "optional of sequence of float16",
     "optional(seq(tensor(float16)))"),
])  # fmt: skip
def test_names_of_types(dtype: DType, wrap: tuple[str, ...], text: str, name: str) -> None:
    assert (format_type(dtype, wrap), schema_type_name(dtype, wrap)) == (text, name)
    names = {t for s in defs.get_all_schemas() for f in s.inputs for t in f.types}
    assert name in names
