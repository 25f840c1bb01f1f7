"""Which files may be models, by their names."""

from __future__ import annotations

import pytest

from serde.api.model_names import is_ambiguous, is_candidate, select_candidates


@pytest.mark.parametrize(
    "name, is_sure",
    [("a.onnx", True), ("A.ONNX", True), ("a-symbol.json", True), ("a.tar.gz", True),
     ("a.tflite", True), ("a.pt2", True), ("a.json", False), ("a.zip", False)],
)  # fmt: skip
def test_models_and_archives(name, is_sure):
    assert is_candidate(name) and is_ambiguous(name) == (not is_sure)


@pytest.mark.parametrize("name", ["a.txt", "a.pb", "onnx", "a.py", "a.params"])
def test_others(name):
    assert not is_candidate(name) and select_candidates([name, "b.onnx"]) == ["b.onnx"]
