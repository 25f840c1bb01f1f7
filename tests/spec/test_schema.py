"""What the standard says of operators, as the core sees it."""

from __future__ import annotations

import re
import subprocess
import sys

import onnx
import pytest
from onnx import defs

from serde.errors import UnsupportedOp
from serde.ir.graph import IR_OPSET, DType
from serde.spec import schema

SIX_BITS = {onnx.TensorProto.FLOAT6E2M3, onnx.TensorProto.FLOAT6E3M2}  # not known to serde yet


def test_the_ir_is_the_newest_opset_of_the_required_onnx():
    assert defs.onnx_opset_version() >= IR_OPSET
    assert schema.names(IR_OPSET)


def test_every_element_type_of_onnx_is_known_and_no_other():
    codes = set(onnx.TensorProto.DataType.values()) - {onnx.TensorProto.UNDEFINED}
    assert codes - set(schema.ELEMENT_TYPES) == SIX_BITS and codes >= set(schema.ELEMENT_TYPES)
    assert set(schema.ELEMENT_CODES) == set(DType)


def test_every_type_a_schema_names_is_understood():
    for op in schema.names(IR_OPSET):
        raw = schema.operator(op).raw
        for formal, operand in zip(raw.inputs, schema.operator(op).inputs, strict=True):
            allowed = {t for c in raw.type_constraints if c.type_param_str == formal.type_str
                       for t in c.allowed_type_strs} or {formal.type_str}  # fmt: skip
            tensors = {t for t in allowed if t.startswith("tensor(") and "float6" not in t}
            assert len(operand.types) >= len(tensors), (op, formal.name)


@pytest.mark.parametrize(
    ("op", "opset", "why"),
    [
        ("Gelu", 13, "opset 13 has no operator 'Gelu'; opset 20 is the lowest that has it"),
        ("Upsample", IR_OPSET, f"opset {IR_OPSET} has no operator 'Upsample'"),
        ("Nope", 17, "opset 17 has no operator 'Nope'"),
    ],
)
def test_operators_that_are_not_there(op, opset, why):
    assert schema.find(op, opset) is None
    with pytest.raises(UnsupportedOp, match=why):
        schema.operator(op, opset)


def test_the_first_version_is_that_of_the_present_life():
    assert schema.first_version("Gelu") == 20
    assert schema.first_version("Relu") == 1
    assert schema.first_version("Nope") is None


@pytest.mark.parametrize(
    ("op", "count", "takes"),
    [("Concat", 99, True), ("Relu", 1, True), ("Relu", 2, False), ("Conv", 3, True),
     ("RandomNormal", 0, True), ("RandomNormal", 1, False)],
)  # fmt: skip
def test_how_many_operands_an_operator_takes(op, count, takes):
    assert schema.operator(op).takes(count) is takes


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (b"text", "text"),
        (b"\xff\xfe", b"\xff\xfe"),
        (0.8999999761581421, 0.9),
        (0.30000001192092896, 0.3),
        (float("inf"), float("inf")),
        (3.4028234663852886e38, 3.4028235e38),
        (-0.0, -0.0),
        ([1, 2], (1, 2)),
        ([0.10000000149011612, b"a"], (0.1, "a")),
    ],
)
def test_attributes_are_spelled_as_briefly_as_they_are_stored(value, plain):
    assert schema.to_python_attribute(value) == plain
    assert str(schema.to_python_attribute(value)) == str(plain)


def test_defaults_are_those_of_the_standard():
    assert schema.operator("BatchNormalization").defaults == {
        "epsilon": 1e-05, "momentum": 0.9, "training_mode": 0,
    }  # fmt: skip
    assert schema.operator("Softmax", 11).defaults == {"axis": 1}
    assert schema.operator("Softmax", 13).defaults == {"axis": -1}


def test_an_onnx_that_is_too_old_is_named():
    code = (
        "import onnx.defs; onnx.defs.onnx_opset_version = lambda: 21\n"
        "import serde\n"
        "try: serde.load('x.onnx')\n"
        "except serde.MissingDependency as error: print(error)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert re.fullmatch(
        r"onnx \S+ knows opsets up to 21, and serde needs 28: pip install -U onnx\n", process.stdout
    )
