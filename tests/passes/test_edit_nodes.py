"""Edits of single layers: the result computes what the source computes once it is edited by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.errors import SerdeError
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of, run_model

CHAIN = (
    "g (float[N,3,8,8] x, float[4,3,3,3] w) => (float[N,4,8,8] y) <float[4] b = {1,2,3,4}, float two "
    "= {2}> { [conv] c = Conv<pads=[1,1,1,1]>(x, w, b) [act] a = Relu(c) y = Mul(a, two) }"
)
EDITS = {
    "conv": {"attributes": {"strides": [2, 2]}},
    "act": {"operator": "LeakyRelu", "attributes": {"alpha": 0.3}},
    "b": {"value": [4, 3, 2, 1]}, "two": {"value": 0.5},
}  # fmt: skip
TOML = """
conv.attributes.strides = [2, 2]
act = { operator = "LeakyRelu", attributes = { alpha = 0.3 } }
b.value = "b.npy"
two.value = 0.5
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model_of(CHAIN), "m.onnx")
    np.save("b.npy", np.float32([4, 3, 2, 1]))
    Path("edits.toml").write_text(TOML)
    Path("edits.json").write_text(json.dumps(EDITS))


def edited_by_hand():
    """The model with the same edits, made with onnx alone."""
    model = onnx.load("m.onnx")
    conv, act, _ = model.graph.node
    conv.attribute.append(onnx.helper.make_attribute("strides", [2, 2]))
    act.op_type = "LeakyRelu"
    act.attribute.append(onnx.helper.make_attribute("alpha", 0.3))
    for weight, value in zip(model.graph.initializer, ([4, 3, 2, 1], 0.5), strict=True):
        weight.CopyFrom(onnx.numpy_helper.from_array(np.float32(value), weight.name))
    for dim in model.graph.output[0].type.tensor_type.shape.dim[2:]:
        dim.dim_value = 4
    return model


@pytest.mark.parametrize("edits", ["edits.toml", "edits.json", EDITS], ids=["toml", "json", "dict"])
def test_attributes_operators_and_constants_are_replaced(edits):
    report = serde.convert("m.onnx", "r.onnx", edits=edits, verify=True)
    assert report.ok and not report.notes
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 3, 8, 8)), "w": rng.normal(size=(4, 3, 3, 3))}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    (expected,) = run_model(edited_by_hand(), feeds)
    (got,) = run_model(onnx.load("r.onnx"), feeds)
    assert got.shape == (2, 4, 4, 4)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


FOREIGN = (
    "g (float[N,3,8,8] x, bool c) => (int64[4] y, float[N,4,8,8] z) <float[N,4,8,8] a, float[N,4,8,8] b> "
    "{ z = my.d.Turn(x)  c1 = Conv<pads=[1,1,1,1]>(x, w)  [twist] a = my.d.Twist(c1) "
    "b = If(c) <then_branch = t () => (float[N,4,8,8] d) { d = my.d.Turn(a) },"
    " else_branch = e () => (float[N,4,8,8] f) { f = Identity(a) }>  y = Shape(b) }"
)


@pytest.mark.parametrize(
    "edits, sizes",
    [
        ({"c1": {"attributes": {"strides": [2, 2]}}}, None),
        ({"w": {"value": np.ones((5, 3, 3, 3), np.float32)}}, None),
        ({"w": {"value": 3.0}}, 8),  # no shape changes
    ],
)
def test_what_a_file_says_of_other_domains_is_dropped_behind_an_edit(edits, sizes):
    model = model_of(FOREIGN)
    model.opset_import.add(domain="my.d", version=1)
    weight = np.ones((4, 3, 3, 3), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    declare = onnx.helper.make_tensor_value_info
    for graph in (model.graph, model.graph.node[3].attribute[0].g):
        graph.value_info.append(declare("d", 1, ["N", 4, 8, 8]))
    onnx.save(model, "f.onnx")
    graph = serde.load("f.onnx", edits=edits)
    shapes = {v.name: v.shape for v in graph.all_values()}
    for name in ("a", "b", "d"):
        assert shapes[name][3] == sizes and len(shapes[name]) == 4, name
    assert shapes["z"] == ("N", 4, 8, 8)  # before the edit


BAD = {
    "no layer is called 'actt'; did you mean act?": {"actt": {"operator": "Tanh"}},
    "no constant is called 'twoo'; did you mean two?": {"twoo": {"value": 1}},
    "'act': there is no 'operatr'; did you mean operator?": {"act": {"operatr": "Tanh"}},
    "'act' is {}: give one of attributes, without, operator, domain, value": {"act": {}},
    "'conv' (Conv) has no attribute 'group'; it has pads": {"conv": {"without": ["group"]}},
    "constant 'two' is of type float32; 'x' is not": {"two": {"value": "x"}},
    "'two' is a constant, which has no operator": {"two": {"value": 1, "operator": "Tanh"}},
    "has no operator 'Tanhh'": {"act": {"operator": "Tanhh"}},
    "absent.toml: there is no such file": "absent.toml",
    "edits are a mapping by name, or the path of a file, and no list": [],
    "m.onnx: the suffix tells no format of tables": "m.onnx",
}


@pytest.mark.parametrize("reason", BAD)
def test_what_is_no_edit_is_refused_with_what_may_be_meant(reason):
    with pytest.raises(SerdeError) as caught:
        serde.convert("m.onnx", "r.onnx", edits=BAD[reason])
    assert reason in str(caught.value)
    assert not Path("r.onnx").exists()


@pytest.mark.parametrize("edits", [{}, {"act": {"operator": "Relu"}}, {"two": {"value": 2}}])
def test_edits_that_change_nothing_say_so(edits):
    report = serde.convert("m.onnx", "r.onnx", edits=edits)
    assert report.notes == ["edits= had no effect: the model has nothing that it would change"]


def test_layers_of_mxnet_are_edited_by_their_names():
    mx = live_mxnet()
    data = mx.sym.Variable("data")
    layer = mx.sym.FullyConnected(data, num_hidden=3, name="fc")
    layer = mx.sym.Activation(layer, act_type="relu", name="act")
    rows = mx.sym.reshape(layer, shape=(-1, 1, 3))
    pool = mx.sym.Pooling(rows, kernel=(3,), pool_type="max", name="pool")
    Path("n-symbol.json").write_text(pool.tojson())
    weight = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    arrays = {"arg:fc_weight": mx.nd.array(weight), "arg:fc_bias": mx.nd.zeros(3)}
    mx.nd.save("n-0000.params", arrays)
    edits = {"act": {"attributes": {"act_type": "tanh"}}, "fc_bias": {"value": 0.5},
             "pool": {"attributes": {"pool_type": "avg"}}}  # fmt: skip
    report = serde.convert("n", "n.onnx", edits=edits, verify=True)
    assert report.verification.done and report.ok  # live MXNet ran what was edited
    x = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    (got,) = run_model(onnx.load("n.onnx"), {"data": x})
    expected = np.tanh(x @ weight.T + 0.5).mean(1).reshape(2, 1, 1)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
