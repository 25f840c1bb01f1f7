"""Two models of other element types on the same inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from serde.errors import UsageError
from serde.verification.compare_models import compare_models
from tests.onnx_live import model_of

TEXT = (
    "g (float[N,8] x, int64[N] i) => (float[N,8] y, float[N,8] z) "
    "{ y = MatMul(x, w) z = Gather(w, i) }"
)


@pytest.fixture
def models(tmp_path):
    """The files of a model: in float32, with ends of float16, with another weight, of int32."""
    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    paths = {n: tmp_path / f"{n}.onnx" for n in ("float32", "float16", "other", "int32", "bool")}
    for name, text in {
        "float32": TEXT, "other": TEXT, "int32": TEXT.replace("int64[N] i", "int32[N] i"),
        "bool": TEXT.replace("int64[N] i", "bool[N] c").replace(
            "z = ", "i = Cast<to = 7>(c) z = "),
    }.items():  # fmt: skip
        model = model_of(text, opset=18, ir_version=8)
        scale = np.float32(1.5 if name == "other" else 1)
        model.graph.initializer.append(from_array(weight * scale, "w"))
        onnx.save(model, paths[name])
    serde.convert(paths["float32"], paths["float16"], fp16=True, fp16_io=True)
    return paths


@pytest.mark.parametrize("first, second, agree, dtype", [
    ("float32", "float16", True, "float16"), ("float16", "float32", True, "float16"),
    ("float32", "int32", True, "float32"), ("float16", "int32", True, "float16"),
    ("other", "float16", False, "float16"), ("float16", "other", False, "float16"),
])  # fmt: skip
def test_each_is_fed_its_own_type(first, second, agree, dtype, models):
    """The tolerance is that of the type of fewer bits."""
    check = compare_models(models[first], models[second])
    assert check.done and [o.passed for o in check.outputs] == [agree, agree]
    assert {o.dtype for o in check.outputs} == {dtype}
    assert check.layers.layers and all(x.outcome.passed for x in check.layers.layers) is agree


def test_given_data_are_made_both_types(models):
    data = {"x": np.full((2, 8), 0.1, np.float32), "i": np.array([1, 7])}
    assert compare_models(models["float32"], models["float16"], data=data).ok


def test_other_kinds_are_refused(models):
    with pytest.raises(UsageError, match="'c' is int64 in the first model and bool in the second"):
        compare_models(models["float32"], models["bool"])
