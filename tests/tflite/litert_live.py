"""LiteRT, for tests to run written files in.

    python tests/tflite/litert_live.py FOLDER

installs it there. ``$SERDE_LITERT`` names the folder; tests are skipped where there is none, and
LiteRT is not installed either.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

NEEDS = ["ai-edge-litert==2.3.0"]
VARIABLE = "SERDE_LITERT"


@cache
def why_not() -> str:
    """Why files cannot be run here, or nothing."""
    folder = os.environ.get(VARIABLE)
    path = {"PYTHONPATH": os.path.abspath(folder)} if folder else {}
    command = [sys.executable, "-c", "import ai_edge_litert.interpreter"]
    done = subprocess.run(command, capture_output=True, cwd="/", env={**os.environ, **path})
    return f"no live LiteRT: {VARIABLE} names no folder with it" if done.returncode else ""


def run_both(worker: Any, path: Path, arrays: Sequence[Any]) -> list[list[Any]]:
    """What both sets of kernels compute."""
    return [worker.run(str(path), arrays, delegates=delegates) for delegates in (True, False)]


if __name__ == "__main__":
    chosen = Path(sys.argv[1]).resolve()
    marker = chosen / ".installed"
    if marker.is_file() and marker.read_text() == " ".join(NEEDS):
        sys.exit(0)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--only-binary", ":all:"]
    code = subprocess.call([*pip, "--upgrade", "--target", str(chosen), *NEEDS])
    if code == 0:
        marker.write_text(" ".join(NEEDS))
    sys.exit(code)
