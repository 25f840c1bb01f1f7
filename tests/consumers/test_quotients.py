"""Rounded quotients by integers, for which consumers multiply by the reciprocal."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from testing.consumers.runtimes import TITLES, is_here, run
from testing.onnx_live import model_of
from tests.consumers.checks import check_form

NUMBERS = np.arange(-300, 6000, dtype=np.float32).reshape(1, -1)
SIGNATURE = "(float[1,6300] x) => (float[1,6300] y)"
COUNTS = "a = Abs(x) f = Floor(a) n = Add(f, one) "  # integers in value, by how they are computed
FORMS = {
    "floor": "q = Div(x, c) y = Floor(q)",
    "ceiling": "q = Div(x, c) y = Ceil(q)",
    "nearest": "q = Div(x, c) y = Round(q)",
    "integer": "q = Div(x, c) i = Cast<to = 6>(q) y = Cast<to = 1>(i)",
    "truncated": "q = Div(x, c) s = Sign(q) a = Abs(q) f = Floor(a) y = Mul(s, f)",
    "rest": "q = Div(x, c) f = Floor(q) m = Mul(f, c) y = Sub(x, m)",
    "of computed numbers": COUNTS + "q = Div(x, n) y = Floor(q)",
    "by computed numbers": COUNTS + "q = Div(c, n) y = Floor(q)",
}


@pytest.mark.parametrize("divisor", [7, 41, -47, 82])  # whose reciprocals are less, or more
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TITLES)
def test_rounded_quotients(name, form, divisor, tmp_path):
    if not is_here(name):
        pytest.skip(f"no live {name}")
    held = {"x": NUMBERS, "c": np.float32(divisor), "one": np.float32(1)}
    check_form(SIGNATURE, FORMS[form], held, name, tmp_path)


@pytest.mark.parametrize("divisor", [7, 41, -47])
@pytest.mark.parametrize("name", ["mnn", "onnxruntime", "openvino", "tract"])
def test_remainders(name, divisor, tmp_path):
    if not is_here(name):
        pytest.skip(f"no live {name}")
    held = {"x": NUMBERS, "c": np.float32(divisor)}
    check_form(SIGNATURE, "y = Mod<fmod = 1>(x, c)", held, name, tmp_path)


@pytest.mark.parametrize("divisor", [7, 41, -47])
@pytest.mark.parametrize("name", ["mnn", "onnxruntime", "openvino", "tract"])
def test_remainders_of_the_sign_of_the_divisor(name, divisor, tmp_path):
    if not is_here(name):
        pytest.skip(f"no live {name}")
    model = model_of(f"g {SIGNATURE} {{ y = Mod(x, c) }}", opset=28, ir_version=13)
    model.graph.initializer.append(from_array(np.float32(divisor), "c"))
    onnx.save(model, tmp_path / "m.onnx")
    serde.convert(tmp_path / "m.onnx", tmp_path / "w.onnx", profile=name)
    (got,) = run(name, str(tmp_path / "w.onnx"), {"x": NUMBERS})
    np.testing.assert_allclose(got, np.mod(NUMBERS, divisor), atol=1e-3)
