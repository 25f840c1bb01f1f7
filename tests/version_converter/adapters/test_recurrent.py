"""Recurrent layers at opsets that have steps first, and at those that spelled them otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from serde.version_converter.adapters import recurrent
from testing.version_converter.old import WRITTEN, Old, run
from testing.version_converter.rules import check_rule, rules_of

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OLD = [
    ("RNN", 1, {}), ("RNN", 1, {"output_sequence": 1}), ("LSTM", 1, {"direction": "reverse"}),
    ("GRU", 3, {"linear_before_reset": 1}), ("GRU", 1, {"direction": "foward"}),
]  # fmt: skip


@pytest.mark.parametrize(("version", "op"), rules_of(recurrent))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize(("op", "opset", "attrs"), OLD)
def test_old_form(op: str, opset: int, attrs: dict[str, Any]) -> None:
    """The same as opset 7 gives, of which only ``output_sequence`` is gone."""
    draws, rows = np.random.default_rng(7), GATES[op] * 5
    x, w, r = (draws.standard_normal(s).astype(np.float32) * 0.5
               for s in ((4, 2, 3), (1, rows, 3), (1, rows, 5)))  # fmt: skip
    old = Old(op, opset, (x, w, r), {"hidden_size": 5, **attrs}, outputs=2)
    kept = {n: v for n, v in attrs.items() if n != "output_sequence" and v != "foward"}
    new = Old(op, 7, (x, w, r), {"hidden_size": 5, **kept}, outputs=2)
    model, feeds = old.model()
    got = run(to_proto(lower_to(raise_to_ir(decode(model)), WRITTEN)), feeds)
    plain, _ = new.model()
    for output in plain.graph.output:
        output.type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    for a, b in zip(run(plain, feeds), got, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
