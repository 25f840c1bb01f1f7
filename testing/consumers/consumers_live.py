"""Runtimes and optimizers that read ONNX files, for tests to run what is written for them.

    python testing/consumers/consumers_live.py FOLDER

makes the environment that they run in, or leaves it as it is where it stands. Tests use the
environment in ``$SERDE_CONSUMERS``, and are skipped where there is none; ``tests/run.py`` makes one
beside its own.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from testing.live_worker import LiveError, LiveWorker, install, make

RUNTIMES = ["openvino==2026.4.1", "tract==0.23.9", "mnn==3.6.1"]
NCNN = "ncnn==1.0.20261020"
# Without PyTorch and OpenCV, which the Python around them needs and they do not.
ALONE = ["--no-deps", NCNN, "pnnx==20261020"]
OPTIMIZERS = ["onnxslim==0.1.98", "onnxsim==0.8.1", "onnxoptimizer==0.4.2"]
NEEDS = [*RUNTIMES, *OPTIMIZERS, "onnx>=1.23", "onnxruntime>=1.20", "numpy"]
MACHINES = (("linux", "x86_64"),)


def obstacle() -> str:
    """Why this machine cannot have the environment, or nothing."""
    here = (sys.platform, platform.machine())
    return "" if here in MACHINES else f"the wheels are not tried on {' '.join(here)}"


def environment(folder: Path) -> dict[str, str]:
    """The variables of a process in the environment."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}


CONSUMERS = LiveWorker(
    "consumers of ONNX", "SERDE_CONSUMERS", Path(__file__).with_name("consumers_worker.py"),
    "testing/consumers/consumers_live.py", obstacle, environment,
)  # fmt: skip
ConsumerError = LiveError
run = CONSUMERS.run


if __name__ == "__main__":
    chosen = Path(sys.argv[1]).resolve()
    recipe = " ".join([*NEEDS, *ALONE])
    sys.exit(make(chosen, recipe, obstacle, lambda folder: install(folder, NEEDS, ALONE)))
