"""Inputs that serde draws: what a source rejects is drawn otherwise, and named."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

import serde
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of

# Models that reject what is drawn first, and how they are run instead.
OTHERWISE = {
    "counts that are not 0": (
        "g (int64[4] x, int64[4] z) => (int64[4] y) { y = Mod(x, z) }", "all integers 1"),
    "an index by way of a sum": (
        "g (float[3,4] x, int64[2] i) => (float[2,4] y) <int64 o = {1}> {"
        "  j = Add(i, o)\n y = Gather(x, j) }", "all integers 1"),
    "sizes that are inputs": (
        "g (float[2,6] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }", "all integers 0"),
    "names of one size": (
        'g (float[A,B] x, float[C,D] z) => (float[A,D] y) { y = Einsum<equation="ij,jk->ik">(x, z) }',
        "all sizes without a number 8"),
    "sides of 1": (
        "g (float[N,C,H,W] x) => (float[N,C] y) <int64[2] a = {2, 3}> { y = Squeeze(x, a) }",
        "all sizes without a number 1"),
    "sides of an image": (
        "g (float[N,1,H,W] x) => (float[N,1] y) <int64[2] a = {2, 3}> {"
        "  p = AveragePool<kernel_shape=[224, 224]>(x)\n y = Squeeze(p, a) }",
        "all sizes but the first without a number 224"),
}  # fmt: skip
# Models that take indices, which are drawn so that they are there.
INDEXED = {
    "GatherElements": "g (float[3,4] x, int64[2,2] i) => (float[2,2] y) { y = GatherElements(x, i) }",
    "GatherND": "g (float[3,4] x, int64[5,2] i) => (float[5] y) { y = GatherND(x, i) }",
    "ScatterND": "g (float[3,9] x, int64[2,1] i, float[2,9] u) => (float[3,9] y) "
                 "{ y = ScatterND(x, i, u) }",
    "ScatterElements": "g (float[3,9] x, int64[1,2] i, float[1,2] u) => (float[3,9] y) "
                       "{ y = ScatterElements(x, i, u) }",
    "a table of named size": "g (float[N,4] x, int64[9] i) => (float[9,4] y) { y = Gather(x, i) }",
}  # fmt: skip
NEVER = ("g (float[N,L] x) => (float[a,b] y) <int64[2] s = {3, 5}> "
         "{ z = Reshape(x, s)\n y = MatMul(z, x) }")  # fmt: skip


def write(folder, body, name="a.onnx"):
    onnx.save(model_of(body, 18, 8), folder / name)
    return str(folder / name)


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_a_source_rejects_is_drawn_otherwise(name, tmp_path):
    body, change = OTHERWISE[name]
    check = serde.convert(write(tmp_path, body), tmp_path / "b.onnx", verify=True).verification
    assert check.done and check.ok
    (line,) = check.not_compared
    assert "which the model does not take" in line and change in line


@pytest.mark.parametrize("name", INDEXED)
def test_indices_are_there(name, tmp_path):
    source = write(tmp_path, INDEXED[name])
    check = serde.convert(source, tmp_path / "b.onnx", verify=True).verification
    assert check.done and check.ok and not check.not_compared


def test_what_is_never_taken_is_named_with_the_options_that_set_it(tmp_path):
    source = write(tmp_path, NEVER)
    check = serde.convert(source, tmp_path / "b.onnx", verify=True).verification
    assert not check.done and check.ok
    assert check.statement.startswith(
        "not compared: the source failed to run on the inputs that serde drew: ONNX Runtime cannot"
    )
    assert "serde chose the sizes x=5,8, which inputs={'x': ('DIMS',)} sets" in check.statement


def test_given_inputs_that_a_source_rejects(tmp_path):
    source = write(tmp_path, OTHERWISE["sizes that are inputs"][0])
    data = {"x": np.zeros((2, 6), np.float32), "s": np.int64([5, 5])}
    check = serde.convert(source, tmp_path / "b.onnx", data=data).verification
    assert not check.done and "the source failed to run on the inputs given" in check.statement
    assert "serde chose" not in check.statement


def test_inputs_that_mxnet_rejects_are_no_internal_error(tmp_path):
    live_mxnet()
    nodes = [{"op": "null", "name": n, "inputs": []} for n in ("x", "w")]
    nodes.append({"op": "FullyConnected", "name": "y", "inputs": [[0, 0, 0], [1, 0, 0]],
                  "attrs": {"num_hidden": "3", "no_bias": "True"}})  # fmt: skip
    symbol = {"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}
    (tmp_path / "m-symbol.json").write_text(json.dumps(symbol))
    check = serde.convert(
        tmp_path / "m-symbol.json", tmp_path / "b.onnx", params={"w": np.ones((3, 4), np.float32)},
        data={"x": np.zeros((2, 7), np.float32)},
    ).verification  # fmt: skip
    assert not check.done and "Shape inconsistent" in check.statement


def test_sizes_that_the_model_contradicts_are_not_drawn(tmp_path):
    """MXNet reads beyond its data where a reshape does not divide them, and may crash."""
    mx = live_mxnet()
    mx.sym.reshape(mx.sym.Pooling(mx.sym.var("x"), kernel=(1, 1)), shape=(0, -1, 7)).save(
        str(tmp_path / "m-symbol.json")
    )
    check = serde.convert(tmp_path / "m-symbol.json", tmp_path / "b.onnx", verify=True).verification
    assert check.done and check.ok
    assert any("all sizes but the first without a number 224" in t for t in check.not_compared)


@pytest.mark.parametrize(("op", "gates"), {"RNN": 1, "GRU": 3, "LSTM": 4}.items())
def test_features_are_those_of_recurrent_weights(op, gates, tmp_path):
    body = f"{op}<hidden_size = 4>(x, w, r, , , h) }}"  # the batch of the state has another name
    inputs = "float[T,N,F] x, float[1,M,4] h"
    model = model_of(f"g ({inputs}) => (float[T,D,N,4] y) {{ y = {body}", 17, 8)
    for name, size in (("w", 3), ("r", 4)):
        array = np.full((1, 4 * gates, size), 0.1, np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, tmp_path / "m.onnx")
    report = serde.convert(tmp_path / "m.onnx", tmp_path / "n.onnx", verify=True)
    assert report.ok and report.verification.done, report.verification
