"""NaN and infinities on their way: what runtimes make otherwise of them is no fault."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.verification.nan_paths import INFINITY, NAN, find_disputed
from testing.mxnet_live import live_mxnet
from testing.onnx_live import ir_of, model_of


def build(name):
    """A model of MXNet that computes NaN of half of the normal numbers."""
    mx = live_mxnet()
    sym = mx.sym
    logs = sym.log(sym.var("x"), name="logs")
    relu = sym.Activation(logs, act_type="relu", name="relu")

    def recurrent(data, mode):
        states = [sym.var("s")] + [sym.var("c")] * (mode == "lstm")
        steps = sym.expand_dims(data, axis=0)
        return sym.RNN(steps, sym.var("p"), *states, mode=mode, state_size=4, num_layers=1)

    return {
        "relu": lambda: relu,
        "product": lambda: sym.FullyConnected(relu, sym.var("w"), no_bias=True, num_hidden=3),
        "lstm": lambda: recurrent(relu, "lstm"),
        "gru": lambda: recurrent(relu, "gru"),
        "lstm of infinities": lambda: recurrent(logs, "lstm"),
        "largest": lambda: sym.max(logs, axis=1),
        "place": lambda: sym.argmax(logs, axis=1),
        "order": lambda: sym.sort(logs, axis=1),
        "sign": lambda: sym.sign(logs),
        "softmax": lambda: sym.softmax(logs),
    }[name]()


@pytest.mark.parametrize(
    "name",
    ["relu", "product", "lstm", "gru", "lstm of infinities", "largest", "place", "order", "sign",
     "softmax"],
)  # fmt: skip
def test_a_right_model_passes(name, tmp_path):
    mx, symbol = live_mxnet(), build(name)
    shapes, _, _ = symbol.infer_shape(x=(3, 5))
    rng = np.random.default_rng(0)
    arrays = {f"arg:{n}": mx.nd.array(rng.standard_normal(s))
              for n, s in zip(symbol.list_arguments(), shapes, strict=True) if n != "x"}  # fmt: skip
    symbol.save(str(tmp_path / "m-symbol.json"))
    mx.nd.save(str(tmp_path / "m-0000.params"), arrays or {"arg:none": mx.nd.zeros(1)})
    check = serde.convert(
        tmp_path / "m-symbol.json", tmp_path / "m.onnx", inputs={"x": (3, 5)}, verify=True,
        ignore_extra=True,
    ).verification  # fmt: skip
    assert check.done and check.ok
    assert any("NaN reaches" in line for line in check.not_compared)
    assert "positive" in check.sets


def test_where_all_numbers_are_nan_nothing_was_compared(tmp_path):
    """``--verify-strict`` ends with 4: a model that makes NaN of all inputs proves nothing."""
    mx = live_mxnet()
    below = mx.sym.negative(mx.sym.abs(mx.sym.var("x"))) - 1
    mx.sym.Activation(mx.sym.log(below), act_type="relu").save(str(tmp_path / "m-symbol.json"))
    check = serde.convert(
        tmp_path / "m-symbol.json", tmp_path / "m.onnx", inputs={"x": (3, 5)}, verify=True
    ).verification
    assert check.ok and not check.done
    assert "no output has a number: " in check.statement and "NaN reaches" in check.statement
    assert "data= in.npz gives" in check.statement


X = "g (float[4,8] x) => (float[4] y) <int64[1] a = {1}, float c = {1000}> "
WRONG = {  # source, result: a number is wrong, beside NaN or after it
    "a number beside NaN": ("{ l = Log(x)\n y = ReduceMin<axes=[1], keepdims=0>(l) }",
                            "{ l = Log(x)\n y = ReduceMax<axes=[1], keepdims=0>(l) }"),
    "what follows": ("{ l = Log(x)\n i = IsNaN(l)\n f = Cast<to=1>(i)\n"
                     "  y = ReduceSum<keepdims=0>(f, a) }",
                     "{ l = Log(x)\n i = IsNaN(l)\n f = Cast<to=1>(i)\n"
                     "  y = ReduceMean<axes=[1], keepdims=0>(f) }"),
    "a NaN of the result": ("{ l = Abs(x)\n y = ReduceMax<axes=[1], keepdims=0>(l) }",
                            "{ l = Log(x)\n y = ReduceMax<axes=[1], keepdims=0>(l) }"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_model_fails(name, tmp_path):
    for file, body in zip(("a.onnx", "b.onnx"), WRONG[name], strict=True):
        onnx.save(model_of(X + body, 17, 8), tmp_path / file)
    check = serde.verify(tmp_path / "a.onnx", tmp_path / "b.onnx")
    assert check.done and not check.ok


def test_operators_that_are_fed_them_are_found():
    graph = ir_of("g (float[4] x) => (y) { l = Log(x)\n r = Relu(l)\n y = Softmax(r) }")
    feeds = {"x": np.float32([1, 2, 0, 3])}
    values = {"l": np.float32([0, np.nan, -np.inf, 1]), "r": np.float32([0, np.nan, 0, 1])}
    found = find_disputed(graph, graph.outputs[0], feeds, lambda names: [values[n] for n in names])
    assert {what: [n.op for n in nodes] for what, nodes in found.items()} == {
        NAN: ["Relu", "Softmax"]
    }
    values["r"] = np.float32([0, 1, np.inf, 1])
    found = find_disputed(graph, graph.outputs[0], feeds, lambda names: [values[n] for n in names])
    assert [n.op for n in found[INFINITY]] == ["Softmax"]
