"""The processes that hold models: their orders, and how they end."""

from __future__ import annotations

import os
import signal

import numpy as np
import onnx
import pytest

import serde
from serde.api.bench.process import ModelProcess
from testing.onnx_live import model_of


@pytest.fixture
def files(tmp_path):
    onnx.save(model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", 13), tmp_path / "m.onnx")
    np.savez(tmp_path / "in.npz", x=np.zeros(2, np.float32))
    return str(tmp_path / "m.onnx"), None, str(tmp_path / "in.npz"), 1


def test_it_runs_and_tells_its_memory(files):
    with ModelProcess(*files) as process:
        assert process.runtime == "onnx" and process.least_seconds > 0
        clock, processor = process.run(10)
        assert 0 < clock < 1 and 0 <= processor < 1
        assert 10e6 < process.measure_memory() < 2e9
    assert process._child.returncode == -signal.SIGKILL


def test_a_process_that_ends_is_an_error(files):
    with ModelProcess(*files) as process:
        os.kill(process._child.pid, signal.SIGSEGV)
        with pytest.raises(serde.SerdeError, match=r"m\.onnx: the process .* SIGSEGV"):
            process.run(1)


def test_refusals_have_their_kind(files, tmp_path):
    with pytest.raises(serde.UsageError, match="are more"):
        np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.zeros(2))
        ModelProcess(files[0], None, str(tmp_path / "two.npz"), 1)
    with pytest.raises(serde.SerdeError, match="no such file"):
        ModelProcess("none.onnx", None, files[2], 1)
