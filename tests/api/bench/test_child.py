"""What the process of a model does: inputs for it, times and memory."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest

import serde
from serde.api.bench.child import load_model, match_inputs, read_peak
from serde.ir.graph import DType, Value
from testing.onnx_live import model_of

X = np.arange(3, dtype=np.float32)
INPUTS = (Value("a", DType.FLOAT16, (3,)), Value("b", DType.INT64, (3,)))


def test_inputs_by_name_or_place_are_cast():
    by_name = match_inputs(INPUTS, {"b": X, "a": X, "more": X})
    assert {n: x.dtype for n, x in by_name.items()} == {"a": np.float16, "b": np.int64}
    by_place = match_inputs(INPUTS, {"x": X, "y": X[::-1]})
    assert by_place["b"].tolist() == [2, 1, 0]
    with pytest.raises(serde.UsageError, match="3 arrays are more"):
        match_inputs(INPUTS, {"x": X, "y": X, "z": X})


def test_a_model_is_loaded_and_timed(tmp_path):
    onnx.save(model_of("g (float[3] x) => (float[3] y) { y = Neg(x) }", 13), tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", x=X)
    order = {
        "model": tmp_path / "m.onnx",
        "params": None,
        "threads": 1,
        "feeds": tmp_path / "in.npz",
    }
    run, about, pid = load_model(order)
    assert min(run(5)) >= 0 and pid is None
    assert about["runtime"] == "onnx" and about["load_seconds"] > 0


def test_the_peak_is_of_this_process():
    before = read_peak(None)
    block = np.ones(20_000_000)
    assert read_peak(os.getpid()) >= before + block.nbytes * 0.5 or before > 2 * block.nbytes
