"""Operators that quantize what they read, as those on floats."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import serde
from testing.onnx_live import run_model

SIZES = {"forward": 1, "bidirectional": 2}


@pytest.mark.parametrize("by_gate", [False, True])
@pytest.mark.parametrize("direction", SIZES)
def test_lstm(tmp_path, direction, by_gate):
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
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", dequantize=True)
    done = onnx.load(tmp_path / "b.onnx")
    assert [n.op_type for n in done.graph.node] == ["LSTM"]
    feeds = {"x": rng.standard_normal((5, 2, 4)).astype(np.float32)}
    expected = run_model(onnx.load(tmp_path / "a.onnx"), feeds)
    for a, b in zip(run_model(done, feeds), expected, strict=True):
        assert np.abs(a - b).max() < 0.01
