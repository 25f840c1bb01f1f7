"""A source of integers and its floats: proved by putting the source's roundings back."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import serde
from serde.rewrite.rules import RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder
from serde.verification import verify
from serde.verification.dequantized import DequantizedRun, put_roundings_back
from testing.onnx_live import PLAIN, run_at, sums_saturate
from tests.passes.test_dequantize import METHODS, NETWORKS, make_network, quantize_network

SHORT = [(n, m) for n in ("rows", "attention", "words") for m in METHODS]


@pytest.fixture(params=[(n, m) for n in NETWORKS for m in METHODS], ids="-".join)
def quantized(request, tmp_path):
    name, method = request.param
    if method.startswith("dynamic") and sums_saturate():
        pytest.skip("the source's own sums saturate on this processor")
    source, target = tmp_path / "source.onnx", tmp_path / "quantized.onnx"
    model, feeds = make_network(name)
    onnx.save(model, source)
    quantize_network(source, target, method, feeds)
    return target, feeds


def test_right_floats_are_proved(quantized, tmp_path) -> None:
    path, _ = quantized
    report = serde.convert(path, tmp_path / "floats.onnx", dequantize=True, verify=True)
    assert report.verification.done and report.ok, report.verification


def test_other_weights_are_found(quantized, tmp_path) -> None:
    path, _ = quantized
    target = tmp_path / "floats.onnx"
    serde.convert(path, target, dequantize=True)
    model = onnx.load(target)
    weight = max(model.graph.initializer, key=lambda t: np.prod(t.dims), default=None)
    if weight is None or not weight.dims:
        pytest.skip("it has no weights")
    array = numpy_helper.to_array(weight)
    changed = array * np.linspace(0.75, 1.25, array.size, dtype="f").reshape(array.shape)
    weight.CopyFrom(numpy_helper.from_array(changed.astype(array.dtype), weight.name))
    onnx.save(model, target)
    verification = verify(path, target, dequantize=True)
    assert verification.done and not verification.ok


@pytest.mark.parametrize("quantized", SHORT, ids="-".join, indirect=True)
def test_roundings_that_are_put_back_give_the_integers(quantized, tmp_path) -> None:
    """In deeper networks a tie that is rounded the other way changes what follows."""
    path, feeds = quantized
    source, floats = serde.load(path), serde.load(path, dequantize=True)
    graph, missing = put_roundings_back(source, floats)
    assert not missing
    serde.save(graph, tmp_path / "rounded.onnx", opset=21)
    got = run_at(PLAIN, tmp_path / "rounded.onnx", feeds[0])
    for a, b in zip(got, run_at(PLAIN, path, feeds[0]), strict=True):
        off = np.abs(a - b)
        assert np.mean(off > 1e-4 * np.abs(b).max()) < 0.05  # but for ties


def test_floats_that_are_wrong_are_not_compared(tmp_path, monkeypatch) -> None:
    """Nothing passes where the floats, with the roundings, are not the source."""
    from serde.verification import source_runs

    model, feeds = make_network(next(iter(NETWORKS)))
    onnx.save(model, tmp_path / "source.onnx")
    quantize_network(tmp_path / "source.onnx", tmp_path / "q.onnx", "QDQ", feeds)
    wrong = RuleTable("wrong", fallback=keep)
    wrong("MatMul")(lambda g, a, b: g.Neg(g.MatMul(a, b)))
    monkeypatch.setattr(
        source_runs, "put_roundings_back",
        lambda source, floats: (wrong.rewrite(floats, OnnxBuilder("wrong")), ["some value"]),
    )  # fmt: skip
    report = serde.convert(tmp_path / "q.onnx", tmp_path / "f.onnx", dequantize=True, verify=True)
    assert not report.verification.done
    assert "without those of 'some value'" in report.verification.statement


def test_nan_that_the_source_has_not_is_compared_with_its_numbers():
    numbers, floats = np.float32([1, 2, np.nan]), np.float32([1.25, np.nan, np.nan])
    run = DequantizedRun(lambda f: [numbers], lambda f: [floats], lambda f: [numbers], [])
    np.testing.assert_array_equal(run({})[0], np.float32([1.25, 2, np.nan]))
