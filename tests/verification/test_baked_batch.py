"""Sources of another batch than the result's are run batch by batch."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.passes.batch.places import Place, Size
from serde.verification.baked_batch import BakedBatch, NotComparable, find_baked_batch
from testing.onnx_live import ir_of
from tests.passes.batches import model_with

BODY = "(float[2,4] x) => (float[2,4] y, float[2,1] z) { y = Relu(x) z = Exp(c) }"


def test_batches_of_a_graph():
    graph = ir_of(f"g {BODY.replace('{ y', '<float[2,1] c = {1, 1}> { y')}")
    batch = find_baked_batch(graph, "N")
    assert batch is not None and batch.size == 2 and batch.inputs == {"x": 0}
    assert batch.places == {"x": Place(0), "y": Place(0), "z": Place(0)}
    assert find_baked_batch(ir_of("g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }"), 3) is None


@pytest.mark.parametrize("total", [1, 2, 3, 5])
def test_the_last_batch_is_filled(total):
    places = {"y": Place(0), "h": Place(1, Size(3)), "k": Place(0, Size(1), Size(2))}
    batch = BakedBatch(2, {"x": 0}, places, ["y", "h", "k", "c"])
    x = np.arange(total * 3.0).reshape(total, 3)

    def run(feeds):
        a = feeds["x"]
        assert a.shape == (2, 3)
        return [a, a.T.reshape(1, 6), np.repeat(a, 2, 0), feeds["w"]]

    y, h, k, c = batch.run(run, {"x": x, "w": np.ones(4)}, None)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(h, x.T.reshape(1, -1))
    np.testing.assert_array_equal(k, np.repeat(x, 2, 0))
    assert c.shape == (4,)


def test_lists():
    batch = BakedBatch(1, {"x": 0}, {"s": Place(0)}, ["s", "maps"])
    x = np.arange(6.0).reshape(3, 2)
    s, maps = batch.run(lambda f: [[f["x"], -f["x"]], [{0: f["x"][0, 0]}]], {"x": x}, None)
    np.testing.assert_array_equal(s[1], -x)
    assert maps == [{0: 0.0}, {0: 2.0}, {0: 4.0}]


def test_inputs_of_other_numbers_of_samples():
    with pytest.raises(NotComparable, match=r"have \[2, 3\] samples"):
        BakedBatch(1, {"x": 0, "k": 0}, {}, []).run(list, {"x": np.ones(2), "k": np.ones(3)}, None)


@pytest.mark.parametrize("batch", ["N", 3, {"*": 5}])
def test_a_result_is_compared_with_the_source(batch, tmp_path):
    onnx.save(model_with(BODY, c=np.ones((2, 1), np.float32)), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", rebatch=batch, verify="layers")
    assert report.verification.done and report.ok


def test_a_source_with_functions_is_run_too(tmp_path):
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "local": 1]> '
        "g (float[1,4] x) => (float[1,4] y) { y = local.Twice(x) }"
        '<domain: "local", opset_import: ["": 17]> Twice (a) => (b) { b = Add(a, a) }'
    )
    onnx.save(model, tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", rebatch="N", verify=True)
    assert report.verification.done and report.ok


def test_the_batch_that_it_has_changes_nothing(tmp_path):
    """A model that mixes the samples of its batch is compared as it is."""
    body = "(float[3] x) => (float[2] y, float[1] z) { y, z = Split<axis=0>(x, sizes) }"
    onnx.save(model_with(body, sizes=np.array([2, 1])), tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", rebatch=3, verify=True)
    assert report.verification.done and report.ok


def test_a_wrong_result_is_found(tmp_path, monkeypatch):
    """The verification does not rely on what the pass believes of the numbers."""
    body = "(float[1,4] x) => (float[1,4] y) { y = Softmax<axis=1>(x) }"
    onnx.save(model_with(body), tmp_path / "a.onnx")
    from serde.passes import change_batch

    rebatch = change_batch.rebatch

    def spoil(graph, batch):
        rebatch(graph, batch)
        return ir_of("g (float[N,4] x) => (float[N,4] y) { y = Softmax<axis=0>(x) }")

    monkeypatch.setattr("serde.pipeline.rebatch", spoil)
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", rebatch="N", verify=True)
    assert not report.ok
