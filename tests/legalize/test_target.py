"""What a target accepts, asked of single nodes and values."""

from __future__ import annotations

from typing import Any

import pytest

from serde.ir.graph import DType, Node, Value
from serde.legalize.forms.form import Form
from serde.legalize.target import IR, LOWEST_WRITTEN, Target, legalization_table, opset_target
from serde.spec import schema

F16, F32, I8, I64 = DType.FLOAT16, DType.FLOAT32, DType.INT8, DType.INT64
FLOATS = {"Relu": {"T": frozenset({F32})}, "Concat": {}}


def node_of(op: str, *shapes: Any, dtype: DType = F32, domain: str = "", **attrs: Any) -> Node:
    values = tuple(Value(f"x{i}", dtype, s) for i, s in enumerate(shapes))
    return Node(op, values, (Value("y", dtype, shapes[0]),), attrs, domain)


def test_opsets_of_the_standard_are_remembered() -> None:
    assert opset_target(17) is opset_target(17) is not opset_target(17, frozenset({"Gelu"}))
    assert opset_target(17).is_standard and IR.is_standard
    assert not Target("toy", 17, FLOATS).is_standard
    rules = legalization_table("toy")
    rules("Relu")(lambda g, x: g.Neg(x))
    assert not Target("toy", 17, legalizations=rules).is_standard


@pytest.mark.parametrize(("op", "opset", "decomposed", "lowest"), [
    ("Relu", 17, (), 17), ("HardSwish", 17, (), 17), ("HardSwish", 17, ("HardSwish",), 13),
    ("HardSwish", 12, ("HardSwish",), 12), ("Relu", 17, ("Relu",), 17),
])  # fmt: skip
def test_operators_are_lowered_below_their_first_version_to_avoid_them(
    op: str, opset: int, decomposed: tuple[str, ...], lowest: int
) -> None:
    target = opset_target(opset, frozenset(decomposed))
    assert target.lowest_opset(op) == lowest
    first = schema.first_version(op)
    assert first is None or lowest == opset or lowest == max(first, LOWEST_WRITTEN) - 1


def test_an_operator_that_a_target_lacks_is_lowered_unless_it_has_a_rule() -> None:
    assert Target("toy", 17, FLOATS).lowest_opset("HardSwish") == 13
    rules = legalization_table("toy")
    rules("HardSwish")(lambda g, x: g.Relu(x))
    assert Target("toy", 17, FLOATS, legalizations=rules).lowest_opset("HardSwish") == 17


@pytest.mark.parametrize(("legal", "dtype", "expected"), [
    ({F32}, F16, {"T": F32}), ({F32, F16}, F16, {}), ({DType.INT32, I64}, I8, {"T": DType.INT32}),
    ({F32}, DType.FLOAT64, {}), ({I64}, DType.BOOL, {}),
])  # fmt: skip
def test_operands_are_computed_in_the_narrowest_wider_type(
    legal: set[DType], dtype: DType, expected: dict[str, DType]
) -> None:
    target = Target("toy", 17, {"Neg": {"T": frozenset(legal)}})
    operands = [Value("x", dtype, (2,))]
    assert target.promoted_types(schema.operator("Neg", 17), operands) == expected
    assert target.promoted_types(schema.operator("Exp", 17), operands) == {}
    assert target.promoted_types(schema.operator("Neg", 17), [Value("s", dtype, (2,), container=("sequence",))]) == {}  # fmt: skip


@pytest.mark.parametrize(("node", "reason"), [
    (node_of("Relu", (2,)), None), (node_of("Erf", (2,)), "toy has no Erf"),
    (node_of("Foo", (2,), domain="com.acme"), "toy has no com.acme:Foo"),
    (node_of("Foo", (2,), domain="own"), None),
])  # fmt: skip
def test_operators_that_it_lacks(node: Node, reason: str | None) -> None:
    assert Target("toy", 17, FLOATS, domains=frozenset({"own"})).illegal_operator(node) == reason


def test_element_types_that_it_lacks_come_with_advice() -> None:
    target = Target("toy", 17, FLOATS)
    assert target.illegal_types(node_of("Relu", (2,))) is None
    reason = target.illegal_types(node_of("Relu", (2,), dtype=F16))
    assert reason == "toy has no Relu of float16 elements. It takes float32: cast to one that holds the numbers"  # fmt: skip
    assert target.illegal_types(node_of("Concat", (2,), dtype=F16)) is None
    told = Target("toy", 17, FLOATS, type_advice={F16: "Give --compute float32"})
    reason = told.illegal_types(node_of("Relu", (2,), dtype=F16))
    assert reason == "toy has no Relu of float16 elements. Give --compute float32"
    strings = Target("toy", 17, {"Relu": {"T": frozenset({I64})}})
    reason = strings.illegal_types(node_of("Relu", (2,), dtype=F32))
    assert reason == "toy has no Relu of float32 elements"  # integers hold no such numbers


@pytest.mark.parametrize(("value", "reason"), [
    (Value("x", F32, (2, 3)), None),
    (Value("x", F32, ("N", 3)), r"'x' has the shape (N, 3); toy takes static shapes only"),
    (Value("x", F32, None), "'x' has the shape"),
    (Value("x", F32, (2,), container=("sequence",)), "'x' is a sequence; toy has tensors only"),
])  # fmt: skip
def test_values_that_it_lacks(value: Value, reason: str | None) -> None:
    target = Target("toy", sequences=False, dynamic_shapes=False)
    told = target.illegal_value(value)
    assert told is None if reason is None else told is not None and told.startswith(reason)
    assert Target("all").illegal_value(value) is None


def test_forms_that_it_lacks_are_of_nodes_or_of_results() -> None:
    wide = Form("the first axis", lambda call: call.attrs["axis"] == 0)
    for name in ("lacks", "lacks_results"):
        target = Target("toy", 17, **{name: {"CumSum": [wide]}})
        is_result = name == "lacks_results"
        assert target.illegal_form(node_of("CumSum", (2,), axis=1), True) is None
        assert target.illegal_form(node_of("CumSum", (2,), axis=0), True) is not None
        assert (target.illegal_form(node_of("CumSum", (2,), axis=0)) is None) == is_result
        assert target.illegal_form(node_of("CumSum", (2,), domain="own", axis=0), True) is None


def test_types_that_are_younger_than_the_opset_are_emulated() -> None:
    emulated = Target("toy", 17, emulated=frozenset({I8})).emulated_types
    assert {I8, DType.INT4, DType.FLOAT8E5M2} <= emulated and F16 not in emulated
    assert DType.BFLOAT16 not in emulated and DType.BFLOAT16 in opset_target(12).emulated_types
