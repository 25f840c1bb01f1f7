"""TVM partitions for ``onnx``, compiles, exports, loads and runs; each in a process with TVM."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

from serde.bridges import tvm
from serde.errors import MissingDependency
from testing.relay.tvm_live import run_script

CLOSE = 1e-5


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("tvm_byoc_script.py")
    return dict(run_script(script, tmp_path_factory.mktemp("tvm")))


def test_parts_run_in_the_graph_executor(results):
    parts, error = results["takes_all"]
    assert parts == 1 and error < CLOSE
    parts, error = results["takes_some"]
    assert parts == 3 and error < CLOSE  # TVM makes one that only takes the tuple apart


def test_the_module_given_stays(results):
    assert results["keeps_the_module"] == [True, ["x", "w", "b"]]


def test_parts_run_in_the_virtual_machine(results):
    assert len(results["runs_in_the_virtual_machine"]) == 2
    assert max(results["runs_in_the_virtual_machine"]) < CLOSE


def test_a_library_is_exported_and_loaded(results):
    assert len(results["exports"]) == 2 and max(results["exports"]) < CLOSE


def test_the_models_in_a_library_are_saved(results):
    assert results["saves_parts"] == [["Add", "Concat", "Relu"], ["Add", "Conv", "Relu"]]


def test_a_vendor_runs_the_parts(results):
    calls, error = results["runs_by_hand"]
    assert calls == ["load", "run", "run"] and error < CLOSE


def test_dynamic_shapes_stay_with_tvm(results):
    assert results["leaves_dynamic_shapes"] == []


def test_to_onnx_is_what_tvm_had(results):
    name, versions, error, inputs = results["makes_onnx"]
    assert (name, versions, inputs) == ("net", {"": 13}, ["x", "w", "b"]) and error < CLOSE
    parameters = inspect.signature(tvm.to_onnx).parameters
    assert list(parameters) == ["relay_ir", "params", "name", "opset_version", "path"]
    assert parameters["opset_version"].default == 11


def test_without_tvm_the_message_tells_what_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "tvm", None)
    with pytest.raises(MissingDependency, match="TVM with Relay"):
        tvm.register_onnx_codegen()
    with pytest.raises(MissingDependency, match="TVM with Relay"):
        tvm.partition_for_onnx(None)
