"""Each core ATen operator, exported by live PyTorch, read, and run in ONNX Runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from serde.formats.pt2.signatures import SIGNATURES
from serde.formats.pt2.to_ir import draws, reads
from testing.pt2.cases import REFUSED, list_cases
from testing.pt2.run import VARIABLE, export_cases, outcome

ROOT = Path(__file__).resolve().parents[2]
CASES = list_cases()
live = pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no live PyTorch")


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pt2")
    return folder, export_cases(CASES, folder)


@live
@pytest.mark.parametrize("at", range(len(CASES)), ids=[f"{k}-{c[0]}" for k, c in enumerate(CASES)])
def test_a_case_computes_what_pytorch_does(exports, at):
    folder, names = exports
    result = outcome(folder, names[at])
    if CASES[at][0] in REFUSED:
        assert "the model gets inputs of noise" in result
    else:
        assert result == "right"


@live
def test_signatures_are_those_of_live_pytorch(tmp_path):
    names = tmp_path / "names"
    names.write_text("\n".join([*reads.rules, *draws.rules]))
    python = Path(os.environ[VARIABLE], "v/bin/python")
    script = ROOT / "testing/pt2/make_signatures.py"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    made = subprocess.run(
        [python, script, names],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        cwd="/",
    )
    space: dict[str, dict[str, str]] = {}
    exec(made.stdout, space)
    assert space["SIGNATURES"] == SIGNATURES


def test_all_of_the_table_has_rules():
    assert SIGNATURES.keys() <= {
        name.removeprefix("complex.") for name in (*reads.rules, *draws.rules)
    }
    assert sys.modules.get("torch") is None
