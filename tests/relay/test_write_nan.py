"""What is not so of numbers that are none: TVM turns comparisons round."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.onnx.reader import decode
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.onnx_live import model_of, run_model
from testing.relay.tvm_live import run

BODY = """
g (float[{n},4] x, float[{n},4] z, bool[{n},4] c) => (bool[{n},4] a, bool[{n},4] b, bool[{n},4] d, bool[{n},4] e, float[{n},4] f)
{{
  more = Greater (x, z)
  a = Not (more)
  same = Equal (x, x)
  b = Not (same)
  both = And (c, more)
  d = Not (both)
  e = IsNaN (x)
  f = Where (a, x, z)
}}"""


@pytest.mark.parametrize("size", ["3", "N"])
def test_what_is_not_so(size):
    rng = np.random.default_rng(1)
    x, z = rng.integers(-1, 2, (2, 3, 4)).astype(np.float32)
    x[rng.random(x.shape) < 0.4] = np.nan
    feeds = {"x": x, "z": z, "c": rng.integers(0, 2, (3, 4)).astype(bool)}
    model = model_of(BODY.format(n=size))
    graph = from_ir(tidy(raise_to_ir(decode(model))))
    module, weights = to_module(graph)
    outputs = run("json", to_json(module), {**feeds, **{n: t.load() for n, t in weights.items()}})
    for got, expected in zip(outputs, run_model(model, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_whole_numbers_are_turned_round():
    body = "g (int64[4] x, int64[4] z) => (bool[4] y) { m = Greater (x, z) y = Not (m) }"
    graph = from_ir(tidy(raise_to_ir(decode(model_of(body)))))
    assert [n.op for n in graph.nodes] == ["greater", "logical_not"]
