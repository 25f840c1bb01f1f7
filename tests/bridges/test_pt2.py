"""Live PyTorch modules and exported programs as sources, where PyTorch is."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.torch.torch_live import VARIABLE, why_not

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("pt2_script.py")


@pytest.mark.skipif(bool(why_not()), reason=why_not() or "")
def test_live_sources_are_converted_and_verified(tmp_path):
    python = os.environ.get(VARIABLE, "python")
    paths = [ROOT, sysconfig.get_paths()["purelib"]]
    done = subprocess.run(
        [python, SCRIPT, tmp_path, *paths], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.splitlines() == ["module True True True", "program True True True"], (
        done.stderr[-2000:]
    )
