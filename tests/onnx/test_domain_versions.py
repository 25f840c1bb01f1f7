"""Versions of ai.onnx.ml, and the types of what its operators give."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import serde
from testing.onnx_live import run_model

CLASSIFIER = """ai.onnx.ml.LinearClassifier<classlabels_ints = [0, 1],
    coefficients = [1.0, 2.0, 3.0, -1.0, -2.0, -3.0], intercepts = [0.1, -0.1], multi_class = 1,
    post_transform = "LOGISTIC">(x)"""
MODELS = {  # nodes, and the types of outputs
    "several results": (
        f"""l, a = {CLASSIFIER} p = ai.onnx.ml.Normalizer<norm="L1">(a) m, b = {CLASSIFIER}
        q = ai.onnx.ml.Normalizer<norm="L1">(b) y = SequenceConstruct(p, q)""",
        {"l": "tensor(int64)", "y": "seq(tensor(float))"}),
    "maps": (
        f"l, a = {CLASSIFIER} y = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(a)",
        {"l": "tensor(int64)", "y": "seq(map(int64,tensor(float)))"}),
    "labels": (
        f"l, y = {CLASSIFIER}"
        'm = ai.onnx.ml.LabelEncoder<keys_int64s = [0, 1], values_strings = ["a", "b"]>(l)',
        {"m": "tensor(string)", "y": "tensor(float)"}),
    "trees": (
        """l, y = ai.onnx.ml.TreeEnsembleClassifier<nodes_treeids = [0, 0, 0],
        nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0], nodes_values = [0.5, 0.0, 0.0],
        nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids = [1, 0, 0],
        nodes_falsenodeids = [2, 0, 0], class_treeids = [0, 0], class_nodeids = [1, 2],
        class_ids = [0, 1], class_weights = [1.0, 1.0], classlabels_int64s = [0, 1]>(x)""",
        {"l": "tensor(int64)", "y": "tensor(float)"}),
}  # fmt: skip
RELEASED = {9: 1, 11: 2, 13: 2, 15: 2, 17: 3, 21: 5}  # by opset


def write(name, version, path):
    """A model without the types of outputs, which exporters leave out of others."""
    nodes, types = MODELS[name]
    outputs = ", ".join(f"float {n}" for n in types)
    text = f"""<ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": {version}]>
    g (float[N,3] x) => ({outputs}) {{ {nodes} }}"""
    model = parser.parse_model(text)
    for value in model.graph.output:
        value.ClearField("type")
    onnx.save(model, path)
    return model


@pytest.mark.parametrize("opset", [9, 11, 13, 17, 21])
@pytest.mark.parametrize("version", [2, 4, 5])
@pytest.mark.parametrize("name", MODELS)
def test_versions_and_types(name, version, opset, tmp_path):
    if name == "trees" and version > 4:
        pytest.skip("withdrawn at that version")
    model = write(name, version, tmp_path / "a.onnx")
    if name == "several results" and opset < 11:
        pytest.skip("no sequences of tensors at that opset")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", opset=opset)
    done = onnx.load(tmp_path / "b.onnx")
    imports = {o.domain: o.version for o in done.opset_import}
    wanted = min(version, RELEASED[opset])
    is_newer = name == "labels" and wanted < 2  # of LabelEncoder
    assert imports["ai.onnx.ml"] == (version if is_newer else wanted)
    assert any("ai.onnx.ml stays at version" in n for n in report.notes) is is_newer
    session = onnxruntime.InferenceSession(str(tmp_path / "b.onnx"))
    assert {o.name: o.type for o in session.get_outputs()} == MODELS[name][1]
    assert all(o.type.WhichOneof("value") for o in done.graph.output)
    feeds = {"x": np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)}
    for a, b in zip(run_model(model, feeds), run_model(done, feeds), strict=True):
        assert str(a) == str(b)
