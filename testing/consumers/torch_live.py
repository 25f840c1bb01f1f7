"""onnx2torch, which makes PyTorch modules of ONNX files, for tests to run what is written for it.

    python testing/consumers/torch_live.py FOLDER

makes the environment that it runs in, with PyTorch for processors, from an index that pip is
configured with (``PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu``). It is large:
``tests/run.py`` makes none. Tests use the environment in ``$SERDE_TORCH``, and are skipped where
there is none; their outcomes are recorded under ``conformance/results``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from testing.consumers.consumers_live import obstacle
from testing.live_worker import LiveWorker, install, make

RUNTIME = "onnx2torch==1.5.15"
NEEDS = [RUNTIME, "torch==2.14.1+cpu", "torchvision==0.29.1+cpu", "onnx>=1.23", "numpy"]


def environment(folder: Path) -> dict[str, str]:
    """The variables of a process in the environment."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


TORCH = LiveWorker(
    "onnx2torch", "SERDE_TORCH", Path(__file__).with_name("torch_worker.py"),
    "testing/consumers/torch_live.py", obstacle, environment,
)  # fmt: skip


if __name__ == "__main__":
    chosen = Path(sys.argv[1]).resolve()
    sys.exit(make(chosen, " ".join(NEEDS), obstacle, lambda folder: install(folder, NEEDS)))
