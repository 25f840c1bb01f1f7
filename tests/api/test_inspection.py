"""What files hold: models with the types that a conversion infers, and arrays alone."""

from __future__ import annotations

import json
import shutil

import numpy as np
import onnx
import pytest

import serde
from serde.api.inspection import inspect
from serde.ir.graph import show_shape
from testing.onnx_live import DIGITS, ir_of, model_of


class TestModels:
    def test_mxnet_has_the_types_that_check_tells(self):
        found, checked = inspect(DIGITS), serde.check(DIGITS)
        data = [v for v in found.inputs if v["name"] == "data"]
        assert (data, found.outputs) == (checked.inputs, checked.outputs)
        assert found.operators["Convolution"] == 2 and found.version == "1.9.1"

    def test_values_inside(self):
        graph = inspect(DIGITS, all_values=True, inputs={"data": (1, 1, 8, 8)}).graph
        shapes = {v.name: show_shape(v.shape) for n in graph.nodes for v in n.outputs}
        assert shapes["conv1_output"] == "(1, 16, 8, 8)"
        assert shapes["pool1_output"] == "(1, 32, 4, 4)" and shapes["fc2_output"] == "(1, 10)"

    def test_without_its_weights(self, tmp_path):
        shutil.copy(DIGITS / "digits-symbol.json", tmp_path)
        found = inspect(tmp_path / "digits-symbol.json")
        assert found.outputs[0]["shape"] == "(N, 10)" and found.weights == []

    def test_a_model_that_does_not_convert(self, tmp_path):
        model = model_of("g (float[2] x) => (y) { y = own.Secret(x) }", 13)
        model.opset_import.add(domain="own", version=1)
        onnx.save(model, tmp_path / "m.onnx")
        found = inspect(tmp_path / "m.onnx")
        assert found.operators == {"own:Secret": 1} and found.outputs[0]["dtype"] is None

    def test_graphs_are_left_as_they_are(self):
        graph = ir_of("g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
        before = str(graph)
        assert inspect(graph, all_values=True).graph is graph and str(graph) == before


class TestJson:
    def test_shapes_are_lists(self, tmp_path):
        body = "g (float[N,3] x, float[] s) => (float[N,3] y) { y = Mul(x, s) }"
        model = model_of(body, 13)
        model.graph.input[1].type.tensor_type.ClearField("shape")
        onnx.save(model, tmp_path / "m.onnx")
        read = json.loads(json.dumps(inspect(tmp_path / "m.onnx").to_json()))
        assert [v["shape"] for v in read["inputs"]] == [["N", 3], None]
        assert read["outputs"] == [{"name": "y", "dtype": "float32", "shape": ["N", 3]}]
        assert "values" not in read and "weights" not in read

    def test_values_and_weights(self):
        read = inspect(DIGITS, all_values=True).to_json(all_values=True)
        values = {v["name"]: v for v in read["values"]}
        assert values["fc1_output"] == {
            "operator": "FullyConnected", "name": "fc1_output", "dtype": "float32", "shape": ["N", 32]
        }  # fmt: skip
        weights = {w["name"]: w for w in read["weights"]}
        graph = serde.load(DIGITS, outputs=["fc2"])
        (bias,) = [v.array() for v in graph.constants() if v.name == "fc2_bias"]
        assert weights["fc2_bias"]["statistics"]["largest"] == float(bias.max())
        assert [sum(w["statistics"]["histogram"]) for w in weights.values()] == [
            np.prod(w["shape"]) for w in weights.values()
        ]


@pytest.mark.parametrize("batch", [2, "N"])
def test_shapes_that_a_conversion_infers_in_another_layout_are_those_of_the_file(batch, tmp_path):
    """A TensorFlow Lite file has images with channels last inside."""
    serde.convert(DIGITS, tmp_path / "d.tflite", inputs={"data": (batch, 1, 8, 8)})
    found = inspect(tmp_path / "d.tflite", all_values=True)
    shapes = {node.op: node.outputs[0].shape for node in found.graph.nodes}
    size = batch if batch == 2 else None
    assert shapes["CONV_2D"] == (size, 8, 8, 32) and shapes["MAX_POOL_2D"] == (size, 4, 4, 32)
    assert shapes["SOFTMAX"] == (batch, 10)  # inferred, with the name of the size
    inputs = {"data": (5, 1, 8, 8)}
    found = inspect(tmp_path / "d.tflite", all_values=True, inputs=inputs)
    assert all(v.shape is None or v.shape[0] == 5 for n in found.graph.nodes for v in n.outputs)


class TestArrays:
    def test_parameters_beside_a_symbol_or_alone(self, tmp_path):
        shutil.copy(DIGITS / "digits-0010.params", tmp_path / "alone.params")
        for path in (DIGITS / "digits-0010.params", tmp_path / "alone.params"):
            found = inspect(path)
            names = [w.name for w in found.weights]
            assert found.graph is None and found.format == "mxnet"
            assert len(names) == 15 and "arg:fc1_weight" in names and "aux:bn1_moving_var" in names
            assert found.parameters == inspect(DIGITS).parameters
            read = found.to_json()
            assert read["weights"][0]["shape"] == [16, 1, 3, 3] and "inputs" not in read

    def test_parameters_of_relay_and_of_numpy(self, tmp_path):
        serde.convert(DIGITS, tmp_path / "d.relay", inputs={"data": (1, 1, 8, 8)})
        found = inspect(tmp_path / "d.params")
        assert found.format == "relay" and found.graph is None and found.parameters > 20_000
        np.savez(tmp_path / "a.npz", a=np.zeros((2, 3), np.int8), b=np.ones(4))
        found = inspect(tmp_path / "a.npz")
        assert [(w.name, w.shape) for w in found.weights] == [("a", (2, 3)), ("b", (4,))]

    def test_options_of_a_model_ask_for_the_model(self):
        found = inspect(DIGITS / "digits-0010.params", outputs=["fc1"])
        assert found.graph is not None and found.outputs[0]["name"] == "fc1_output"

    @pytest.mark.parametrize("text", [b"", b"nonsense"])
    def test_other_files_are_refused(self, tmp_path, text):
        (tmp_path / "x.params").write_bytes(text)
        with pytest.raises(serde.SerdeError):
            inspect(tmp_path / "x.params")
