"""Live modules: exported, checked, inspected and verified in a process that has TVM and serde."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.relay.tvm_live import beside

CLOSE = 1e-5


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    script = Path(__file__).with_name("tvm_script.py")
    return dict(beside(script, tmp_path_factory.mktemp("tvm")))


@pytest.mark.parametrize(
    "name", ["exported", "exported_arrays", "exported_bound", "exported_function"]
)
def test_exports(found: dict[str, Any], name: str) -> None:
    assert found[name] < CLOSE


def test_checks(found: dict[str, Any]) -> None:
    assert found["checked"] == [True, "relay", {"MatMul": 1, "Relu": 1}]
    (reason,) = found["refused"]
    assert "random numbers" in reason


def test_inspects(found: dict[str, Any]) -> None:
    assert found["inspected"] == ["relay", ["nn.dense", "nn.relu"], ["x"]]


def test_verifies(found: dict[str, Any]) -> None:
    assert found["verified_live"] == ["tvm", True]
    assert found["verified_files"] == [["tvm", True]] * 2
    assert found["verified_names"] == [["tvm", True]] * 4


def test_commands(found: dict[str, Any]) -> None:
    (converted, text), (checked, listing), (inspected, shown) = found["commands"]
    assert (converted, checked, inspected) == (0, 0, 0)
    assert "verification against tvm" in text and "pass" in text
    assert "everything converts to onnx" in listing
    assert "nn.dense ×1" in shown
