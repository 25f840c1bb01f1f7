"""Operators that quantize what they read, as those on floats."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import serde
from serde.bridges.torch import TorchWorker
from testing.onnx_live import run_model
from tests.torch.torch_live import why_not

SIZES = {"forward": 1, "bidirectional": 2}


FORMS = [(d, g) for d in SIZES for g in (False, True)]


def make_model(direction: str, by_gate: bool) -> onnx.ModelProto:
    """An LSTM with scales of each direction, or of each gate of it."""
    rng, count = np.random.default_rng(0), SIZES[direction]
    # Of 7 bits: where a processor lacks VNNI, sums of two larger products saturate.
    w, r = (rng.integers(-64, 65, (count, n, 12), np.int8) for n in (4, 3))
    scales = [rng.uniform(0.003, 0.006, (count, 12) if by_gate else count) for _ in "wr"]
    zeros = [rng.integers(-5, 5, s.shape, np.int8) if not by_gate else np.zeros(s.shape, np.int8)
             for s in scales]  # fmt: skip
    arrays = {
        "w": w, "r": r, "b": rng.standard_normal((count, 24)).astype(np.float32),
        "ws": scales[0].astype(np.float32), "wz": zeros[0],
        "rs": scales[1].astype(np.float32), "rz": zeros[1],
    }  # fmt: skip
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], ["y", "h"],
        domain="com.microsoft", hidden_size=3, direction=direction,
    )  # fmt: skip
    infos = [helper.make_tensor_value_info(n, 1, s)
             for n, s in (("x", [5, 2, 4]), ("y", [5, count, 2, 3]), ("h", [count, 2, 3]))]  # fmt: skip
    constants = [numpy_helper.from_array(a, n) for n, a in arrays.items()]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def draw_sequence() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((5, 2, 4)).astype(np.float32)


def farthest(results, expected) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(results, expected, strict=True))


@pytest.mark.parametrize(("direction", "by_gate"), FORMS)
def test_lstm(tmp_path, direction, by_gate):
    model, feeds = make_model(direction, by_gate), {"x": draw_sequence()}
    expected, off = run_model(model, feeds), {}
    for name, options in (("floats", {"dequantize": True}), ("tract", {"profile": "tract"})):
        serde.convert(model, tmp_path / f"{name}.onnx", **options)
        done = onnx.load(tmp_path / f"{name}.onnx")
        assert {n.op_type for n in done.graph.node if n.domain} == set()
        assert [n.op_type for n in done.graph.node if n.op_type == "LSTM"] == ["LSTM"]
        off[name] = farthest(run_model(done, feeds), expected)
    assert off["tract"] < off["floats"] < 0.01


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
def test_lstm_in_pytorch(tmp_path):
    model, x = make_model("bidirectional", False), draw_sequence()
    notes = serde.convert(model, tmp_path / "m.py").notes
    assert any("rounds its states to 8 bits" in note for note in notes)
    got = TorchWorker().run(str(tmp_path / "m.py"), [x])
    assert farthest(got, run_model(model, {"x": x})) < 0.005


def test_lstm_is_carried_along_into_onnx_files(tmp_path):
    serde.convert(make_model("forward", False), tmp_path / "m.onnx")
    (node,) = onnx.load(tmp_path / "m.onnx").graph.node
    assert node.op_type == "DynamicQuantizeLSTM"
