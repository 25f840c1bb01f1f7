"""The hash that a file was written with, compared with its weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde.errors import MalformedFile, UsageError
from serde.verification.weights_hash import verify_hash
from testing.onnx_live import model_of


@pytest.fixture
def written(tmp_path):
    body = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
    onnx.save(model_of(body, 13), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", hash_weights=True)
    return tmp_path / "b.onnx"


def test_it_is_that_of_the_report(written):
    again = serde.convert(written, written.with_name("c.onnx"), hash_weights=True)
    assert verify_hash(written) == again.weights_sha256


def test_another_weight_and_no_hash(written):
    with pytest.raises(UsageError, match="holds no hash"):
        verify_hash(written.with_name("a.onnx"))
    model = onnx.load(written)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32([1, 3]), "w"))
    onnx.save(model, written)
    with pytest.raises(MalformedFile, match="not those it was written with"):
        verify_hash(written)
