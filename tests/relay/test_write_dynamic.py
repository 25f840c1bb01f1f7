"""Layers of dynamic size in live TVM."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.passes import tidy
from testing.onnx_live import ir_of, model_of, run_model
from testing.relay.tvm_live import run

BODIES = {
    "a pool with pads at the end": (
        'y = MaxPool<auto_pad = "SAME_UPPER", strides = [2,2], kernel_shape = [2,2]>(x)'
    ),
    "a pool that is reversed": (
        'y = AveragePool<auto_pad = "SAME_UPPER", strides = [2,2], kernel_shape = [3,3]>(x)'
    ),
    "a convolution that is reversed": 'y = Conv<auto_pad = "SAME_LOWER", strides = [2,2]>(x, w)',
    "reflections that are read twice": (
        'p = Pad<mode = "reflect">(x, pads) s = Shape(p) r = Reshape(p, flat) y = Reshape(r, s)'
    ),
    "a convolution of rows that are counted from the end": (
        "p = Slice(x, fourth, last, rows, one) y = Conv(p, w)"
    ),
    "a convolution of a computed part": (
        "s = Shape(x) n = Gather(s, rows) h = Div(n, two) p = Slice(x, fourth, h, rows, one) "
        "q = Concat<axis = 2>(p, x) y = Conv(q, w)"
    ),
    "every other row, backwards": "y = Slice(x, last, fronts1, rows, back2)",
    "axes backwards": "y = Slice(x, ends, fronts, axes, steps)",
    "one axis backwards, part of another": "y = Slice(x, from, to, axes, steps)",
}
HELD = """int64[2] ends = {-1,-1}, int64[2] fronts = {-2147483649,-2147483649}, int64[2] axes = {2,3},
int64[2] steps = {-1,-1}, int64[2] from = {-1,3}, int64[2] to = {-2147483649,0},
int64[1] fourth = {-4}, int64[1] last = {-1}, int64[1] rows = {2}, int64[1] one = {1},
int64[1] two = {2}, int64[1] fronts1 = {-9}, int64[1] back2 = {-2}, int64[8] pads = {0,0,2,1,0,0,1,0}, int64[1] flat = {-1}, float[1,2,2,2] w = {1,-2,3,4,0.5,-0.25,2,7}"""


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("sizes", [(5, 8), (6, 7)])
def test_windows_and_reversals(name, sizes):
    text = f"g (float[N,2,H,W] x) => (float[N,2,I,J] y) <{HELD}> {{ {BODIES[name]} }}"
    module, held = to_module(from_ir(tidy(ir_of(text, 17))))
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 2, *sizes), np.float32)}
    (got,) = run("json", to_json(module), feeds | {n: t.load() for n, t in held.items()})
    (expected,) = run_model(model_of(text, 17, 8), feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
