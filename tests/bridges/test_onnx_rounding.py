"""float16 that is rounded after each node."""

from __future__ import annotations

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from serde.bridges import onnxruntime
from testing.onnx_live import model_of

P = np.array([2047, 2049, 3001, 4095], np.float32)
SINE = "h = Cast<to = 10>(p) a = Mul(h, k) s = Sin(a) y = Cast<to = 1>(s)"
TEXTS = {
    "a graph": f"g (float[4] p) => (float[4] y) <float16 k = {{15360}}> {{ {SINE} }}",
    "a branch": "g (float[4] p, bool c) => (float[4] z) <float16 k = {15360}> { z = If(c) <"
    f"then_branch = t () => (float[4] y) {{ {SINE} }}, "
    "else_branch = e () => (float[4] w) { w = Identity(p) }> }",
    "a cast and back": "g (float[4] p) => (float[4] y) { h = Cast<to = 10>(p) a = Cast<to = 1>(h) "
    "y = Sin(a) }",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_as_the_reference_computes(text):
    model, feeds = model_of(text, opset=18), {"p": P, "c": np.array(True)}
    feeds = {n: a for n, a in feeds.items() if n in {i.name for i in model.graph.input}}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    (got,) = onnxruntime.run(model, feeds, rounded=True)
    np.testing.assert_allclose(got, expected, atol=1e-3)
    assert np.abs(expected - np.sin(P)).max() > 0.5


def test_float32_stays():
    model = model_of("g (float[4] p) => (float[4] y) { a = Mul(p, p) y = Sin(a) }")
    assert np.array_equal(
        onnxruntime.run(model, {"p": P}, rounded=True),
        onnxruntime.run(model, {"p": P}, optimize=False),
    )
