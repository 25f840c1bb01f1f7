"""PyTorch for processors, for tests to run written modules in.

    python tests/torch/torch_live.py FOLDER

makes an environment with it; pip looks for the build for processors in PyTorch's own index too.
``$SERDE_TORCH_CPU`` names the folder, or ``$SERDE_PYTORCH`` a Python that has it; tests are skipped
where there is none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from testing.live_worker import install, make

NEEDS = ["torch==2.13.0+cpu", "numpy"]
INDEX = "https://download.pytorch.org/whl/cpu"
VARIABLE, FOLDER = "SERDE_PYTORCH", "SERDE_TORCH_CPU"


@cache
def why_not() -> str:
    """Why written modules cannot be run here, or nothing."""
    python = os.environ.get(VARIABLE) or sys.executable
    command = [python, "-c", "import torch, numpy"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    except OSError as error:
        return f"no live PyTorch: {error}"
    if done.returncode:
        return f"no live PyTorch: {VARIABLE} names no Python that has it"
    return ""


def find_obstacle() -> str:
    """Why this machine cannot have it, or nothing: wheels are looked for when it is made."""
    return ""


if __name__ == "__main__":
    os.environ["PIP_EXTRA_INDEX_URL"] = " ".join(
        filter(None, (os.environ.get("PIP_EXTRA_INDEX_URL"), INDEX))
    )
    chosen = Path(sys.argv[1]).resolve()
    made = make(chosen, " ".join(NEEDS), find_obstacle, lambda folder: install(folder, NEEDS))
    sys.exit(made)
