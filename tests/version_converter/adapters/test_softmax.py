"""Softmax and its like, which opsets below 13 computed over all axes from one on."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from serde.version_converter.adapters import softmax
from testing.version_converter.old import WRITTEN, M, Old, X, run
from testing.version_converter.rules import check_rule, rules_of

FLAT = [(op, v, a) for op in ("Softmax", "LogSoftmax", "Hardmax") for v, a in (
    (7, 0), (7, 1), (7, 2), (11, 1), (11, -1), (11, -2), (13, -1))]  # fmt: skip


@pytest.mark.parametrize(("version", "op"), rules_of(softmax))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("written", [7, 11, 13, WRITTEN])
@pytest.mark.parametrize(("op", "opset", "axis"), FLAT)
def test_normalized_at_an_unknown_rank(op: str, opset: int, axis: int, written: int) -> None:
    """No rank is needed to take all axes from one on as one, nor for the last axis."""
    model, _ = Old(op, opset, (X[0],), {"axis": axis}).model()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    got = run(to_proto(lower_to(raise_to_ir(decode(model)), written)), [X[0]])
    for a, b in zip(run(model, [X[0]]), got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", [
    Old("Softmax", 1, (X,), {"axis": 1}, None),
    Old("LogSoftmax", 11, (X,), {"axis": 2}, None),
    Old("Hardmax", 1, (M,), {}, np.eye(3, dtype=np.float32)[M.argmax(1)]),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()
