"""Two graphs as one: what is connected, and what the ends are called."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.compose
import pytest
from click.testing import CliRunner

import serde
from serde.cli.commands import main
from serde.errors import UsageError
from testing.onnx_live import model_of, run_model

FIRST = "g (float[N,4] x) => (float[N,4] y, float[N,4] r) { t = Relu(x) y = Neg(t) r = Abs(t) }"
SECOND = "h (float[M,4] a, float[M,4] b) => (float[M,4] z) { t = Mul(a, a) z = Sub(t, b) }"
FEEDS = {"x": np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)}


@pytest.fixture
def models(tmp_path):
    paths = []
    for name, text in (("first", FIRST), ("second", SECOND)):
        onnx.save(model_of(text), tmp_path / f"{name}.onnx")
        paths.append(str(tmp_path / f"{name}.onnx"))
    return paths


PAIRS = {
    "one output for two inputs": [("y", "a"), ("y", "b")],
    "the other one": [("r", "b"), ("r", "a")],
    "one for each": [("y", "a"), ("r", "b")],
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_connect_as_onnx_connects_them(models, tmp_path, name):
    second = model_of(SECOND.replace("t", "u").replace("floau", "float"))
    expected = onnx.compose.merge_models(onnx.load(models[0]), second, io_map=PAIRS[name])
    serde.save(serde.compose(*models, PAIRS[name]), tmp_path / "c.onnx")
    options = [o for pair in PAIRS[name] for o in ("--connect", "=".join(pair))]
    result = CliRunner().invoke(main, ["join", *models, "-o", str(tmp_path / "d.onnx"), *options])
    assert result.exit_code == 0
    for path in ("c.onnx", "d.onnx"):
        joined = onnx.load(tmp_path / path)
        assert [i.name for i in joined.graph.input] == ["x"]
        names = [o.name for o in joined.graph.output]
        got = dict(zip(names, run_model(joined, FEEDS), strict=True))
        wanted = {o.name: a for o, a in zip(
            expected.graph.output, run_model(expected, FEEDS), strict=True)}  # fmt: skip
        assert got.keys() == wanted.keys()
        for key, array in got.items():
            np.testing.assert_array_equal(array, wanted[key])


@pytest.mark.parametrize(
    ("connections", "message"),
    [
        ([("y", "a"), ("r", "a")], "input 'a' of the second model is connected twice"),
        ({"y": "a", "r": "a"}, "input 'a' of the second model is connected twice"),
        ([("y", "c")], "no input of the second model is called 'c'"),
        ([("q", "a")], "no output of the first model is called 'q'"),
        ("y", "connections is a mapping of outputs to inputs"),
        ([("y", "a", "b")], "connections is a mapping of outputs to inputs"),
    ],
)
def test_what_cannot_be_connected(models, connections, message):
    with pytest.raises(UsageError, match=message):
        serde.compose(*models, connections)


@pytest.mark.parametrize("connections", [None, {"y": "a"}])
def test_nothing_is_joined_to_a_model_without_inputs(models, tmp_path, connections):
    constant = "h () => (float[1,4] z) <float[1,4] c = {1,2,3,4}> { z = Identity(c) }"
    onnx.save(model_of(constant), tmp_path / "h.onnx")
    with pytest.raises(UsageError, match="the second model has no inputs"):
        serde.compose(models[0], str(tmp_path / "h.onnx"), connections)
    joined = serde.compose(str(tmp_path / "h.onnx"), models[1], {"z": "a"})
    assert [v.name for v in joined.inputs] == ["b"]


NAMES = {  # the models, connections, outputs to keep, and the names of inputs and outputs
    "both outputs": (
        "g (float[2] x) => (float[2] y) { y = Neg(x) }",
        "h (float[2] a) => (float[2] y) { y = Abs(a) }", {"y": "a"}, [], ["x"], ["y"]),
    "both outputs, both kept": (
        "g (float[2] x) => (float[2] y) { y = Neg(x) }",
        "h (float[2] a) => (float[2] y) { y = Abs(a) }", {"y": "a"}, ["y"], ["x"], ["y_1", "y"]),
    "both inputs": (
        "g (float[2] x) => (float[2] y) { y = Neg(x) }",
        "h (float[2] x, float[2] a) => (float[2] z) { z = Add(x, a) }", {"y": "a"}, [],
        ["x", "x_1"], ["z"]),
    "an output inside of the first": (
        "g (float[2] x) => (float[2] y) { z = Relu(x) y = Neg(z) }",
        "h (float[2] a) => (float[2] z) { y = Abs(a) z = Exp(y) }", {"y": "a"}, [], ["x"], ["z"]),
    "an input like a connected output": (
        "g (float[2] x) => (float[2] y) { y = Neg(x) }",
        "h (float[2] a, float[2] y) => (float[2] z) { z = Add(y, a) }", {"y": "a"}, [],
        ["x", "y"], ["z"]),
    "a weight": (
        "g (float[2] x) => (float[2] y) <float[2] z = {1, 2}> { y = Add(x, z) }",
        "h (float[2] a) => (float[2] z) { z = Abs(a) }", {"y": "a"}, [], ["x"], ["z"]),
    "an input that is passed on": (
        "g (float[2] x) => (float[2] y) { y = Neg(x) }",
        "h (float[2] a) => (float[2] a, float[2] z) { z = Abs(a) }", {"y": "a"}, [],
        ["x"], ["a", "z"]),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_ends_keep_their_names(tmp_path, name):
    *texts, connections, keep, inputs, outputs = NAMES[name]
    paths = [tmp_path / f"{i}.onnx" for i in range(3)]
    for text, path in zip(texts, paths, strict=False):
        onnx.save(model_of(text), path)
    graph = serde.compose(*paths[:2], connections, keep=keep)
    serde.save(graph, paths[2])
    done = onnx.load(paths[2])
    onnx.checker.check_model(done, full_check=True)
    assert [v.name for v in done.graph.input] == inputs
    assert [v.name for v in done.graph.output] == outputs
