"""Inputs whose arrays lie in the parameter file, told from weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import serde
from serde.errors import UsageError
from testing.mxnet.written import params_bytes
from testing.mxnet_live import live_mxnet, run_symbol

BATCH = 6
RNG = np.random.default_rng(5)


def array(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(dtype)


def dense(s, x, name: str = "fc", **attrs: Any):
    return s.FullyConnected(x, num_hidden=3, name=name, **attrs)


def rnn(s, x):
    return s.RNN(x, s.var("rnn_parameters"), s.var("state"), state_size=4, num_layers=1, mode="gru")


IMAGE, ROW = (BATCH, 3, 8, 8), (BATCH, 5)
# A network; the shapes of all its data in the file; those of them that are inputs, and constants.
NETWORKS: dict[str, tuple[Any, dict[str, tuple[int, ...]], set[str]]] = {
    "classifier": (lambda s: s.SoftmaxOutput(dense(s, s.var("data")), name="softmax"),
                   {"data": ROW, "softmax_label": (BATCH,)}, {"data"}),
    "a convolution": (lambda s: s.Convolution(s.var("x"), kernel=(3, 3), num_filter=2, name="c"),
                      {"x": IMAGE}, {"x"}),
    "scaled first": (lambda s: dense(s, s.Flatten(s.var("img") / 255)), {"img": IMAGE}, {"img"}),
    "a mean": (lambda s: dense(s, s.broadcast_sub(s.var("data"), s.var("mean"))),
               {"data": IMAGE, "mean": (1, 3, 1, 1)}, {"data"}),
    "a mean before": (lambda s: dense(s, s.broadcast_add(s.var("mean"), s.var("data"))),
                      {"data": IMAGE, "mean": (1, 3, 1, 1)}, {"data"}),
    "a scale behind": (lambda s: dense(s, s.broadcast_mul(dense(s, s.var("data"), "a"),
                                                          s.var("scale")), "b"),
                       {"data": ROW, "scale": (1, 3)}, {"data"}),
    "two joined": (lambda s: dense(s, s.Concat(s.var("a"), s.var("b"), dim=1)),
                   {"a": ROW, "b": (BATCH, 2)}, {"a", "b"}),
    "two towers": (lambda s: dense(s, s.var("a"), "f") * dense(s, s.var("b"), "g"),
                   {"a": ROW, "b": (BATCH, 7)}, {"a", "b"}),
    "a recurrent layer": (lambda s: rnn(s, s.var("data")), {"data": (5, 2, 3), "state": (1, 2, 4)},
                          {"data", "state"}),
    "regions": (lambda s: s.ROIPooling(
        s.Convolution(s.var("data"), kernel=(3, 3), num_filter=2, name="c"), s.var("rois"),
        pooled_size=(2, 2), spatial_scale=1), {"data": IMAGE, "rois": (9, 5)}, {"data", "rois"}),
    "a loss": (lambda s: s.LinearRegressionOutput(dense(s, s.var("data")), s.var("target")),
               {"data": ROW, "target": (BATCH, 3)}, {"data"}),
    "no layer": (lambda s: s.exp(s.var("data")), {"data": ROW}, {"data"}),
    "learned by its node": (lambda s: dense(s, s.var("data") + s.var("query", lr_mult=2)),
                            {"data": ROW, "query": ROW}, {"data"}),
    "a product with a weight": (lambda s: s.dot(s.var("x"), s.var("m_weight", shape=(5, 3))),
                                {"x": ROW}, {"x"}),
    "a table": (lambda s: s.take(s.var("t_weight", shape=(9, 3)), s.var("ids")),
                {"ids": (BATCH, 2)}, {"ids"}),
    "a label that is read": (lambda s: s.Embedding(s.var("label"), input_dim=9, output_dim=4),
                             {"label": (BATCH,)}, {"label"}),
    "joined behind": (
        lambda s: dense(s, s.Concat(dense(s, s.var("a"), "f"), s.var("b"), dim=1), "g"),
        {"a": ROW, "b": (BATCH, 2)}, {"a", "b"}),
    "added behind": (lambda s: dense(s, dense(s, s.var("a"), "f") + s.var("b"), "g"),
                     {"a": ROW, "b": (BATCH, 3)}, {"a", "b"}),
    "rows joined behind": (
        lambda s: dense(s, s.Concat(dense(s, s.var("a"), "f"), s.var("b"), dim=0), "g"),
        {"a": ROW, "b": (BATCH, 3)}, {"a"}),
    "called as a weight": (lambda s: dense(s, s.var("x_weight")), {"x_weight": ROW}, {"x_weight"}),
    "one of two called as a bias": (
        lambda s: dense(s, s.var("x"), "a") + dense(s, s.var("my_bias"), "b"),
        {"x": ROW, "my_bias": (BATCH, 2)}, {"x", "my_bias"}),
    "a projected table": (
        lambda s: s.broadcast_add(dense(s, s.var("x"), "a"), s.sum(
            dense(s, s.var("t_weight"), "b"), axis=0, keepdims=True)),
        {"x": ROW, "t_weight": (9, 2)}, {"x"}),
    "an embedding": (lambda s: s.Embedding(s.var("ids"), input_dim=9, output_dim=4, name="e"),
                     {"ids": (BATCH, 7)}, {"ids"}),
}  # fmt: skip


def arrays_of(symbol, data: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """What ``executor.arg_dict`` holds."""
    shapes, _, states = symbol.infer_shape(**data)
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    return {n: array(*s) for n, s in zip(names, [*shapes, *states], strict=True)}


def save(tmp_path, symbol, arrays) -> str:
    symbol.save(str(tmp_path / "m-symbol.json"))
    (tmp_path / "m-0000.params").write_bytes(params_bytes(arrays))
    return str(tmp_path / "m-symbol.json")


@pytest.mark.parametrize("name", NETWORKS)
def test_a_file_saved_whole(name: str, tmp_path) -> None:
    make, data, expected = NETWORKS[name]
    symbol = make(live_mxnet().sym)
    arrays = arrays_of(symbol, data)
    path = save(tmp_path, symbol, arrays)
    shapes = {n: s for n, s in data.items() if n in expected}
    graph = serde.load(path, inputs=shapes)
    assert {v.name for v in graph.inputs} == expected
    report = serde.convert(path, tmp_path / "m.onnx", inputs=shapes, verify=True)
    assert report.ok and report.verification.done, report.verification
    notes = [n for n in graph.notes if n.startswith("taken as input")]
    assert len(notes) == 1 and all(f"{n!r} (" in notes[0] for n in expected)


def test_inputs_are_the_same_without_their_shapes(tmp_path) -> None:
    make, data, _ = NETWORKS["one of two called as a bias"]
    symbol = make(live_mxnet().sym)
    graph = serde.load(save(tmp_path, symbol, arrays_of(symbol, data)))
    assert [(v.name, v.shape) for v in graph.inputs] == [("x", ("N", 5)), ("my_bias", ("N", 2))]
    make, data, _ = NETWORKS["classifier"]
    symbol = make(live_mxnet().sym)
    path = save(tmp_path, symbol, arrays_of(symbol, data))
    for options in ({}, {"cut_inputs": ["data"]}, {"outputs": ["fc"]}):
        graph = serde.load(path, **options)
        assert [(v.name, v.shape) for v in graph.inputs] == [("data", ("N", 5))], options
    value = array(2, 5)
    graph = serde.load(path, set_inputs={"data": value})
    assert graph.inputs == ()


def products(s):
    return s.softmax(s.dot(s.var("x"), s.var("matrix")))


def test_a_model_without_inputs_is_refused(tmp_path) -> None:
    symbol = products(live_mxnet().sym)
    arrays = {"x": array(*ROW), "matrix": array(5, 3)}
    path = save(tmp_path, symbol, arrays)
    message = r".* 'x' \(6, 5\), 'matrix' \(5, 3\) is an .* inputs={'x': \(6, 5\)"
    with pytest.raises(UsageError, match=message):
        serde.load(path)
    graph = serde.load(path, inputs={"x": ("N", 5)})
    assert [v.name for v in graph.inputs] == ["x"]
    graph = serde.load(path, set_inputs={"x": arrays["x"]})
    assert graph.inputs == ()


def test_models_that_read_no_variable_have_no_inputs(tmp_path) -> None:
    s = live_mxnet().sym
    graph = serde.load(s.zeros((2, 3)) + 1)
    assert graph.inputs == () and graph.outputs[0].shape == (2, 3)
    symbol = dense(s, s.ones((2, 5)))
    arrays = {"fc_weight": array(3, 5), "fc_bias": array(3)}
    assert serde.load(save(tmp_path, symbol, arrays)).inputs == ()


def test_arrays_are_constants_where_other_inputs_have_none(tmp_path) -> None:
    s = live_mxnet().sym
    symbol = dense(s, s.broadcast_mul(s.var("data"), s.var("scale")))
    arrays = {"fc_weight": array(3, 5), "fc_bias": array(3), "scale": array(1, 5)}
    graph = serde.load(save(tmp_path, symbol, arrays))
    assert [v.name for v in graph.inputs] == ["data"] and not graph.notes
    graph = serde.load(tmp_path, inputs={"scale": (1, 5)})
    assert [v.name for v in graph.inputs] == ["data", "scale"]


def test_a_live_symbol_with_all_of_an_executor() -> None:
    make, data, _ = NETWORKS["two towers"]
    symbol = make(live_mxnet().sym)
    arrays = arrays_of(symbol, data)
    graph = serde.load(symbol, params=arrays)
    assert [v.name for v in graph.inputs] == ["a", "b"]
    feeds = {n: array(2, *s[1:]) for n, s in data.items()}
    weights = {n: a for n, a in arrays.items() if n not in feeds}
    (expected,) = run_symbol(symbol.tojson(), weights, feeds)
    (got,) = serde.bridges.mxnet.run(symbol, feeds, params=arrays)
    assert np.allclose(got, expected, atol=1e-6)


ONE = (1, 5)
# A network; the shapes of data and of plain parameters in the file; what may be either.
DOUBTFUL: dict[str, tuple[Any, dict[str, tuple[int, ...]], set[str]]] = {
    "one number": (lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("factor")),
                   {"data": ROW, "factor": (1,)}, {"factor"}),
    "a column": (lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("mask")),
                 {"data": ROW, "mask": (BATCH, 1)}, {"mask"}),
    "a row": (lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("scale")),
              {"data": ROW, "scale": (1, 3)}, {"scale"}),
    "as many channels as samples": (lambda s: dense(s, s.broadcast_add(s.var("data"), s.var("b"))),
                                    {"data": (5, 5), "b": (5,)}, {"b"}),
    "a batch of one": (lambda s: dense(s, s.broadcast_add(s.var("data"), s.var("b"))),
                       {"data": ONE, "b": ONE}, {"data", "b"}),
    "a sum": (lambda s: dense(s, s.var("data"), "f") + dense(s, s.var("a") + s.var("b"), "g"),
              {"data": ONE, "a": ONE, "b": ONE}, {"a", "b"}),
    "an output": (lambda s: s.Group([dense(s, s.var("data")), s.var("other")]),
                  {"data": ROW, "other": (BATCH, 2)}, {"other"}),
    "called as a scale": (lambda s: s.broadcast_mul(dense(s, s.var("data")), s.var("film_gamma")),
                          {"data": ROW, "film_gamma": (BATCH, 3)}, {"film_gamma"}),
    "a weight that a layer reads": (
        lambda s: dense(s, s.var("x"), "a") + dense(s, s.var("my_bias"), "b"),
        {"x": ONE, "my_bias": (1, 2)}, {"x", "my_bias"}),
    "towers of a batch of one": (lambda s: dense(s, s.var("a"), "f") * dense(s, s.var("b"), "g"),
                                 {"a": ONE, "b": (1, 2)}, {"a", "b"}),
    "called as a weight, behind": (
        lambda s: s.broadcast_mul(dense(s, s.relu(s.var("x_weight"))), s.var("t")),
        {"x_weight": ROW, "t": (1,)}, {"x_weight", "t"}),
    "made alike": (lambda s: s.broadcast_like(s.var("v"), dense(s, s.var("data"))),
                   {"data": ROW, "v": (1, 3)}, {"v"}),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_may_be_an_input_or_a_parameter_is_asked_for(name: str, tmp_path) -> None:
    make, shapes, doubtful = DOUBTFUL[name]
    symbol = make(live_mxnet().sym)
    path = save(tmp_path, symbol, arrays_of(symbol, shapes))
    with pytest.raises(UsageError) as caught:
        serde.load(path)
    told = str(caught.value).partition("whether ")[2].partition(" is an input")[0]
    assert {n for n in shapes if f"{n!r} (" in told} == doubtful
    assert any(f"{n!r}: (" in str(caught.value) for n in doubtful)
    first = next(iter(shapes))
    for inputs in ({first}, {*shapes}):
        report = serde.convert(
            path, tmp_path / "m.onnx", inputs={n: shapes[n] for n in inputs}, verify=True
        )
        assert {i["name"] for i in report.inputs} == inputs
        assert report.ok and report.verification.done, report.verification
        notes = [n for n in report.notes if n.startswith("taken as constant")]
        assert bool(notes) == (inputs != {*shapes})
        assert all(f"{n!r} (" in notes[0] for n in {*shapes} - inputs)


def test_arrays_of_a_file_without_the_data_are_constants(tmp_path) -> None:
    """A sum of parameters goes through a layer; the array of an input is missing."""
    s = live_mxnet().sym
    make, shapes, _ = DOUBTFUL["a sum"]
    symbol = make(s)
    arrays = arrays_of(symbol, shapes)
    del arrays["data"]
    graph = serde.load(save(tmp_path, symbol, arrays))
    assert [v.name for v in graph.inputs] == ["data"]


def test_the_only_variable_is_an_input(tmp_path) -> None:
    s = live_mxnet().sym
    weight = s.var("w_weight", shape=(5, 5))
    outputs, _ = s.contrib.foreach(
        lambda x, h: (lambda y: (y, [y]))(s.dot(x, weight) + h[0]), s.var("data"), [s.zeros((0, 5))]
    )
    arrays = {"data": array(4, 2, 5), "w_weight": array(5, 5)}
    graph = serde.load(save(tmp_path, outputs, arrays), inputs={"data": (4, 2, 5)})
    assert [v.name for v in graph.inputs] == ["data"]
    assert [v.name for v in serde.load(s.exp(s.var("x")), params={"x": array(2)}).inputs] == ["x"]


def test_feeds_tell_the_inputs() -> None:
    s = live_mxnet().sym
    symbol = s.broadcast_mul(dense(s, s.var("data")), s.var("factor"))
    arrays = arrays_of(symbol, {"data": ROW, "factor": (1,)})
    weights = {n: arrays[n] for n in ("fc_weight", "fc_bias")}
    for names in (["data"], ["data", "factor"]):
        feeds = {n: array(*arrays[n].shape) for n in names}
        (expected,) = run_symbol(symbol.tojson(), {**arrays, **weights, **feeds}, {})
        (got,) = serde.bridges.mxnet.run(symbol, feeds, params=arrays)
        assert np.allclose(got, expected, atol=1e-6)
