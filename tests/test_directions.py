"""Models taken from every format to every other; conformance/directions.py takes many more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from testing import light_models, networks
from testing.directions import DIRECTIONS, TOLERANCE, directions, run_onnx
from testing.onnx_live import model_of, run_model
from testing.relay.running import graph_of, read_module

CORPUS = Path(__file__).parent / "relay" / "corpus.zip"
X = np.float32([[2, -1, 0.3], [1, 4, -7]])
NESTED = """g (bool c, bool d, float[2,3] x) => (float[2,3] z) {
  r = If(c) <then_branch = yes () => (t) {
      q = If(d) <then_branch = both () => (u) { u = Neg(x) }, else_branch = one () => (v) { v = Identity(x) }>
      t = Mul(q, x)
    }, else_branch = no () => (e) { e = Exp(x) }>
  z = Add(r, x)
}"""
TRUTHS = """g (int32[2,3] i, float[2,3] x) => (bool[2,3] z, int32[2,3] y) {
  a = Cast<to = 9>(i)
  zero = Constant<value_float = 0.0>()
  b = Less(x, zero)
  z = Or(a, b)
  y = Relu(i)
}"""


def assert_all(errors):
    wrong = {d: e for d, e in errors.items() if isinstance(e, str) or e >= TOLERANCE}
    assert not wrong
    assert set(errors) == set(DIRECTIONS)


@pytest.mark.parametrize("name", ["gru", "bert_batch_dot_where"])
def test_networks_of_mxnet(name, tmp_path):
    network = networks.build(name)
    feeds = networks.feeds(network, 1)
    expected = networks.compute(network, feeds)
    symbol, _ = networks.export(network, tmp_path)
    ir = serde.load(symbol, inputs=feeds)
    assert_all(dict(directions(ir, "mxnet", feeds, expected, tmp_path)))


def test_a_light_model(tmp_path):
    path = light_models.model_path("light_squeezenet")
    feeds = light_models.feeds(onnx.load(path))
    expected = run_onnx(path, feeds, 0)
    assert_all(dict(directions(serde.load(path), "onnx", feeds, expected, tmp_path)))


@pytest.mark.parametrize("name", ["cf-while-const", "cf-if-nested", "fe-onnx-lstm", "qnn-onnx-qop"])
def test_modules_of_tvm(name, tmp_path):
    case = read_module(CORPUS, name)
    ir = graph_of(case, name, tmp_path)
    assert_all(dict(directions(ir, "relay", case.feeds, case.outputs, tmp_path)))


@pytest.mark.parametrize(
    ("body", "feeds"),
    [
        *((NESTED, {"c": np.array(c), "d": np.array(d), "x": X}) for c, d in [(1, 1), (1, 0), (0, 1)]),
        (TRUTHS, {"i": np.int32([[0, 3, -2], [0, 0, 1]]), "x": X}),
    ],
)  # fmt: skip
def test_choices_in_choices_and_truths_of_integers(body, feeds, tmp_path):
    feeds = {n: a.astype(bool) if n in "cd" else a for n, a in feeds.items()}
    model = model_of(body, 17, 8)
    onnx.save(model, tmp_path / "m.onnx")
    ir = serde.load(tmp_path / "m.onnx")
    assert_all(dict(directions(ir, "onnx", feeds, run_model(model, feeds), tmp_path)))


def test_what_cannot_be_written_is_told_and_the_rest_runs(tmp_path):
    """MXNet has no integers of 16 bits that come in or go out."""
    model = model_of("g (int16[2] x) => (int16[2] y) { y = Neg (x) }", 17, 8)
    onnx.save(model, tmp_path / "m.onnx")
    feeds = {"x": np.int16([3, -4])}
    ir = serde.load(tmp_path / "m.onnx")
    errors = dict(directions(ir, "onnx", feeds, [-feeds["x"]], tmp_path))
    assert errors["onnx → mxnet"].startswith("refused: input: int16")
    assert errors["mxnet → onnx"] == "no such model"
    assert errors["relay → relay"] == 0
