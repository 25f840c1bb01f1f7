"""Operands whose sizes have to be the same, for consumers that cannot tell two names to be one."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from testing.onnx_live import error, model_of, run_model
from testing.relax.relax_live import run as run_in_relax
from tests.consumers.checks import check_form, refusals

FORMS = {  # the signature, with a place for each of two sizes, and the body
    "Concat": ("(float[{0},3] x, float[{1},3] w) => (y)", "y = Concat <axis = 1> (x, w)"),
    "MatMul": ("(float[{0},3,4] x, float[{1},4,5] w) => (y)", "y = MatMul (x, w)"),
    "BatchNormalization": (
        "(float[2,{0},3] x, float[{1}] w) => (y)",
        "a = Exp (w) y = BatchNormalization (x, a, a, a, a)",
    ),
}
OTHERS = [("N", "M"), ("?", "?"), ("?", "4")]
SAME = [("N", "N"), ("4", "4")]


@pytest.mark.parametrize("sizes", OTHERS)
@pytest.mark.parametrize("op", FORMS)
def test_relax_wants_one_name(op, sizes, tmp_path):
    signature, body = FORMS[op]
    (reason,) = refusals(signature.format(*sizes), body, "relax", tmp_path)
    assert f" has no {op} with sizes that are to be the same" in reason
    assert reason.endswith(". Give numbers (static=, inputs=)")


@pytest.mark.parametrize("sizes", SAME)
@pytest.mark.parametrize("op", FORMS)
def test_relax_computes_what_has_one_name(op, sizes, tmp_path):
    signature, body = FORMS[op]
    model = model_of(f"g {signature.format(*sizes)} {{ {body} }}", 17, 8)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", profile="relax")
    draws = np.random.default_rng(0)
    shapes = {
        i.name: [d.dim_value or 4 for d in i.type.tensor_type.shape.dim] for i in model.graph.input
    }
    feeds = {n: draws.standard_normal(s, np.float32) for n, s in shapes.items()}
    (got,) = run_in_relax(str(tmp_path / "b.onnx"), feeds)
    assert error(got, run_model(model, feeds)[0]) < 1e-5


def test_tract_wants_one_name(tmp_path):
    signature, body = FORMS["MatMul"]
    (reason,) = refusals(signature.format("N", "4"), body, "tract", tmp_path)
    assert (
        reason
        == "tract has no MatMul with sizes that are to be the same and have other names: 4 and N. Give numbers (static=, inputs=)"
    )
    check_form(signature.format("N", "N"), body, {}, "tract", tmp_path)
