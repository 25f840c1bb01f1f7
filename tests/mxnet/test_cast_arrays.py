"""Arrays of other types than those of the inputs, cast as ``Module.set_params`` casts them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

import serde
from serde.bridges import mxnet as bridge
from serde.errors import UsageError
from testing.mxnet_live import live_mxnet

RNG = np.random.default_rng(8)
X, IMAGE = RNG.random((2, 4), "float32"), RNG.random((2, 3, 4, 4), "float32")
STEPS, IDS = RNG.random((5, 2, 4), "float32"), np.array([[0, 1, 4]], "float32")


def dense(s, x, **attrs):
    return s.FullyConnected(x, num_hidden=3, name="fc", **attrs)


# A network, its input, and the arrays that are not float32.
NETWORKS: dict[str, tuple[Any, np.ndarray, dict[str, str]]] = {
    "all half": (lambda s, x: dense(s, x), X, {"fc_weight": "float16", "fc_bias": "float16"}),
    "one double": (lambda s, x: dense(s, x), X, {"fc_weight": "float64"}),
    "statistics": (lambda s, x: s.BatchNorm(dense(s, x), name="bn"), X,
                   {"bn_gamma": "float16", "bn_moving_var": "float64"}),
    "before statistics": (lambda s, x: s.BatchNorm(dense(s, x), name="bn"), X,
                          {"fc_weight": "float16", "fc_bias": "float16"}),
    "a row": (lambda s, x: s.LayerNorm(dense(s, x), name="n"), X, {"n_gamma": "float16"}),
    "a slope": (lambda s, x: s.LeakyReLU(dense(s, x), act_type="prelu", name="p"), X,
                {"p_gamma": "float64"}),
    "a convolution": (lambda s, x: s.Convolution(s.Activation(x, act_type="relu"), kernel=(1, 1),
                                                 num_filter=2, name="c"), IMAGE,
                      {"c_weight": "float16"}),
    "a look-up": (lambda s, x: s.Embedding(x, input_dim=5, output_dim=3, name="e"), IDS,
                  {"e_weight": "float16"}),
    "a recurrent layer": (lambda s, x: s.RNN(x, s.var("p"), s.zeros((1, 2, 3)), mode="gru",
                                             state_size=3, num_layers=1), STEPS,
                          {"p": "float64"}),
    "a factor": (lambda s, x: s.broadcast_mul(x, s.var("k", shape=(1, 4))), X, {"k": "float64"}),
    "a matrix": (lambda s, x: s.dot(x, s.var("k", shape=(4, 2))), X, {"k": "float16"}),
}  # fmt: skip


def run_module(symbol, arrays, x) -> np.ndarray:
    """What an executor computes that MXNet binds for float32, and then gives the arrays."""
    mx = live_mxnet()
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=x.shape)
    copies = {n: mx.nd.array(a, dtype=a.dtype) for n, a in arrays.items()}
    states = {n: copies.pop(n) for n in list(copies) if n in executor.aux_dict}
    executor.copy_params_from(copies, states)
    executor.arg_dict["data"][:] = x
    return executor.forward(is_train=False)[0].asnumpy()


def make(name: str) -> tuple[Any, dict[str, np.ndarray], np.ndarray]:
    network, x, types = NETWORKS[name]
    s = live_mxnet().sym
    symbol = network(s, s.var("data"))
    shapes, _, states = symbol.infer_shape(data=x.shape)
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    arrays = {
        n: RNG.random(shape).astype(types.get(n, "float32"))
        for n, shape in zip(names, [*shapes, *states], strict=True) if n != "data"
    }  # fmt: skip
    return symbol, arrays, x


@pytest.mark.parametrize("name", NETWORKS)
def test_cast_as_mxnet_casts(name: str, tmp_path) -> None:
    symbol, arrays, x = make(name)
    expected = run_module(symbol, arrays, x)
    inputs = {"data": (x.shape, "float32")}
    graph = serde.load(symbol, params=arrays, inputs=inputs)
    assert any(n.startswith("arrays are cast as Module.set_params") for n in graph.notes)
    serde.save(graph, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    (got,) = session.run(None, {"data": x})
    assert got.dtype == np.float32 and np.allclose(got, expected, atol=1e-5)
    (reference,) = bridge.run(symbol, {"data": x}, params=arrays, inputs=inputs)
    assert np.array_equal(reference, expected)


@pytest.mark.parametrize("name", ["one double", "statistics", "a convolution"])
def test_arrays_that_contradict_each_other_are_float32(name: str) -> None:
    symbol, arrays, x = make(name)
    graph = serde.load(symbol, params=arrays, inputs={"data": x.shape})
    assert {v.dtype.value for v in (*graph.inputs, *graph.outputs)} == {"float32"}


def test_arrays_of_one_type_tell_that_of_the_input() -> None:
    symbol, arrays, x = make("all half")
    graph = serde.load(symbol, params=arrays, inputs={"data": x.shape})
    assert graph.inputs[0].dtype.value == "float16" and not graph.notes


def test_a_type_that_a_variable_declares_is_refused_as_mxnet_does() -> None:
    s = live_mxnet().sym
    symbol = dense(s, s.var("data"), weight=s.var("fc_weight", dtype="float16"), no_bias=True)
    arrays = {"fc_weight": np.ones((3, 4), "float16")}
    inputs = {"data": ((2, 4), "float32")}
    with pytest.raises(UsageError, match="'fc_weight' is declared as float16.*give fp32="):
        serde.load(symbol, params=arrays, inputs=inputs)
    graph = serde.load(symbol, params=arrays, inputs={"data": (2, 4)}, fp32=True)
    assert graph.inputs[0].dtype.value == "float32"
