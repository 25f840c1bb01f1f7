"""The real TVM with Relax, for tests to compare with; it runs in an environment of its own.

    python testing/relax/relax_live.py FOLDER

makes that environment, or leaves it as it is where it stands. Tests use the environment in
``$SERDE_RELAX``, and are skipped where there is none; ``tests/run.py`` makes one beside its own.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2]))
from testing.live_worker import LiveError, LiveWorker, install, make

NEEDS = ["apache-tvm==0.27.0.post1", "onnx>=1.23", "numpy", "click", "rich"]
MACHINES = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))


def obstacle() -> str:
    """Why this machine cannot have the environment, or nothing."""
    here = (sys.platform, platform.machine())
    return "" if here in MACHINES else f"apache-tvm has no wheel for {' '.join(here)}"


def environment(folder: Path) -> dict[str, str]:
    """The variables of a process in the environment."""
    return {**os.environ, "TVM_NUM_THREADS": "1"}


RELAX = LiveWorker(
    "Relax", "SERDE_RELAX", Path(__file__).with_name("relax_worker.py"),
    "testing/relax/relax_live.py", obstacle, environment,
)  # fmt: skip
RelaxError = LiveError
run = RELAX.run


def run_within(seconds: int, path: str, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The same, unless it takes longer."""
    try:
        return RELAX.run([path, seconds], feeds, "run_within")
    except LiveError as error:
        late = str(error).endswith("SIGALRM")
        raise LiveError(f"TVM takes more than {seconds} s") if late else error from None


if __name__ == "__main__":
    chosen = Path(sys.argv[1]).resolve()
    sys.exit(make(chosen, " ".join(NEEDS), obstacle, lambda folder: install(folder, NEEDS)))
