"""LiteRT runs files that keep something between runs, and conversions of them are verified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import serde
from serde.bridges.litert import prepare
from serde.errors import SerdeError
from serde.formats.tflite.decode import decode
from testing.tflite.cases import c, case, f, q, r, s, w
from testing.tflite.models import build, write
from tests.tflite.litert_live import why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
LAYER = case("RNN", f(2, 3), w(4, 3), w(4, 4), w(4), s(2, 4), fused_activation_function=4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a layer that keeps a state."""
    (tmp_path / "m.tflite").write_bytes(write(build(LAYER)))
    return tmp_path / "m.tflite"


def test_variables_are_the_last_inputs_and_outputs(path: Path) -> None:
    run, x = prepare(path), LAYER.operands[0].array
    y, state = run({"x0": x, "x4": np.ones((2, 4), np.float32)})
    np.testing.assert_array_equal(y, state)
    again, _ = run({"x0": x})
    rest, _ = run({"x0": x, "x4": np.zeros((2, 4), np.float32)})
    np.testing.assert_array_equal(again, rest)
    assert np.abs(y - rest).max() > 1e-3


def test_a_conversion_of_a_file_with_variables_is_verified(path: Path) -> None:
    done = serde.convert(path, path.with_suffix(".onnx"), verify=True)
    assert done.verification is not None and done.verification.done and done.verification.ok
    assert [c.name for c in done.verification.outputs] == ["y0", "x4_next"]


def test_inner_values_are_returned_by_name_as_the_numbers_they_stand_for(tmp_path: Path) -> None:
    model = build(case("TANH", q(2, 3), to=r("int8", 1 / 128, 0)))
    graph = model["subgraphs"][0]
    again = {**graph["tensors"][-1], "name": "end"}
    graph["operators"].append({**graph["operators"][0], "inputs": [1], "outputs": [2]})
    graph["tensors"].append(again)
    graph["outputs"] = [2]
    (tmp_path / "m.tflite").write_bytes(write(model))
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    inner, end = prepare(tmp_path / "m.tflite", outputs=["y0", "end"])({"x0": x})
    np.testing.assert_allclose(inner, np.tanh(0.05 * (x - 3.0)), atol=1 / 128)
    assert (inner.dtype, end.dtype) == (np.float32, np.int8)
    with pytest.raises(SerdeError, match="computes no 'else'"):
        prepare(tmp_path / "m.tflite", outputs=["else"])


@pytest.mark.parametrize("target", ["m.onnx", "again.tflite", "m-symbol.json", "m.relay", "m.py"])
def test_a_file_becomes_every_other_format(target: str, tmp_path: Path) -> None:
    layer = case("CONV_2D", f(1, 7, 6, 3), w(4, 3, 3, 3), w(4), padding=0, stride_w=1, stride_h=1)
    model = build(layer)
    model["subgraphs"][0]["tensors"][-1] |= {"shape": (1, 7, 6, 4)}  # which XNNPACK asks for
    (tmp_path / "m.tflite").write_bytes(write(model))
    done = serde.convert(tmp_path / "m.tflite", tmp_path / target, verify=True)
    assert done.verification is None or done.verification.ok


def test_a_layer_of_channels_last_comes_back_without_transposes(tmp_path: Path) -> None:
    layer = case("MEAN", f(1, 7, 6, 3), c([1, 2]))
    (tmp_path / "m.tflite").write_bytes(write(build(layer)))
    serde.convert(tmp_path / "m.tflite", tmp_path / "again.tflite", verify=False)
    graph = decode(tmp_path / "again.tflite")
    assert [n.op for n in graph.nodes] == ["MEAN"]
