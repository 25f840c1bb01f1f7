"""Nodes that onnx's C++ code is not asked about, and nodes that it is asked about and survives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from serde.errors import ConversionError
from serde.ir.graph import DType, Tensor, Value
from serde.spec import inference, onnx_library, schema
from serde.spec.inference import type_proto

ROOT = Path(__file__).resolve().parents[2]
F32, I64 = DType.FLOAT32, DType.INT64


def constant(name, *numbers):
    return Value(name, I64, (len(numbers),), Tensor.of(np.array(numbers, np.int64)))


@pytest.mark.parametrize("size", [-1, -2, -(2**63)])
@pytest.mark.parametrize("op", [op for op in schema.names() if schema.operator(op).inputs])
def test_no_operator_is_asked_about_a_negative_size(op, size):
    """Each operand in turn is of that size; onnx would end the process for some of them."""
    operator = schema.operator(op)
    for wrong in range(len(operator.inputs)):
        names = [f"i{at}" for at in range(len(operator.inputs))]
        types = {n: type_proto(F32, (2, size if at == wrong else 3)) for at, n in enumerate(names)}
        node = helper.make_node(op, names, ["o"])
        with pytest.raises(
            ConversionError, match=rf"operand {wrong} .* has the shape \(2, {size}\)"
        ):
            onnx_library.infer_node_types(operator, 28, node, types, {})


CALLS = {
    "a slice of less than nothing": ("Slice", (constant("s", 0), constant("e", 1)), {}, (-1, 6)),
    "parts of less than nothing": ("Split", (), {"num_outputs": 2}, (-2, 6)),
    "sizes of less than nothing": ("Resize", (None, None, constant("s", 1, 1, -3, 3)), {},
                                   (1, 1, 2, 2)),
    "more axes than there can be": ("Relu", (), {}, (1,) * 65),
    "an axis of no tensor": ("Softmax", (), {"axis": 2**40}, (2, 3)),
    "batch axes of no tensor": ("GatherND", (constant("i", 0),), {"batch_dims": -1}, (2, 3)),
    "a shape of many sizes": ("Expand", (Value("s", I64, (10**9,)),), {}, (2, 3)),
    "parts that are not read": ("Split", (), {"num_outputs": 10**9}, (4,)),
    "an equation of three sides": ("Einsum", (), {"equation": "i->i->i"}, (3,)),
    "an equation of many axes": ("Einsum", (), {"equation": "i" * 1000 + "->i"}, (3,)),
    "a result of less than nothing": ("Conv", (Value("w", F32, (1, 1, 5, 5)),), {}, (1, 1, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("title", CALLS)
def test_what_cannot_be_is_refused(title):
    op, others, attrs, shape = CALLS[title]
    operands = (Value("x", F32, shape), *others)
    with pytest.raises(ConversionError):
        inference.infer(schema.operator(op), 28, operands, attrs, 1)


@pytest.mark.parametrize("kind", ["i", "f", "s", "ints", "floats", "strings", "t"])
def test_attributes_are_of_the_declared_kind(kind):
    values = {"i": 1, "f": 1.5, "s": "a", "ints": [1, 2], "floats": [1.5, 2.5],
              "strings": ["a", "b"], "t": onnx.TensorProto(data_type=1)}  # fmt: skip
    for op in ("Softmax", "LeakyRelu", "Conv", "Cast", "Einsum", "ConstantOfShape"):
        operator = schema.operator(op)
        names = [f"i{at}" for at in range(len(operator.inputs))]
        types = dict.fromkeys(names, type_proto(F32, (1, 1)))
        for name, declared in operator.raw.attributes.items():
            made = helper.make_attribute(name, values[kind])
            if int(made.type) == int(declared.type.value):
                continue
            node = helper.make_node(op, names, ["o"])
            node.attribute.append(made)
            with pytest.raises(ConversionError, match=f"attribute '{name}' of {op}"):
                onnx_library.infer_node_types(operator, 28, node, types, {})


@pytest.mark.parametrize("first", [0, 10_000])
def test_random_nodes_end_no_process_and_take_no_second(first):
    command = [sys.executable, "-m", "tests.spec.random_nodes", str(first), str(first + 800)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-500:])
    assert [line for line in lines if line.startswith("slow")] == []
