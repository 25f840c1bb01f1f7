"""Operators that ONNX Runtime has in the default domain, in all target formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import serde
from serde.errors import Unconvertible
from serde.formats.onnx.contrib import OPSETS, SYNONYMS, reads_default
from serde.formats.onnx.reader import decode
from serde.formats.onnx.to_ir import to_ir
from serde.spec import schema
from testing import directions

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 4, 3, 5)).astype(np.float32)
CHANNELS, GROUPS, COLUMNS = (RANDOM.standard_normal(n).astype(np.float32) for n in (4, 2, 5))
INDICES = np.array([[0, 2, 1]], np.int64)
ROW, UPDATES = np.float32([[1, 2, 3, 4]]), np.float32([[7, 8, 9]])
Case = tuple[str, int, Sequence[np.ndarray], Mapping[str, Any], int]
CASES: list[Case] = [  # operator, opset, operands, attributes, outputs
    *(("GroupNormalization", v, [X, GROUPS, GROUPS[::-1]], {"num_groups": 2}, 1)
      for v in (18, 19, 20)),
    ("GroupNormalization", 18, [X[:, :, 0], GROUPS, GROUPS], {"num_groups": 2, "epsilon": 0.1}, 1),
    ("GroupNormalization", 18, [X, GROUPS[:1], GROUPS[1:]], {"num_groups": 1}, 1),
    ("GroupNormalization", 18, [X, CHANNELS, CHANNELS], {"num_groups": 4}, 1),
    *(("LayerNormalization", v, [X, COLUMNS, COLUMNS[::-1]], {}, 1) for v in (7, 11, 13, 16)),
    ("LayerNormalization", 13, [X, X[0, 0]], {"axis": 2, "epsilon": 0.1}, 3),
    ("LayerNormalization", 9, [X[0, 0], COLUMNS], {"axis": 1}, 2),
    *(("SimplifiedLayerNormalization", v, [X, COLUMNS], {}, 1) for v in (7, 11, 13, 17, 21)),
    ("SimplifiedLayerNormalization", 13, [X, X[0, 0]], {"axis": 2, "epsilon": 0.1}, 2),
    ("SimplifiedLayerNormalization", 15, [X[0, 0], COLUMNS], {"axis": -1, "stash_type": 1}, 1),
    ("Affine", 7, [X], {"alpha": 2.5, "beta": -1.0}, 1),
    ("Affine", 9, [X[0]], {"alpha": 2.5, "beta": 0.0}, 1),
    ("Scale", 7, [X], {"scale": 0.5}, 1),
    ("ImageScaler", 7, [X], {"scale": 0.5, "bias": [1.0, 2.0, 3.0, 4.0]}, 1),
    ("ScaledTanh", 8, [X], {"alpha": 1.7, "beta": 0.6}, 1),
    ("ParametricSoftplus", 8, [X], {"alpha": 1.7, "beta": 0.6}, 1),
    ("Crop", 7, [X], {"border": [1, 0, 2, 1]}, 1),
    ("Crop", 7, [X], {"border": [0, 1, 0, 0]}, 1),
    ("Crop", 7, [X], {"border": [1, 1, 0, 0], "scale": [2, 3]}, 1),
    *(("MeanVarianceNormalization", 8, [x], {"across_channels": a, "normalize_variance": v}, 1)
      for x in (X, X[0], X[0, 0], X[None]) for a in (0, 1) for v in (0, 1)),
    ("MeanVarianceNormalization", 1, [X], {}, 1),
    ("ThresholdedRelu", 1, [X], {}, 1),
    ("ThresholdedRelu", 9, [X[0]], {"alpha": 0.3}, 1),
    ("DynamicSlice", 9, [X, np.array([1, 0]), np.array([3, 2]), np.array([3, 1])], {}, 1),
    ("DynamicSlice", 9, [X[0, 0], np.array([1, 0]), np.array([3, 2])], {}, 1),
    ("ScatterElements", 16, [ROW, INDICES, UPDATES], {"axis": 1, "reduction": "update"}, 1),
    ("ScatterElements", 18, [ROW, INDICES, UPDATES], {"axis": 1, "reduction": "update"}, 1),
    ("ScatterND", 16, [ROW[0], INDICES.T, UPDATES[0]], {"reduction": "update"}, 1),
]  # fmt: skip
WRITTEN = (9, 11, 13, 17, 21)


def model_of(case: Case) -> onnx.ModelProto:
    """The operator alone; operands of integers are constants."""
    op, opset, operands, attrs, outputs = case
    names = [f"x{i}" for i, _ in enumerate(operands)]
    held = [
        onnx.numpy_helper.from_array(a, n)
        for n, a in zip(names, operands, strict=True)
        if a.dtype.kind == "i"
    ]
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, operands, strict=True)
        if a.dtype.kind != "i"
    ]
    infos = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    node = helper.make_node(op, names, [v.name for v in infos], name="layer", **attrs)
    graph = helper.make_graph([node], "g", inputs, infos, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def feeds_of(case: Case) -> dict[str, np.ndarray]:
    return {f"x{i}": a for i, a in enumerate(case[2]) if a.dtype.kind != "i"}


def run(model: onnx.ModelProto, case: Case) -> list[np.ndarray]:
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings)
    return session.run(None, feeds_of(case))


def name_of(case: Case) -> str:
    return f"{case[0]}-{case[1]}-{len(case[2][0].shape)}d-{case[4]}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_onnx(case, tmp_path):
    expected = run(model_of(case), case)
    onnx.save(model_of(case), tmp_path / "source.onnx")
    options = [{"opset": v} for v in WRITTEN] + [{"profile": "relax"}]
    for kwargs in options:
        if kwargs.get("profile") and case[0].startswith("Scatter"):
            continue
        report = serde.convert(tmp_path / "source.onnx", tmp_path / "m.onnx", **kwargs)
        assert any(case[0] in note and "ONNX Runtime" in note for note in report.notes)
        model = onnx.load(tmp_path / "m.onnx")
        # onnx cannot infer through the body that it gives this operator from opset 13 on
        is_inferred = model.opset_import[0].version < 13 or case[0] != "MeanVarianceNormalization"
        onnx.checker.check_model(model, full_check=is_inferred)
        for a, b in zip(run(model, case), expected, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("form", ["mxnet", "relay"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_other_formats(case, form, tmp_path):
    onnx.save(model_of(case), tmp_path / "source.onnx")
    path = tmp_path / directions.FILES[form]
    serde.convert(tmp_path / "source.onnx", path)
    outputs = directions.RUN[form](path, feeds_of(case), 100)
    for a, b in zip(outputs, run(model_of(case), case), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5, rtol=2e-5)


def test_every_operator_is_tried():
    assert {case[0] for case in CASES} == {*OPSETS, *SYNONYMS}
    assert {*reads_default.rules} == {*OPSETS}


@pytest.mark.parametrize("op", OPSETS)
def test_opsets_are_those_whose_standard_lacks_the_operator(op):
    assert all(schema.find(op, v) is None for v in OPSETS[op])


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (("GroupNormalization", 17, [X, GROUPS, GROUPS], {"num_groups": 2}, 1), "opset 21 is"),
        (
            ("GroupNormalization", 18, [X, CHANNELS, CHANNELS], {"num_groups": 2}, 1),
            "4 numbers for 2 groups",
        ),
        (("Affine", 11, [X], {"alpha": 2.0, "beta": 1.0}, 1), "no operator 'Affine'"),
        (("ThresholdedRelu", 10, [X], {"beta": 0.3}, 1), "beta"),
        (("MeanVarianceNormalization", 9, [X], {"across_channels": 1}, 1), "across_channels"),
        (("ImageScaler", 7, [X], {"bias": [1.0, 2.0]}, 1), "2 numbers for 4 channels"),
        (("ImageScaler", 7, [X[0]], {"bias": [1.0, 2.0]}, 1), "3 axes"),
        (("ImageScaler", 7, [X], {}, 1), "0 numbers for 4 channels"),
        (("Crop", 7, [X[0]], {"border": [1, 1, 1, 1]}, 1), "Crop of 3 axes"),
        (("ScatterElements", 18, [ROW, INDICES, UPDATES], {"reduction": "most"}, 1), "most"),
    ],
    ids=lambda v: v[0] if isinstance(v, tuple) else "",
)
def test_refused(case, reason):
    with pytest.raises(Unconvertible, match=reason):
        to_ir(decode(model_of(case)))


def test_in_a_branch_and_a_function(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 13, "own": 1]>
    g (float[2,3] x, bool c) => (float[2,3] y) <float[3] w = {1, 2, 3}> {
        h = own.f(x, w) y = If(c) <
        then_branch = t () => (float[2,3] a) { a = LayerNormalization(h, w) },
        else_branch = e () => (float[2,3] b) { b = Neg(h) }> }
    <domain: "own", opset_import: ["": 13]>
    f (x, w) => (z) { z = SimplifiedLayerNormalization(x, w) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "source.onnx")
    report = serde.convert(tmp_path / "source.onnx", tmp_path / "m.onnx", opset=13)
    assert sum("read as ONNX Runtime runs it" in note for note in report.notes) == 2
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    x, w = X[0, :2, 0, :3], np.float32([1, 2, 3])
    h = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w
    centred = h - h.mean(-1, keepdims=True)
    layer = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w
    for c, expected in ((True, layer), (False, -h)):
        (y,) = session.run(None, {"x": x, "c": np.array(c)})
        np.testing.assert_allclose(y, expected, atol=1e-5, rtol=1e-5)
