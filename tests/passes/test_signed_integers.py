"""uint8 that stand for floats, as int8."""

from __future__ import annotations

import numpy as np
import pytest

from serde.ir.graph import DType
from serde.passes.signed_integers import make_signed
from testing.onnx_live import ir_of, run

SCALE = "float s = {0.5}, uint8 z = {ZERO}, uint8 other = {7}, int64[2] to = {4, 2}"
BODIES = {  # what stands between x and y, and whether its uint8 become int8
    "nothing": ("y = DequantizeLinear(q, s, z)", True),
    "moved": ("t = Transpose(q) r = Reshape(t, to) y = DequantizeLinear(r, s, z)", True),
    "joined": ("b = QuantizeLinear(x, s, z) c = Concat<axis = 0>(q, b) "
               "y = DequantizeLinear(c, s, z)", True),
    "of two readers": ("t = Transpose(q) a = DequantizeLinear(t, s, z) "
                       "b = DequantizeLinear(q, s, z) c = Transpose(b) y = Add(a, c)", True),
    "of another zero point": ("y = DequantizeLinear(q, s, other)", False),
    "computed with": ("m = Max(q, other) y = DequantizeLinear(m, s, z)", False),
    "joined with others": ("b = QuantizeLinear(x, s, other) c = Concat<axis = 0>(q, b) "
                           "y = DequantizeLinear(c, s, z)", False),
    "an output": ("q2 = Identity(q) y = DequantizeLinear(q, s, z)", False),
}  # fmt: skip


@pytest.mark.parametrize("zero", [0, 128])
@pytest.mark.parametrize(("body", "is_signed"), BODIES.values(), ids=BODIES)
def test_bytes_that_only_stand_for_floats_become_signed(body, is_signed, zero):
    more = ", uint8[2,4] q2" if "q2" in body else ""
    constants = SCALE.replace("ZERO", str(zero))
    text = f"g (float[2,4] x) => (float[?,?] y{more}) <{constants}> {{ q = QuantizeLinear(x, s, z) {body} }}"
    graph = ir_of(text)
    done = make_signed(graph)
    types = {n.outputs[0].dtype for n in done.nodes if n.op == "QuantizeLinear"}
    assert types == {DType.INT8 if is_signed else DType.UINT8}
    x = np.random.default_rng(0).uniform(0, 50, (2, 4)).astype(np.float32)
    bound = 0 if zero or not is_signed else 0.5 * 255 / 127 / 2 + 0.25  # half as many steps
    got, expected = run(done, {"x": x})[0], run(graph, {"x": x})[0]
    assert np.abs(got - expected).max() <= bound * 2 if bound else (got == expected).all()


def test_a_graph_without_bytes_is_the_same():
    graph = ir_of("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert make_signed(graph) is graph
