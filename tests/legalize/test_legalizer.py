"""The builder that makes operators legal, asked for single operators."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError, UnsupportedOp
from serde.ir.graph import DType
from serde.legalize.legalizer import Legalizer
from serde.legalize.target import IR, Target, legalization_table, opset_target

F32 = DType.FLOAT32


def build(target, opset=28):
    g = Legalizer("g", target, opset=opset)
    return g, g.input("x", F32, (2, 3, 4))


def operators(g):
    return [(n.op, dict(n.attrs)) for n in g.nodes]


def test_an_operator_that_the_target_has_is_one_node():
    g, x = build(opset_target(17))
    y = g.Relu(x)
    assert operators(g) == [("Relu", {})]
    assert (y.dtype, y.shape) == (F32, (2, 3, 4))


def test_an_older_operator_is_raised():
    g, x = build(IR, 11)
    assert g.Softmax(x, axis=2).shape == (2, 3, 4)
    assert operators(g) == [("Softmax", {"axis": 2})]


def test_an_operator_is_lowered_by_adapters():
    g, x = build(opset_target(11))
    g.Softmax(x, axis=1)
    assert [op for op, _ in operators(g)] == ["Transpose", "Softmax", "Transpose"]


def test_an_operator_that_the_target_lacks_is_decomposed():
    g, x = build(opset_target(13))
    g.HardSwish(x)
    assert [op for op, _ in operators(g)] == ["HardSigmoid", "Mul"]


def test_constants_are_folded():
    g, _ = build(opset_target(17))
    total = g.Add(g.const(np.float32(1)), g.const(np.float32(2)))
    assert total.array() == 3
    assert not g.nodes


def test_the_rule_of_a_target_comes_first_and_may_pass():
    rules = legalization_table("squares")

    @rules("Relu")
    def relu_as_max(g, x):
        return g.Max(x, np.float32(0)) if x.rank == 3 else None

    g = Legalizer("g", Target("squares", 17, legalizations=rules))
    g.Relu(g.input("x", F32, (2, 3, 4)))
    g.Relu(g.input("y", F32, (2,)))
    assert [op for op, _ in operators(g)] == ["Max", "Relu"]


def test_operands_of_types_that_an_operator_lacks_are_cast():
    g = Legalizer("g", opset_target(13))
    y = g.Relu(g.input("x", DType.INT32, (2,)))
    assert y.dtype is DType.INT32
    assert [op for op, _ in operators(g)] == ["Cast", "Relu", "Cast"]


def test_a_rule_that_emits_itself_ends_in_an_error():
    rules = legalization_table("endless")

    @rules("Relu")
    def relu_again(g, x):
        return g.Relu(g.Neg(x))

    g = Legalizer("g", Target("endless", 17, legalizations=rules))
    with pytest.raises(ConversionError, match="does not end"):
        g.Relu(g.input("x", F32, (2,)))


def test_an_operator_that_no_opset_has_is_refused():
    g, x = build(opset_target(17))
    with pytest.raises(UnsupportedOp, match="NoSuchOp"):
        g.NoSuchOp(x)


def test_subgraphs_share_decisions_and_diagnostics():
    g, _ = build(opset_target(17))
    body = g.child("body")
    assert body.decisions is g.decisions
    assert body.diagnostics is g.diagnostics
