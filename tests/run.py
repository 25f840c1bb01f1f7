"""Set up everything the tests need in ``.venv`` and run all of them: lint, format, types, tests.

``python3 tests/run.py [--venv FOLDER] [pytest arguments]``. Needs Python 3.10 or newer and a package
index. MXNet and, in ``.tvm``, ``.relax`` and ``.consumers`` beside ``.venv``, TVM with Relay, TVM with Relax and OpenVINO are
installed where their wheels can be had; the tests against them are skipped otherwise, and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MXNET = "mxnet==1.9.1"  # its own requirements name a NumPy that is long gone
MXNET_NEEDS = ("requests", "graphviz", "setuptools<81")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")  # its names on the path
WORKERS = min(max(os.cpu_count() or 2, 2), 4)  # each takes up to 2 GB
CODE = (
    "serde", "backends", "formats", "frontends", "bridges", "tests", "conformance", "benchmarks",
    "examples", "setup.py", "docs/conf.py",
)  # fmt: skip


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> int:
    """Run a command, shown first; return its exit code."""
    print("$", *command, flush=True)
    return subprocess.call([str(c) for c in command], cwd=cwd, env={**os.environ, **env})


def must(*command: str | Path) -> None:
    """Run a command the rest depends on."""
    if code := run(*command):
        sys.exit(code)


def set_up(folder: Path) -> Path:
    """Make the virtual environment and install into it; return its ``bin``."""
    bin_ = folder / ("Scripts" if os.name == "nt" else "bin")
    python = bin_ / "python"
    if not python.exists():
        try:
            venv.create(folder, with_pip=True)
        except subprocess.CalledProcessError:
            sys.exit("this Python cannot make virtual environments: apt-get install python3-venv")
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    must(*pip, "-e", f"{ROOT}[test,docs]")
    if run(*pip, "--no-deps", MXNET) or run(*pip, *MXNET_NEEDS):
        print("MXNet could not be installed: the tests against it will be skipped")
    return bin_


LIVE = {  # the variable that names an environment, what makes it, and what for
    "SERDE_TVM": ("tests/relay/tvm_live.py", ".tvm", "TVM"),
    "SERDE_RELAX": ("tests/relax/relax_live.py", ".relax", "TVM with Relax"),
    "SERDE_CONSUMERS": ("tests/consumers/consumers_live.py", ".consumers", "OpenVINO and others"),
}


def live(bin_: Path) -> dict[str, str]:
    """Make the environments frameworks run in, unless there are any; how the tests find them."""
    variables = {}
    for variable, (script, name, framework) in LIVE.items():
        folder = bin_.parent.parent / name
        if variable in os.environ:
            continue
        if run(bin_ / "python", ROOT / script, folder):
            print(f"{framework} could not be installed: the tests against it will be skipped")
        else:
            variables[variable] = str(folder)
    return variables


def install_browser() -> None:
    """Install Debian's Chromium, which the pages are tested in, where this process may."""
    if any(shutil.which(name) for name in CHROMIUM):
        return
    may = shutil.which("apt-get") and hasattr(os, "getuid") and os.getuid() == 0
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    if not may or run("apt-get", "update", "-q") or run(
        "apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium", **quiet
    ):  # fmt: skip
        print("Chromium could not be installed: the tests of pages in it will be skipped")


def types(bin_: Path) -> int:
    """Check the types of the package as it is installed, apart from the checkout."""
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # pip would install what it still holds
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "site"
        must(bin_ / "python", "-m", "pip", "install", "-q", "--no-deps", "--target", built, ROOT)
        config = ROOT / "pyproject.toml"
        return run(
            bin_ / "python", "-m", "mypy", "--config-file", config, "-p", "serde",
            cwd=Path(folder), MYPYPATH=str(built),
        )  # fmt: skip


def main(arguments: list[str]) -> int:
    """Set up and run all checks; the exit code is 0 only if every one passed."""
    folder = ROOT / ".venv"
    if arguments[:1] == ["--venv"]:
        folder, arguments = Path(arguments[1]).resolve(), arguments[2:]
    bin_ = set_up(folder)
    frameworks = live(bin_)
    install_browser()
    failed = [
        name
        for name, code in (
            ("lint", run(bin_ / "ruff", "check", *CODE)),
            ("format", run(bin_ / "ruff", "format", "--check", *CODE)),
            ("types", types(bin_)),
            (
                "tests",
                run(
                    bin_ / "python",
                    "-m",
                    "pytest",
                    "-n",
                    str(WORKERS),
                    "--dist",
                    "worksteal",  # neighbouring tests share a worker's live frameworks
                    "-rs",
                    *arguments,
                    **frameworks,
                    PYTHONDONTWRITEBYTECODE="",  # tests start processes by hundreds
                ),
            ),
        )
        if code
    ]
    print("failed: " + ", ".join(failed) if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
