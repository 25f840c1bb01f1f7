"""Models run in the framework of their format: files, live objects, graphs, and their inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde import api
from serde.errors import SerdeError
from serde.plugins import Bridge
from serde.verification.run_model import RunnableModel
from serde.verification.source_runs import prepare
from testing.mxnet_live import live_mxnet
from testing.onnx_live import DIGITS, ir_of, model_of, run_model

TWO = "g (float[N,3] x, float[N,3] bias) => (float[N,3] y, float[N] top) { s = Add(x, bias)\n y = Relu(s)\n top = ReduceMax<axes=[1], keepdims=0>(s) }"
X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
FEEDS = {"x": X, "bias": X[::-1].copy()}


@pytest.fixture
def file(tmp_path):
    onnx.save(model_of(TWO, 13), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def assert_right(outputs):
    y, top = run_model(model_of(TWO, 13), FEEDS)
    assert list(outputs) == ["y", "top"]
    np.testing.assert_array_equal(outputs["y"], y)
    np.testing.assert_array_equal(outputs["top"], top)


class TestInputs:
    def test_by_name_by_place_and_as_one_mapping(self, file):
        model = serde.prepare(file)
        for outputs in (
            serde.run(file, FEEDS), model(FEEDS), model(**FEEDS), model(X, FEEDS["bias"]),
            model(X, bias=FEEDS["bias"]), model({"x": X}, bias=FEEDS["bias"]),
        ):  # fmt: skip
            assert_right(outputs)

    def test_lists_have_the_type_of_the_input(self, file):
        assert_right(serde.run(file, {n: x.tolist() for n, x in FEEDS.items()}))

    @pytest.mark.parametrize(
        ("feeds", "message"),
        [
            ({"x": X, "biased": X}, "no input 'biased'; did you mean 'bias'"),
            ({"other": X}, r"no input 'other'; it has \(x: float32 \(N, 3\), bias"),
            ({"x": X.astype(np.float64), "bias": X}, r"'x' is float32, and not float64: .*astype"),
            ({"x": X}, "without the input 'bias'"),
        ],
    )
    def test_others_are_refused(self, file, feeds, message):
        with pytest.raises(serde.UsageError, match=message):
            serde.run(file, feeds)

    def test_too_many_and_twice(self, file):
        model = serde.prepare(file)
        with pytest.raises(serde.UsageError, match="3 arrays are more"):
            model(X, X, X)
        with pytest.raises(serde.UsageError, match="given twice"):
            model(X, x=X)

    def test_sequences(self, tmp_path):
        body = "g (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence<axis=0>(s) }"
        onnx.save(model_of(body, 13), tmp_path / "s.onnx")
        outputs = serde.run(tmp_path / "s.onnx", {"s": [X[0], X[1]]})
        np.testing.assert_array_equal(outputs["y"], X.ravel())


class TestSources:
    def test_mxnet_files_run_in_mxnet(self):
        live_mxnet()
        test = np.load(DIGITS / "test.npz")
        outputs = serde.run(DIGITS, {"data": test["data"]})
        np.testing.assert_allclose(outputs["softmax_output"], test["expected"], atol=1e-6)
        (end,) = serde.run(DIGITS, test["data"], outputs=["fc1"]).items()
        assert end[0] == "fc1_output" and end[1].shape == (360, 32)

    def test_outputs_of_training_are_left_out(self, tmp_path):
        mx = live_mxnet()
        x = mx.sym.var("x")
        symbol = mx.sym.Group(
            [mx.sym.MakeLoss(mx.sym.sum(x), name="loss"), mx.sym.exp(x, name="e")]
        )
        (tmp_path / "m-symbol.json").write_text(symbol.tojson())
        outputs = serde.run(tmp_path / "m-symbol.json", {"x": X})
        assert "e_output" in outputs
        np.testing.assert_allclose(outputs["e_output"], np.exp(X), rtol=1e-6)

    def test_live_symbols_with_their_arrays(self):
        mx = live_mxnet()
        symbol = mx.sym.broadcast_add(mx.sym.var("x"), mx.sym.var("b"), name="sum")
        outputs = serde.run(symbol, {"x": mx.nd.array(X)}, params={"b": mx.nd.array(X[:1])})
        np.testing.assert_array_equal(outputs["sum_output"], X + X[:1])

    def test_graphs_of_the_ir_and_of_a_format(self, file):
        assert_right(serde.load(file)(**FEEDS))
        assert_right(ir_of(TWO.replace("<axes=[1], keepdims=0>(s)", "<keepdims=0>(s, at)").replace("=> (", "=> (", 1).replace(" {", " <int64[1] at = {1}> {", 1), 18)(FEEDS))  # fmt: skip
        live_mxnet()
        graph, name = api.read(DIGITS)
        test = np.load(DIGITS / "test.npz")
        assert name == graph.domain == "mxnet"
        np.testing.assert_allclose(
            graph(test["data"])["softmax_output"], test["expected"], atol=1e-6
        )

    def test_a_model_proto(self):
        assert_right(serde.run(model_of(TWO, 13), FEEDS))

    def test_a_graph_with_weights_in_files(self, tmp_path):
        weight = np.arange(3 * 400, dtype=np.float32).reshape(3, 400)
        model = model_of("g (float[N,3] x) => (float[N,400] y) { y = MatMul(x, w) }", 13)
        model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        onnx.save(model, tmp_path / "w.onnx", save_as_external_data=True, size_threshold=0)
        np.testing.assert_allclose(serde.load(tmp_path / "w.onnx")(X)["y"], X @ weight, rtol=1e-5)


def test_what_a_loaded_model_says_of_itself(file):
    model = RunnableModel(file)
    assert repr(model) == (
        "(x: float32 (N, 3), bias: float32 (N, 3)) -> (y: float32 (N, 3), top: float32 (N))"
    )


def test_a_bridge_cannot_write_into_the_feeds():
    """They are the caller's, and those that another model is compared on."""
    toy = Bridge("toy", (), "onnx", serde.load, run=lambda source, feeds: [feeds["x"].sort()])
    x = np.float32([2, 1])
    with pytest.raises(SerdeError, match="toy raises ValueError: .*read-only"):
        prepare(toy, "m.toy")({"x": x})
    np.testing.assert_array_equal(x, [2, 1])
