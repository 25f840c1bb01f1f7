"""The real TVM with Relay, for tests to compare with; it runs in an environment of its own.

    python testing/relay/tvm_live.py FOLDER

makes that environment, or leaves it as it is where it stands: the wheel of bitblas 0.0.1.dev13
carries a complete TVM 0.17. It links CUDA's runtime, which two more wheels bring, and its driver,
for which a stub does. Tests use the environment in ``$SERDE_TVM``, and are skipped where there is
none; ``tests/run.py`` makes one beside its own.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))
from testing.live_worker import LiveError as TvmError
from testing.live_worker import LiveWorker, install, make

WHEEL = "bitblas==0.0.1.dev13"
NEEDS = (
    "nvidia-cuda-runtime-cu12 nvidia-cuda-nvrtc-cu12 numpy decorator attrs psutil scipy "
    "cloudpickle typing_extensions tornado pytest"
).split()
DRIVER = (
    "cuDeviceGetName cuFuncSetAttribute cuGetErrorName cuLaunchKernel cuMemsetD32_v2 "
    "cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleLoadData cuModuleUnload"
).split()
RECIPE = " ".join([WHEEL, *NEEDS, *DRIVER])


def obstacle() -> str:
    """Why this machine cannot have the environment, or nothing."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "the only build of TVM with Relay is for Linux on x86-64"
    return "" if shutil.which("cc") else "a C compiler is missing: cc"


def set_up(folder: Path) -> None:
    """Make the environment in ``folder``."""
    install(folder, ["--no-deps", WHEEL], NEEDS)  # it complains of what TVM can do without
    stub = folder / "stub.c"
    stub.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in DRIVER))
    (folder / "lib").mkdir(exist_ok=True)
    library = folder / "lib/libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, stub], check=True)  # fmt: skip


def environment(folder: Path) -> dict[str, str]:
    (site,) = folder.glob("v/lib/python3*/site-packages")
    libraries = [folder / "lib", *site.glob("nvidia/*/lib")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        "TOPHUB_LOCATION": "NONE",  # no schedules from the network
        "TVM_NUM_THREADS": "1",
        "PYTHONPATH": str(site / "bitblas/3rdparty/tvm/python"),
    }


def run_script(script: Path, folder: Path, *arguments: str) -> list[Any]:
    """The lines of JSON that ``script`` prints when this Python runs it with TVM at hand, in
    ``folder``, with the folder of TVM's packages before the arguments; skips the running test, with the reason, where TVM's Python is another.
    """
    ask("ops")
    place = Path(os.environ["SERDE_TVM"]).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = place / "v" / "lib" / version / "site-packages"
    if not site.is_dir():
        pytest.skip(f"no live TVM for {version} in {place}")
    around = environment(place)
    around["PYTHONPATH"] = os.pathsep.join((around["PYTHONPATH"], str(Path(__file__).parents[2])))
    command = [sys.executable, str(script), str(site), *arguments]
    done = subprocess.run(command, env=around, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise TvmError(done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


TVM = LiveWorker(
    "TVM", "SERDE_TVM", Path(__file__).with_name("tvm_worker.py"), "testing/relay/tvm_live.py",
    obstacle, environment,
)  # fmt: skip
ask = TVM.ask


def run(form: str, module: str, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs TVM computes, tuples flattened; ``form`` is ``text`` or ``json``."""
    return TVM.run([form, module], feeds)


def run_static(form: str, module: str, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The same by TVM's graph executor, which runs static shapes only."""
    return TVM.run([form, module], feeds, "run_static")


def run_network(
    module: Path, params: Path | None, feeds: Mapping[str, np.ndarray], seconds: int = 600
) -> list[np.ndarray]:
    """The same of a file of JSON and one of parameters, compiled in the least time."""
    try:
        return TVM.run([str(module), params and str(params), seconds], feeds, "run_network")
    except TvmError as error:
        late = str(error).endswith("SIGALRM")
        raise TvmError(f"TVM takes more than {seconds} s") if late else error from None


if __name__ == "__main__":
    sys.exit(make(Path(sys.argv[1]).resolve(), RECIPE, obstacle, set_up))
