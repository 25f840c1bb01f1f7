"""The real TVM with Relay, for tests to compare with; it runs in an environment of its own.

    python tests/relay/tvm_live.py FOLDER

makes that environment, or leaves it as it is where it stands: the wheel of bitblas 0.0.1.dev13
carries a complete TVM 0.17. It links CUDA's runtime, which two more wheels bring, and its driver,
for which a stub does. Tests use the environment in ``$SERDE_TVM``, and are skipped where there is
none; ``tests/run.py`` makes one beside its own.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
MARK = "made-of"
WORKER = Path(__file__).with_name("tvm_worker.py")


def obstacle() -> str:
    """Why this machine cannot have the environment, or nothing."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "the only build of TVM with Relay is for Linux on x86-64"
    return "" if shutil.which("cc") else "a C compiler is missing: cc"


def stands(folder: Path) -> bool:
    """Whether the environment in ``folder`` was made to the end, as it would be made today."""
    mark = folder / MARK
    return mark.is_file() and mark.read_text() == RECIPE


def set_up(folder: Path) -> None:
    """Make the environment in ``folder``."""
    venv.create(folder / "v", with_pip=True, clear=True)
    pip = [folder / "v/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for wanted in (["--no-deps", WHEEL], NEEDS):  # it complains of what TVM can do without
        subprocess.run([*pip, *wanted], check=True, capture_output=True, text=True)
    stub = folder / "stub.c"
    stub.write_text("".join(f"int {name}(void) {{ return 100; }}\n" for name in DRIVER))
    (folder / "lib").mkdir(exist_ok=True)
    library = folder / "lib/libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, stub], check=True)  # fmt: skip
    (folder / MARK).write_text(RECIPE)


def _environment(folder: Path) -> dict[str, str]:
    (site,) = folder.glob("v/lib/python3*/site-packages")
    libraries = [folder / "lib", *site.glob("nvidia/*/lib")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        "TOPHUB_LOCATION": "NONE",  # no schedules from the network
        "TVM_NUM_THREADS": "1",
        "PYTHONPATH": str(site / "bitblas/3rdparty/tvm/python"),
    }


def beside(script: Path, folder: Path) -> list[Any]:
    """The lines of JSON that ``script`` prints when this Python runs it with TVM at hand, in
    ``folder``; skips the running test, with the reason, where TVM's Python is another.
    """
    ask("ops")
    place = Path(os.environ["SERDE_TVM"])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = place / "v" / "lib" / version / "site-packages"
    if not site.is_dir():
        pytest.skip(f"no live TVM for {version} in {place}")
    environment = _environment(place)
    paths = (environment["PYTHONPATH"], str(Path(__file__).parents[2]))
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    command = [sys.executable, str(script), str(site)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise TvmError(done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


@cache
def _worker_or_reason() -> subprocess.Popen[str] | str:
    place = os.environ.get("SERDE_TVM")
    if not place and obstacle():
        return f"no live TVM: {obstacle()}"
    if not place:
        return "no live TVM: SERDE_TVM names no folder made by tests/relay/tvm_live.py"
    folder = Path(place)
    try:
        process = subprocess.Popen(
            [folder / "v/bin/python", WORKER], env=_environment(folder), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        return f"no live TVM in {folder}: {error}"
    assert process.stdin is not None and process.stdout is not None
    atexit.register(_end, process)
    hello = process.stdout.readline()
    return process if hello else f"no live TVM in {folder}: it does not import"


def _end(process: subprocess.Popen[str]) -> None:
    """Let the worker end, as it does at the end of its input, and wait for it."""
    try:
        process.communicate(timeout=20)
    except (subprocess.TimeoutExpired, OSError, ValueError):
        process.kill()


class TvmError(Exception):
    """What TVM says of a request it cannot fulfil."""


def ask(command: str, *arguments: Any) -> Any:
    """What ``tvm_worker`` answers; skips the running test, with the reason, without TVM."""
    worker = _worker_or_reason()
    if isinstance(worker, str):
        pytest.skip(worker)
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write(json.dumps([command, *arguments]) + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        _worker_or_reason.cache_clear()  # the next question goes to another process
        raise TvmError("TVM ended")
    reply = json.loads(line)
    if "error" in reply:
        raise TvmError(reply["error"])
    return reply["value"]


def run(form: str, module: str, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs TVM computes, tuples flattened; ``form`` is ``text`` or ``json``."""
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = f"{folder}/in.npz", f"{folder}/out.npz"
        np.savez(inputs, **feeds)
        ask("run", [form, module], inputs, outputs)
        with np.load(outputs) as found:
            return [found[f"arr_{i}"] for i in range(len(found.files))]


def main(folder: Path) -> str | None:
    """Make the environment unless it stands; what stands in the way, if something does."""
    if stands(folder):
        return None
    if why := obstacle():
        return why
    try:
        set_up(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{error}\n{getattr(error, 'stderr', '')}"
    return None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
