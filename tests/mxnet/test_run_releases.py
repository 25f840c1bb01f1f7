"""Symbols written for old releases and for 2.0, run by those releases and by 1.9.1.

docs/results/mxnet-releases.md has all node tests and networks.
"""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

import serde
from serde.formats.mxnet.release_data import BROUGHT, REMOVED, RENAMED
from serde.formats.mxnet.releases import get_release
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet.releases_live import WRITTEN, worker
from testing.mxnet_live import run_symbol
from testing.networks import load_params
from testing.onnx_live import model_of, run_model

X = np.random.default_rng(0).standard_normal((2, 3, 6, 5), np.float32)
ROW = X.ravel()[:7]
HEAD = "g (float[2,3,6,5] x) => (float[{}] y) {{ {} }}"
OF_A_ROW = "g (float[7] x) => (float[7] y) {{ {} }}"
# What old releases have in another way: a model by what it is about, and its input.
MODELS = {
    "a sum of growing parts": (HEAD.format("2,3,6,5", """
        axis = Constant <value_int = 2> ()
        y = CumSum <reverse = 1> (x, axis)"""), X),
    "elements in order": (HEAD.format("2,3,6,2", """
        k = Constant <value_ints = [2]> ()
        v, i = TopK <axis = -1> (x, k)
        f = Cast <to = 1> (i)
        y = Add (v, f)"""), np.round(X)),
    "an error function": (HEAD.format("2,3,6,5", "e = Erf (x) y = Gelu (e)"), X),
    "a line between 0 and 1": (OF_A_ROW.format("h = HardSigmoid (x) y = HardSwish (h)"), ROW),
    "units of one axis": (OF_A_ROW.format("""
        a = Elu <alpha = 0.5> (x)
        b = LeakyRelu (a)
        y = Selu (b)"""), ROW),
    "elements from the end of an axis": (HEAD.format("2,2,2,6,5", """
        at = Constant <value = int64[2,2] {0, -1, 1, 2}> ()
        y = Gather <axis = 1> (x, at)"""), X),
    "a mean without the pads": (HEAD.format("2,3,6,5", """
        y = AveragePool <kernel_shape = [3,3], pads = [1,1,1,1]> (x)"""), X),
    "booleans inside": (HEAD.format("2,3,6,5", """
        zero = Constant <value = float {0.0}> ()
        one = Constant <value = float {0.5}> ()
        a = Greater (x, zero)
        b = Less (x, one)
        c = And (a, b)
        d = Or (a, b)
        e = Xor (c, d)
        n = Not (e)
        y = Where (n, x, zero)"""), X),
    "bounds of tensors": (HEAD.format("2,3,6,5", """
        low = ReduceMin <keepdims = 0> (x)
        half = Constant <value = float {0.5}> ()
        most = Mul (low, half)
        y = Clip (x, low, most)"""), X),
    "steps of a loop": ("""
g (float[7] x) => (float[7] y)
{
  steps = Constant <value = int64 {3}> ()
  go = Constant <value = bool {1}> ()
  y = Loop (steps, go, x) <body = turn (int64 i, bool on, float[7] s) => (bool same, float[7] t) {
    same = Identity (on)
    f = Cast <to = 1> (i)
    t = Add (s, f)
  }>
}""", ROW),
    "one of two branches": ("""
g (float[7] x) => (float[7] y)
{
  zero = Constant <value = float {0.0}> ()
  sum = ReduceSum <keepdims = 0> (x)
  c = Greater (sum, zero)
  y = If (c) <then_branch = yes () => (float[7] a) { a = Neg (x) },
              else_branch = no () => (float[7] b) { b = Exp (x) }>
}""", ROW),
    "layers that begin with zeros": (OF_A_ROW.format("""
        steps = Constant <value_ints = [7, 1, 1]> ()
        each = Reshape (x, steps)
        four = Constant <value_ints = [1, 4, 1]> ()
        three = Constant <value_ints = [1, 3, 1]> ()
        w = ConstantOfShape <value = float[1] {0.3}> (four)
        v = ConstantOfShape <value = float[1] {0.4}> (three)
        a = LSTM <hidden_size = 1> (each, w, w)
        b = Reshape (a, steps)
        c = GRU <hidden_size = 1, linear_before_reset = 1> (b, v, v)
        all = Constant <value_ints = [-1]> ()
        y = Reshape (c, all)"""), ROW),
    "a factor and a sum of channels": (HEAD.format("2,3,6,5", """
        kernel = Constant <value_ints = [3, 3, 3, 3]> ()
        w = ConstantOfShape <value = float[1] {0.1}> (kernel)
        factor = Constant <value = float[3,1,1] {2.0, 3.0, 4.0}> ()
        c = Conv <kernel_shape = [3,3], pads = [1,1,1,1]> (x, w)
        m = Mul (c, factor)
        s = Add (m, factor)
        y = Relu (s)"""), X),
    "regions aligned to half pixels": (HEAD.format("2,3,2,2", """
        rois = Constant <value = float[2,4] {0.5, 0.0, 3.0, 4.0, 1.0, 1.5, 4.0, 5.0}> ()
        image = Constant <value = int64[2] {0, 1}> ()
        y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2> (x, rois, image)"""),
        X),
}  # fmt: skip


@pytest.mark.parametrize("release", WRITTEN)
@pytest.mark.parametrize("model", MODELS)
def test_a_release_runs_what_is_written_for_it(model, release, tmp_path):
    body, x = MODELS[model]
    symbol = tmp_path / "m-symbol.json"
    serde.save(raise_to_ir(decode(model_of(body))), symbol, mxnet=release)
    expected = run_model(model_of(body), {"x": x})
    params = tmp_path / "m-0000.params"
    if not release.startswith("2"):
        same = run_symbol(symbol.read_text(), load_params(params), {"x": x})
        np.testing.assert_allclose(same[0], expected[0], rtol=1e-5, atol=1e-5)
    actual = worker(release).run([str(symbol), str(params)], {"x": x}, command="run_files")
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("release", WRITTEN)
@pytest.mark.parametrize("model", MODELS)
def test_what_is_written_for_a_release_is_read_as_one_of_it(model, release, tmp_path):
    body, x = MODELS[model]
    symbol, back = tmp_path / "m-symbol.json", tmp_path / "m.onnx"
    serde.save(raise_to_ir(decode(model_of(body))), symbol, mxnet=release)
    serde.convert(symbol, back, inputs={"x": (x.shape, x.dtype)})
    expected = run_model(model_of(body), {"x": x})
    actual = run_model(onnx.load(back), {"x": x})
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-5, atol=1e-5)


def test_operators_are_written_by_the_names_of_2(tmp_path):
    body, _ = MODELS["elements in order"]
    symbol = tmp_path / "m-symbol.json"
    serde.save(raise_to_ir(decode(model_of(body))), symbol, mxnet="2.0")
    written = json.loads(symbol.read_text())
    ops = {node["op"] for node in written["nodes"]}
    assert {"_npi_roll", "_npi_cumsum"} <= ops and not ops & RENAMED.keys()
    assert written["attrs"] == {"mxnet_version": ["int", 20000], "is_np_shape": ["int", 1]}


@pytest.mark.parametrize("release", WRITTEN)
def test_what_is_declared_is_what_a_release_has(release):
    """The registry of the release has what the table does not list, and nothing that it lists."""
    table = get_release(release)
    has = set(worker(release).ask("op_names"))
    things = [t for brought in (*BROUGHT.values(), REMOVED) for t in brought.split()]
    for op in (t for t in things if "." not in t):
        assert table.has(op) == (table.renamed.get(op, op) in has), op
