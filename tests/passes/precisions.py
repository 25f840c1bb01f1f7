"""A network in float32, and models in fewer bits beside it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from testing.onnx_live import error, model_of, run_model

F = np.float32


NETWORK = """g (float[2,3,8,8] x, int64[2] i) => (float[2,80] y, float[2,64] z, int64[2] j) {
    c = Conv<pads = [2, 2, 2, 2]>(x, k)
    b = BatchNormalization(c, s, t, m, u)
    r = Relu(b)
    g = GlobalAveragePool(r)
    f = Flatten(g)
    h = MatMul(f, w)
    q = ReduceSumSquare<keepdims = 1>(h)
    n = Div(h, q)
    y = Softmax(n)
    z = Gather(e, i)
    j = Identity(i)
}"""


SHAPES = {"k": (64, 3, 5, 5), "w": (64, 80), "s": (64,), "t": (64,), "m": (64,), "u": (64,),
          "e": (80, 64)}  # fmt: skip


@pytest.fixture
def network(tmp_path):
    """A model in a file, with inputs and outputs."""
    draws = np.random.default_rng(0)
    model = model_of(NETWORK, opset=17, ir_version=8)
    for name, shape in SHAPES.items():
        array = draws.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(from_array(array, name))
    onnx.save(model, tmp_path / "a.onnx")
    feeds = {"x": draws.standard_normal((2, 3, 8, 8)).astype(np.float32), "i": np.array([1, 4])}
    return tmp_path / "a.onnx", feeds, run_model(model, feeds)


def convert(network, **options):
    """What is made of the model, verified, and how far its outputs are off."""
    path, feeds, expected = network
    report = serde.convert(path, path.with_name("b.onnx"), verify=True, **options)
    assert report.ok
    model = onnx.load(path.with_name("b.onnx"))
    for entry in model.graph.input:
        is_half = entry.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
        feeds = {
            **feeds,
            entry.name: feeds[entry.name].astype(
                np.float16 if is_half else feeds[entry.name].dtype
            ),
        }
    got = run_model(model, feeds)
    return model, max(error(a.astype(b.dtype), b) for a, b in zip(got, expected, strict=True)), got


def halve(text: str, folder, **held):
    """A model in text form with constants, converted to float16."""
    options = {"fp16": True, **held.pop("options", {})}
    model = model_of(text, opset=17, ir_version=8)
    model.graph.initializer.extend(from_array(np.asarray(a), n) for n, a in held.items())
    onnx.save(model, folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx", **options)
    return onnx.load(folder / "b.onnx")
