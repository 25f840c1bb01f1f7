"""Weights in fewer bits and models of float16, in each consumer."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import serde
from serde.errors import Unconvertible
from testing.consumers.runtimes import HERE, TITLES, is_here, run
from testing.onnx_live import LEVELS, PLAIN, error, model_of, run_at

NETWORK = """g (float[1,3,8,8] x) => (float[1,80] y, float[1,2,16,16] z) {
    c = Conv<pads = [1, 1, 1, 1]>(x, k)
    r = Relu(c)
    z = ConvTranspose<strides = [2, 2]>(r, t)
    g = GlobalAveragePool(r)
    f = Flatten(g)
    y = MatMul(f, w)
}"""
SHAPES = {"k": (160, 3, 3, 3), "t": (160, 2, 2, 2), "w": (160, 80)}
BOUNDS = {"fp16": 1e-3, "bf16": 5e-3, "int8": 2e-2}


@pytest.fixture(params=TITLES)
def consumer(request):
    """The name of a consumer that can be asked."""
    if not is_here(request.param):
        pytest.skip(f"no live {request.param}")
    return request.param


@pytest.fixture
def network(tmp_path):
    """The file of a model, its inputs, and what ONNX Runtime computes for them."""
    draws = np.random.default_rng(0)
    model = model_of(NETWORK, opset=17, ir_version=8)
    for name, shape in SHAPES.items():
        weight = draws.standard_normal(shape).astype(np.float32) / 4
        model.graph.initializer.append(from_array(weight, name))
    onnx.save(model, tmp_path / "a.onnx")
    feeds = {"x": draws.standard_normal((1, 3, 8, 8)).astype(np.float32)}
    return tmp_path / "a.onnx", feeds, run_at(PLAIN, model, feeds)


@pytest.mark.parametrize("kind", BOUNDS)
def test_weights_in_fewer_bits(kind, network, consumer, tmp_path):
    path, feeds, expected = network
    serde.convert(path, tmp_path / "b.onnx", profile=consumer, weights=kind)
    if consumer == HERE:  # each for itself: optimized, it rounds the data of int8 weights too
        results = [run_at(level, tmp_path / "b.onnx", feeds) for level in LEVELS]
    else:
        results = [run(consumer, str(tmp_path / "b.onnx"), feeds)]
    for got in results:
        for a, b in zip(got, expected, strict=True):
            assert 0 < error(a, b) < BOUNDS[kind]


def test_models_of_float16_in_float32(network, consumer, tmp_path):
    path, feeds, expected = network
    serde.convert(path, tmp_path / "half.onnx", fp16=True, fp16_io=True)
    serde.convert(tmp_path / "half.onnx", tmp_path / "b.onnx", profile=consumer, fp32=True)
    got = run(consumer, str(tmp_path / "b.onnx"), feeds)
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == np.float32 and 0 < error(a, b) < 1e-3


KEPT = {  # the consumers whose files have weights in so many bits: docs/how-to/reduced-precision.md
    "fp16": {"onnxruntime", "openvino", "tract", "mnn"},
    "bf16": {"onnxruntime", "openvino", "mnn"},
    "int8": {"onnxruntime", "openvino", "tract"},
}


@pytest.mark.parametrize("name", TITLES)
@pytest.mark.parametrize("kind", KEPT)
def test_files_are_smaller_where_the_consumer_takes_such_weights(kind, name, network, tmp_path):
    serde.convert(network[0], tmp_path / "b.onnx", profile=name, weights=kind)
    ratio = (tmp_path / "b.onnx").stat().st_size / network[0].stat().st_size
    assert ratio < 0.6 if name in KEPT[kind] else 0.9 < ratio < 1.1


@pytest.mark.parametrize("name", ["mnn", "ncnn"])
def test_refusals_of_float16_tell_what_helps(name, network, tmp_path):
    with pytest.raises(Unconvertible, match="Leave out fp16=, or give fp32= for a model of it"):
        serde.convert(network[0], tmp_path / "b.onnx", profile=name, fp16=True)
