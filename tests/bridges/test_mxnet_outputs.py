"""The ends of what ``export_model`` writes are those of what MXNet's own exporter writes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import onnx
import onnx.checker
import onnx.defs
import onnx.helper
import onnxruntime
import pytest

from serde.bridges import mxnet as bridge
from testing.mxnet_live import live_mxnet

TYPES = [onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.INT64]
SIZES = {"w": (3, 4), "b": (3,), "p": (108,), "g": (4,)}
STATES = {"h": (1, 2, 3), "c": (1, 2, 3)}


@pytest.fixture
def exporter(monkeypatch):
    """MXNet's exporter, with what onnx had when it was written."""
    to = {onnx.helper.tensor_dtype_to_np_dtype(t): t for t in TYPES}
    back = {t: n for n, t in to.items()}
    names = SimpleNamespace(NP_TYPE_TO_TENSOR_TYPE=to, TENSOR_TYPE_TO_NP_TYPE=back)
    monkeypatch.setattr(onnx, "mapping", names, raising=False)
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: 13)
    monkeypatch.setattr(onnx.checker, "check_graph", lambda graph: None)
    import mxnet.onnx

    return mxnet.onnx.export_model


def layers():
    """Layers of several outputs and of one, all of which read ``data``."""
    sym = live_mxnet().sym
    x = sym.Variable("data")
    fc = sym.FullyConnected(x, sym.Variable("w"), sym.Variable("b"), num_hidden=3, name="fc")
    h, c = sym.Variable("h"), sym.Variable("c")
    return SimpleNamespace(
        sym=sym, x=x, fc=fc, act=sym.relu(fc, name="act"), plus=x + 1,
        split=sym.split(x, num_outputs=2, axis=1, name="sp"),
        rnn=sym.RNN(sym.expand_dims(x, axis=0), sym.Variable("p"), h, c, state_size=3, mode="lstm",
                    num_layers=1, state_outputs=True, name="rnn"),
        topk=sym.topk(x, k=2, ret_typ="both", name="tk"),
        norm=sym.LayerNorm(x, sym.Variable("g"), sym.Variable("g2"), name="ln"),
    )  # fmt: skip


MODELS = {
    "one": lambda m: m.fc,
    "unnamed": lambda m: m.plus,
    "two in order": lambda m: [m.fc, m.act],
    "two in reverse": lambda m: [m.act, m.fc],
    "parts in another order": lambda m: [m.split[1], m.fc, m.split[0]],
    "one part": lambda m: m.split[1],
    "an output twice": lambda m: [m.fc, m.act, m.fc],
    "states": lambda m: m.rnn,
    "states before": lambda m: [m.rnn[2], m.act, m.rnn[0], m.rnn[1]],
    "values and indices": lambda m: [m.topk[1], m.topk[0], m.norm],
}


def parameters(symbol):
    mx = live_mxnet()
    rng = np.random.default_rng(0)
    shapes = {**SIZES, "g2": SIZES["g"]}
    names = [n for n in symbol.list_inputs() if n in shapes]
    return {n: mx.nd.array(rng.normal(size=shapes[n])) for n in names}


def ends(path):
    graph = onnx.load(path).graph
    weights = {i.name for i in graph.initializer}
    return [i.name for i in graph.input if i.name not in weights], [o.name for o in graph.output]


def symbol_of(name):
    heads = MODELS[name](layers())
    return live_mxnet().sym.Group(heads) if isinstance(heads, list) else heads


@pytest.mark.parametrize("name", MODELS)
def test_names_and_order_are_those_of_mxnet(name, exporter, tmp_path):
    symbol = symbol_of(name)
    params = parameters(symbol)
    shapes = {"data": (2, 4), **STATES}
    in_shapes = [shapes[n] for n in symbol.list_inputs() if n in shapes]
    theirs, ours = (str(tmp_path / f"{n}.onnx") for n in ("theirs", "ours"))
    exporter(symbol, params, in_shapes, np.float32, theirs)
    bridge.export_model(symbol, params, in_shapes, np.float32, ours)
    assert ends(ours) == ends(theirs)


@pytest.mark.parametrize("name", MODELS)
def test_each_output_has_the_numbers_of_its_name(name, tmp_path):
    symbol = symbol_of(name)
    params = parameters(symbol)
    rng = np.random.default_rng(1)
    shapes = {"data": (2, 4), **STATES}
    feeds = {n: rng.normal(size=shapes[n]).astype("float32")
             for n in symbol.list_inputs() if n in shapes}  # fmt: skip
    path = str(tmp_path / "m.onnx")
    bridge.export_model(symbol, params, [x.shape for x in feeds.values()], np.float32, path)
    expected = {
        plain(n): y
        for n, y in zip(symbol.list_outputs(), bridge.run(symbol, feeds, params=params),
                        strict=True)
    }  # fmt: skip
    session = onnxruntime.InferenceSession(path)
    actual = dict(zip(ends(path)[1], session.run(None, feeds), strict=True))
    assert actual.keys() == expected.keys()
    for n, y in actual.items():
        np.testing.assert_allclose(y, expected[n], rtol=1e-5, atol=1e-6)


def plain(name):
    for suffix, short in (("_state_output", "1"), ("_statecell_output", "2"), ("_output", "")):
        name = name.replace(suffix, short)
    return name


def test_all_of_many_parts_are_outputs_in_the_order_of_their_numbers(tmp_path):
    """MXNet's exporter loses those whose numbers have two digits."""
    mx = live_mxnet()
    parts = mx.sym.split(mx.sym.Variable("data"), num_outputs=12, axis=1, name="sp")
    path = str(tmp_path / "m.onnx")
    bridge.export_model(parts, {}, [(2, 12)], np.float32, path)
    assert ends(path) == (["data"], [f"sp{i}" for i in range(12)])


def test_an_input_that_is_an_output_is_the_last(tmp_path):
    """MXNet's exporter loses it."""
    mx = live_mxnet()
    x = mx.sym.Variable("data")
    path = str(tmp_path / "m.onnx")
    bridge.export_model(mx.sym.Group([x, mx.sym.relu(x, name="act")]), {}, [(2,)], "float32", path)
    assert ends(path) == (["data"], ["act", "data"])


@pytest.mark.parametrize(
    ("layer", "other", "outputs"),
    [
        ("data", "y", ["data_output"]),  # an input has the name
        ("w", "y", ["w_output"]),  # a parameter
        ("ones", "y", ["ones"]),  # a constant that the model has not
        ("sp1", "sp", ["sp1_output", "sp0", "sp_output1"]),  # two outputs would have it
    ],
)
def test_names_that_something_else_has_stay(layer, other, outputs, tmp_path):
    mx = live_mxnet()
    x = mx.sym.Variable("data") * mx.sym.Variable("w")
    y = mx.sym.broadcast_add(x, mx.sym.ones((1, 4)), name=layer)
    parts = mx.sym.split(y, num_outputs=2, axis=1, name=other)
    symbol = y if len(outputs) == 1 else mx.sym.Group([y, parts[0], parts[1]])
    path = str(tmp_path / "m.onnx")
    bridge.export_model(symbol, {"w": mx.nd.ones((2, 4))}, [(2, 4)], np.float32, path)
    assert ends(path)[1] == outputs


@pytest.mark.parametrize(
    ("options", "outputs"),
    [
        ({"outputs": ["act", "fc"]}, ["act_output", "fc_output"]),
        ({"rename": {"fc_output": "y"}}, ["y", "act"]),
        ({"rename": {"act_output": "y"}, "outputs": ["act"]}, ["y"]),
        ({}, ["fc", "act"]),
    ],
)
def test_what_the_caller_names_comes_first(options, outputs, tmp_path):
    symbol = symbol_of("two in reverse")
    path = str(tmp_path / "m.onnx")
    bridge.export_model(symbol, parameters(symbol), [(2, 4)], np.float32, path, **options)
    assert ends(path)[1] == outputs


def test_the_result_is_verified_in_its_own_order(capsys, tmp_path):
    symbol = symbol_of("states before")
    path = str(tmp_path / "m.onnx")
    names = [n for n in symbol.list_inputs() if n == "data" or n in STATES]
    shapes = [{"data": (2, 4), **STATES}[n] for n in names]
    params = parameters(symbol)
    bridge.export_model(symbol, params, shapes, np.float32, path, True, verify=True)
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] and report["verification"]["done"]
    assert [o["name"] for o in report["outputs"]] == ends(path)[1]
