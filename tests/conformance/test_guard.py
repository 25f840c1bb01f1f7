"""The guard of the core: merged node tests, and what their conversions come to."""

from __future__ import annotations

import onnx

from conformance.guard import convert, merge
from testing.onnx_live import model_of

RELU = "g (float[2,3,4] x) => (float[2,3,4] y) { y = Relu(x) }"


def test_tests_are_merged_and_repeated_with_a_longer_last_axis():
    merged = merge([model_of(RELU, 17), model_of(RELU, 17)], 17)
    sizes = [i.type.tensor_type.shape.dim[-1].dim_value for i in merged.graph.input]
    assert [n.op_type for n in merged.graph.node] == ["Relu"] * 4
    assert sorted(sizes) == [4, 4, 9, 9]


def test_outcomes_are_hashes_or_refusals(tmp_path):
    onnx.save(model_of(RELU, 17), tmp_path / "a.onnx")
    first, again = (convert(tmp_path / "a.onnx", tmp_path, "b.onnx", {"opset": 13}) for _ in "ab")
    other = convert(tmp_path / "a.onnx", tmp_path, "b.onnx", {"opset": 17})
    assert first == again != other and len(first) == 16
    onnx.save(model_of("g (float[2] x) => (float[2] y) { y = Acos(x) }", 17), tmp_path / "a.onnx")
    assert convert(tmp_path / "a.onnx", tmp_path, "b.onnx", {"opset": 5}).startswith("UsageError: ")
