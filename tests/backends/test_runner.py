"""What runs: models in the runtime of their format, partitioned ones in several."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.backends.runner import Hybrid, run_files
from testing.onnx_live import model_of

X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


@pytest.fixture
def file(tmp_path):
    onnx.save(
        model_of("g (float[2,3] x) => (float[2,3] y) { t = Relu(x)\n y = Tanh(t) }", 13),
        tmp_path / "m.onnx",
    )
    return tmp_path / "m.onnx"


def test_a_model_and_its_parts_compute_the_same(file, tmp_path):
    serde.partition(file, "opset 13").save(tmp_path / "parts")
    whole, parts = serde.run(file, {"x": X}), serde.run(tmp_path / "parts", {"x": X})
    np.testing.assert_allclose(whole["y"], np.tanh(np.maximum(X, 0)), rtol=1e-5)
    np.testing.assert_array_equal(whole["y"], parts["y"])
    assert isinstance(serde.prepare(tmp_path / "parts"), Hybrid)


def test_options_of_the_other_kind_are_refused(file, tmp_path):
    serde.partition(file, "opset 13").save(tmp_path / "parts")
    with pytest.raises(serde.UsageError, match="in parts: it takes no params"):
        serde.run(tmp_path / "parts", {"x": X}, params="p")
    with pytest.raises(serde.UsageError, match="not in parts: leave runtimes out"):
        serde.run(file, {"x": X}, {"remainder": "onnxruntime"})


def test_files_of_arrays(file, tmp_path):
    np.savez(tmp_path / "in.npz", x=X)
    outputs, seconds = run_files(str(file), str(tmp_path / "in.npz"), str(tmp_path / "out.npz"), {})
    assert seconds.keys() == {"m.onnx"}
    with np.load(tmp_path / "out.npz") as written:
        np.testing.assert_array_equal(written["y"], outputs["y"])


@pytest.mark.parametrize("names", [["x", "labels"], ["images"]])
def test_files_may_have_other_arrays_or_one_of_another_name(file, tmp_path, names):
    np.savez(tmp_path / "in.npz", **dict.fromkeys(names, X))
    outputs, _ = run_files(str(file), str(tmp_path / "in.npz"), None, {})
    np.testing.assert_allclose(outputs["y"], np.tanh(np.maximum(X, 0)), rtol=1e-5)


def test_sequences_are_no_arrays(tmp_path):
    body = "g (float[2,3] x) => (seq(float[2,3]) s) { s = SequenceConstruct(x, x) }"
    onnx.save(model_of(body, 13), tmp_path / "s.onnx")
    np.savez(tmp_path / "in.npz", x=X)
    arguments = str(tmp_path / "s.onnx"), str(tmp_path / "in.npz")
    with pytest.raises(serde.UsageError, match="'s' is a sequence"):
        run_files(*arguments, str(tmp_path / "out.npz"), {})
    assert not (tmp_path / "out.npz").exists()
    assert len(run_files(*arguments, None, {})[0]["s"]) == 2
