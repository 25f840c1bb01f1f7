"""Models that run in another process: their inputs go by name, and their time is their own."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import serde
from serde.bridges.array_worker import order_feeds
from serde.errors import SerdeError
from tests.tflite.litert_live import why_not as why_no_litert
from tests.torch.torch_live import why_not as why_no_torch

X, Y = np.array([5, 6], np.float32), np.array([1, 3], np.float32)
LIVE = [
    pytest.param(name, marks=pytest.mark.skipif(bool(why()), reason=why() or "there is one"))
    for name, why in {"m.tflite": why_no_litert, "m.py": why_no_torch}.items()
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model whose result depends on the order of its inputs."""
    graph = onnx.parser.parse_graph("g (float[2] a, float[2] b) => (float[2] y) { y = Sub(a, b) }")
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_feeds_are_put_in_the_order_of_the_model() -> None:
    first, second = order_feeds(["a", "b", "c"], {"b": Y, "a": X})
    assert first is X and second is Y
    with pytest.raises(SerdeError, match="the input 'a' is missing"):
        order_feeds(["a", "b"], {"b": Y})
    with pytest.raises(SerdeError, match="no input 'z'; it has a, b"):
        order_feeds(["a", "b"], {"a": X, "z": Y})


@pytest.mark.parametrize("name", LIVE)
def test_inputs_are_fed_by_name_in_any_order(name: str, source: Path) -> None:
    target = source.with_name(name)
    serde.convert(source, target, verify=True)
    model = serde.prepare(target)
    for feeds in ({"a": X, "b": Y}, {"b": Y, "a": X}):
        np.testing.assert_array_equal(model(feeds)["y"], X - Y)
    compared = serde.compare(source, target, data={"b": Y, "a": X})
    assert compared.ok


@pytest.mark.parametrize("name", LIVE)
def test_models_are_timed_where_they_run(name: str, source: Path) -> None:
    """What a run takes is not what it takes to send arrays there, which is far more here."""
    target = source.with_name(name)
    serde.convert(source, target, verify=False)
    model = serde.prepare(target)
    start = time.perf_counter()
    model(X, Y)
    around = time.perf_counter() - start
    clock, processor = model.bind_inputs({"a": X, "b": Y})(10)
    assert 0 < clock < around
    assert processor > 0
    assert model.pid is not None
