"""MXNet in a process of its own: where it aborts, the command tells so and goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from serde.bridges import mxnet as bridge
from serde.bridges.array_worker import get_worker
from serde.bridges.mxnet_process import MXNetWorker, SymbolProcess
from serde.bridges.mxnet_run import Model, PreparedSymbol
from serde.errors import SerdeError
from testing.mxnet_live import live_mxnet

DATA = np.random.default_rng(3).standard_normal((4, 3, 5)).astype("float32")
LAST = {  # an operator that ends MXNet 1.9.1 where a length is far beyond the sequences
    "nodes": [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "lengths", "inputs": []},
        {"op": "SequenceLast", "name": "last", "attrs": {"use_sequence_length": "True"},
         "inputs": [[0, 0, 0], [1, 0, 0]]},
    ],
    "arg_nodes": [0, 1], "heads": [[2, 0, 0]],
}  # fmt: skip
FEEDS = {"data": DATA, "lengths": np.float32([1, 4, 2])}
FATAL = {**FEEDS, "lengths": np.float32([1e9, 4, 2])}


@pytest.fixture(autouse=True)
def mx():
    return live_mxnet()


@pytest.fixture
def last(tmp_path):
    """The file of the model, and those of its inputs, the ones that are fatal too."""
    path = tmp_path / "last-symbol.json"
    path.write_text(json.dumps(LAST))
    np.savez(tmp_path / "in.npz", **FEEDS)
    np.savez(tmp_path / "fatal.npz", **FATAL)
    return path


def command(folder, *words):
    """The exit code, and what is printed, by a command in a process that has no MXNet yet."""
    done = subprocess.run(
        [sys.executable, "-m", "serde", *words], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_command_outlives_mxnet(last):
    code, printed = command(last.parent, "run", last.name, "--data", "fatal.npz")
    assert code == 1
    assert printed == "serde: MXNet cannot run the model: it ended its process with SIGABRT\n"
    convert = ["convert", last.name, "-o", "last.onnx", "--input", "lengths=3"]
    code, printed = command(last.parent, *convert, "--input", "data=4,3,5", "--data", "fatal.npz")
    assert code == 0 and (last.parent / "last.onnx").exists()
    assert "not compared: the source failed to run" in printed and "SIGABRT" in printed
    code, printed = command(last.parent, "run", last.name, "--data", "in.npz", "-o", "out.npz")
    assert code == 0
    with np.load(last.parent / "out.npz") as arrays:
        np.testing.assert_array_equal(arrays["last_output"], DATA[[0, 3, 1], [0, 1, 2]])


def test_another_process_takes_the_place_of_one_that_ended():
    model = Model(json.dumps(LAST))
    first = SymbolProcess(get_worker(MXNetWorker, "onednn"), model)
    again = SymbolProcess(get_worker(MXNetWorker, "onednn"), model)
    assert first.pid == again.pid  # as long as a model needs it
    with pytest.raises(SerdeError, match="ended its process with SIGABRT"):
        first(FATAL)
    with pytest.raises(SerdeError, match="ended its process with SIGABRT"):
        again(FEEDS)
    other = SymbolProcess(get_worker(MXNetWorker, "onednn"), model)
    np.testing.assert_array_equal(other(FEEDS)[0], DATA[[0, 3, 1], [0, 1, 2]])


def test_a_process_computes_what_mxnet_does_here(mx):
    s = mx.sym
    x = s.FullyConnected(s.var("data"), num_hidden=6, name="a")
    parts = s.split(s.Activation(x, act_type="tanh"), num_outputs=2, name="p")
    rng = np.random.default_rng(5)
    arrays = {
        "a_weight": rng.random((6, 5), "float32"),
        "a_bias": rng.random(6, "float32").astype("float16"),  # in other bits than the inputs
    }
    feeds = {"data": rng.random((2, 5), "float32")}
    symbol = s.Group([parts[0] * 2, parts[1], x])
    for ends in ({}, {"outputs": ["a"]}, {"heads": [1]}, {"heads": [2, 0]}):
        model = Model(symbol.tojson(), arrays, {"data", *arrays}, **ends)
        here, there = (
            PreparedSymbol(mx, model),
            SymbolProcess(get_worker(MXNetWorker, "onednn"), model),
        )
        for expected, got in zip(here(feeds), there(feeds), strict=True):
            np.testing.assert_array_equal(got, expected)
        for value in ("a_output", "p_output1", "none"):
            shapes = {"data": (2, 5)}
            assert there.infer_shape(value, shapes) == here.infer_shape(value, shapes)
        assert there.infer_shape("a_output", {"data": (2, 5)}) == (2, 6)
        assert there.time_runs(feeds, 2)[0] > 0


def test_errors_are_those_of_mxnet_here(mx):
    model = Model(json.dumps(LAST), needed={"data", "lengths"})
    here, there = PreparedSymbol(mx, model), SymbolProcess(get_worker(MXNetWorker, "onednn"), model)
    for feeds in ({"data": DATA}, {**FEEDS, "lengths": np.float32([1, 2])}):
        messages = []
        for run in (here, there):
            with pytest.raises(SerdeError) as caught:
                run(feeds)
            messages.append(str(caught.value))
        assert messages[0] == messages[1] and messages[0].startswith("MXNet cannot run")


def test_mxnet_that_was_imported_runs_models(mx, last):
    """With operators that the user has registered in it."""

    @mx.operator.register("twice_as_much")
    class Double(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return type("Op", (mx.operator.CustomOp,), {"forward": self.forward})()

        @staticmethod
        def forward(op, is_train, req, in_data, out_data, aux):
            op.assign(out_data[0], req[0], in_data[0] * 2)

    symbol = mx.sym.Custom(mx.sym.var("data"), op_type="twice_as_much", name="twice")
    (got,) = bridge.run(symbol, {"data": DATA})
    np.testing.assert_array_equal(got, DATA * 2)
