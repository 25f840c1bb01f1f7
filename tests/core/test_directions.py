"""Models taken from every format to every other; benchmarks/directions.py takes many more."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import serde
from tests import light_models, networks
from tests.directions import DIRECTIONS, TOLERANCE, directions, run_onnx
from tests.relay.running import graph_of, recorded

CORPUS = Path(__file__).parents[1] / "relay" / "corpus.zip"


def assert_all(found):
    wrong = {d: e for d, e in found.items() if isinstance(e, str) or e >= TOLERANCE}
    assert not wrong
    assert set(found) == set(DIRECTIONS)


@pytest.mark.parametrize("name", ["gru", "bert_batch_dot_where"])
def test_networks_of_mxnet(name, tmp_path):
    network = networks.build(name)
    given = networks.feeds(network, 1)
    wanted = networks.expected(network, given)
    symbol, _ = networks.export(network, tmp_path)
    ir = serde.load(symbol, inputs=given)
    assert_all(dict(directions(ir, "mxnet", given, wanted, tmp_path)))


def test_a_light_model(tmp_path):
    path = light_models.model_path("light_squeezenet")
    given = light_models.feeds(onnx.load(path))
    wanted = run_onnx(path, given, 0)
    assert_all(dict(directions(serde.load(path), "onnx", given, wanted, tmp_path)))


@pytest.mark.parametrize("name", ["cf-while-const", "fe-onnx-lstm"])
def test_modules_of_tvm(name, tmp_path):
    case = recorded(CORPUS, name)
    ir = graph_of(case, name, tmp_path)
    assert_all(dict(directions(ir, "relay", case.feeds, case.outputs, tmp_path)))


def test_what_cannot_be_written_is_told_and_the_rest_runs(tmp_path):
    """MXNet has no integers of 16 bits."""
    case = recorded(CORPUS, "qnn-onnx-qop")
    ir = graph_of(case, "m", tmp_path)
    found = dict(directions(ir, "relay", case.feeds, case.outputs, tmp_path))
    assert found["relay → mxnet"].startswith("refused: Cast: int16")
    assert found["mxnet → onnx"] == "no such model"
    assert found["relay → relay"] < TOLERANCE
