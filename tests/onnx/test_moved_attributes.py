"""Attributes of older opsets where a newer one has operands: read as these, with a note."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde
from serde.errors import SerdeError
from serde.formats.onnx.moved_attributes import find_operands
from serde.formats.onnx.repair import repair
from testing.onnx_live import run_model

REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
CASES = [  # the operator, the last opset that has the attributes, these, and how many outputs
    ("Split", 12, {"axis": 1, "split": [1, 3, 2]}, 3),
    ("Squeeze", 12, {"axes": [2]}, 1),
    ("Unsqueeze", 12, {"axes": [0, -1]}, 1),
    ("Clip", 10, {"min": 0.25, "max": 0.5}, 1),
    ("Clip", 10, {"max": 0.5}, 1),
    ("Pad", 10, {"pads": [0, 1, 0, 1, 0, 0], "value": 2.5}, 1),
    ("Slice", 9, {"starts": [1], "ends": [5], "axes": [1]}, 1),
    ("TopK", 9, {"k": 2, "axis": 1}, 2),
    ("Reshape", 4, {"shape": [4, -1]}, 1),
    ("Dropout", 11, {"ratio": 0.25}, 1),
    *((f"Reduce{kind}", 17 if kind != "Sum" else 12, {"axes": [-1, 1]}, 1) for kind in REDUCTIONS),
]
X = np.random.default_rng(0).uniform(0.1, 1, (2, 6, 1)).astype(np.float32)


def node_model(op, opset, attrs, outputs=1, operands=(), held=(), dtype=TensorProto.FLOAT):
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, ["x", *operands], names, **attrs)
    kind = TensorProto.INT64
    results = [
        helper.make_tensor_value_info(n, kind if op == "TopK" and n == "y1" else dtype, None)
        for n in names
    ]
    x = helper.make_tensor_value_info("x", dtype, X.shape)
    graph = helper.make_graph([node], "g", [x], results, list(held))
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10 if opset > 19 else 8)


def convert(model, folder):
    """What is written of a model, and the notes of reading it."""
    onnx.save(model, folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx")
    return onnx.load(folder / "b.onnx"), serde.load(folder / "a.onnx").notes


@pytest.mark.parametrize("later", [1, None])
@pytest.mark.parametrize("op, last, attrs, outputs", CASES)
def test_attributes_become_operands(op, last, attrs, outputs, later, tmp_path):
    newest = last + later if later else 21
    written, notes = convert(node_model(op, newest, attrs, outputs), tmp_path)
    moved = sorted(attrs.keys() & find_operands(op, newest).keys())
    assert [note.split("'")[3] for note in notes] == moved != []
    if last < 7:  # which ONNX Runtime runs no longer
        expected = [X.reshape(attrs["shape"])]
    else:
        expected = run_model(node_model(op, last, attrs, outputs), {"x": X})
    for a, b in zip(run_model(written, {"x": X}), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_bounds_have_the_type_of_what_they_bound(tmp_path):
    model = node_model("Clip", 13, {"min": 0.25}, dtype=TensorProto.DOUBLE)
    written, _ = convert(model, tmp_path)
    (got,) = run_model(written, {"x": X.astype(np.float64)})
    np.testing.assert_array_equal(got, np.maximum(X.astype(np.float64), 0.25))


def test_an_attribute_beside_the_operand_is_refused(tmp_path):
    axes = numpy_helper.from_array(np.array([1]), "axes")
    model = node_model("ReduceSum", 13, {"axes": [0]}, operands=["axes"], held=[axes])
    with pytest.raises(SerdeError, match=r"ReduceSum has no axes=\(0,\) at opset 13"):
        convert(model, tmp_path)


def test_attributes_in_branches_and_functions(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 13, "f" : 1]>
    g (float[2,6,1] x, bool c) => (float[2,6] y) {
        y = If (c) <
            then_branch = t () => (float[2,6] a) { a = Squeeze <axes = [2]> (x) },
            else_branch = e () => (float[2,6] b) { b = f.drop (x) }>
    }
    <domain: "f", opset_import: ["" : 13]>
    drop (v) => (w) { n = Neg (v) \n w = Squeeze <axes = [2]> (n) }"""
    written, notes = convert(onnx.parser.parse_model(text), tmp_path)
    assert len(notes) == 2 and all("'axes'" in note for note in notes)
    for c in (True, False):
        (got,) = run_model(written, {"x": X, "c": np.array(c)})
        np.testing.assert_array_equal(got, X[..., 0] if c else -X[..., 0])


def test_repair_writes_the_operand(tmp_path):
    op, last, attrs, outputs = CASES[0]
    onnx.save(node_model(op, 13, attrs, outputs), tmp_path / "a.onnx")
    (change,) = repair(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert "the attribute 'split'" in change
    mended = onnx.load(tmp_path / "b.onnx")
    assert mended.opset_import[0].version == 13
    expected = run_model(node_model(op, last, attrs, outputs), {"x": X})
    for a, b in zip(run_model(mended, {"x": X}), expected, strict=True):
        np.testing.assert_array_equal(a, b)
