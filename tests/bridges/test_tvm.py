"""Live modules: exported, checked, inspected and verified in a process that has TVM and serde."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testing.relay.tvm_live import run_script

CLOSE = 1e-5


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("tvm_script.py")
    return dict(run_script(script, tmp_path_factory.mktemp("tvm")))


@pytest.mark.parametrize(
    "name", ["export", "exported_arrays", "exported_bound", "exported_function"]
)
def test_exports(results: dict[str, Any], name: str) -> None:
    assert results[name] < CLOSE


def test_checks(results: dict[str, Any]) -> None:
    assert results["check"] == [True, "relay", {"MatMul": 1, "Relu": 1}]
    (reason,) = results["refuse"]
    assert "random numbers" in reason


def test_inspects(results: dict[str, Any]) -> None:
    assert results["inspect"] == ["relay", ["nn.dense", "nn.relu"], ["x"]]


def test_verifies(results: dict[str, Any]) -> None:
    assert results["verified_live"] == ["tvm", True]
    assert results["verified_files"] == [["tvm", True]] * 2
    assert results["verified_names"] == [["tvm", True]] * 4
    assert results["verified_printed_names"] is True


def test_runs(results: dict[str, Any]) -> None:
    assert max(results["run_models"]) < CLOSE


def test_commands(results: dict[str, Any]) -> None:
    (converted, text), (checked, listing), (inspected, shown) = results["commands"]
    assert (converted, checked, inspected) == (0, 0, 0)
    assert "verification against tvm" in text and "pass" in text
    assert "everything converts to onnx" in listing
    assert "nn.dense ×1" in shown
