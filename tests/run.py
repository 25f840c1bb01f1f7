"""Set up everything the tests need in ``.venv`` and run all checks: lint, format, types, tests.

Needs Python 3.10 or newer and a package index. MXNet and, in ``.tvm``, ``.relax`` and
``.consumers`` beside ``.venv``, TVM with Relay, TVM with Relax and OpenVINO are installed where their
wheels can be had; the tests against them are skipped otherwise, and say why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MXNET = "mxnet==1.9.1"  # its own requirements name a NumPy that is long gone
MXNET_NEEDS = ("requests", "graphviz", "setuptools<81")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")  # its names on the path
WORKERS = min(max(os.cpu_count() or 2, 2), 4)  # each takes up to 2 GB
CODE = (
    "serde", "backends", "formats", "frontends", "bridges", "testing", "tests", "conformance",
    "benchmarks", "examples", "setup.py", "docs/conf.py",
)  # fmt: skip


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> int:
    """Run a command, shown first; return its exit code."""
    print("$", *command, flush=True)
    return subprocess.call([str(c) for c in command], cwd=cwd, env={**os.environ, **env})


def must(*command: str | Path) -> None:
    """Run a command the rest depends on."""
    if code := run(*command):
        sys.exit(code)


def set_up(folder: Path, is_fast: bool = False) -> Path:
    """Make the virtual environment and install into it, MXNet too; return its ``bin``."""
    bin_ = folder / ("Scripts" if os.name == "nt" else "bin")
    python = bin_ / "python"
    if not python.exists():
        try:
            venv.create(folder, with_pip=True)
        except subprocess.CalledProcessError:
            sys.exit("this Python cannot make virtual environments: apt-get install python3-venv")
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    must(*pip, "-e", f"{ROOT}[test,docs]")
    if is_fast:
        return bin_
    if run(*pip, "--no-deps", MXNET) or run(*pip, *MXNET_NEEDS):
        print("MXNet could not be installed: the tests against it will be skipped")
    return bin_


LIVE = {  # the variable that names an environment, what makes it, and what for
    "SERDE_TVM": ("testing/relay/tvm_live.py", ".tvm", "TVM"),
    "SERDE_RELAX": ("testing/relax/relax_live.py", ".relax", "TVM with Relax"),
    "SERDE_CONSUMERS": ("testing/consumers/consumers_live.py", ".consumers", "OpenVINO and others"),
    "SERDE_TORCH_CPU": ("tests/torch/torch_live.py", ".torch", "PyTorch"),
    "SERDE_LITERT": ("tests/tflite/litert_live.py", ".litert", "LiteRT"),
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


WITHOUT = "SERDE_WITHOUT_LIVE"  # the variable that has tests skip live frameworks
FAST = (  # folders whose tests need no live framework, and little time
    "tests/architecture", "tests/api", "tests/ir", "tests/legalize", "tests/rewrite", "tests/spec",
)  # fmt: skip
EPILOG = """
What else is given goes to pytest: files, folders, -k WORD, -x. Then only these tests run, without
lint, format and types:

    python3 tests/run.py tests/ir/test_graph.py
    python3 tests/run.py --fast -k shape
"""


def check_all(bin_: Path, frameworks: dict[str, str], tests: list[str], is_fast: bool) -> int:
    """Run the checks; tests that are named run alone. The exit code is 0 if all passed."""
    python = bin_ / "python"
    pytest = [python, "-m", "pytest", "-rs", "-n", str(WORKERS),
              "--dist", "worksteal"]  # fmt: skip  # neighbouring tests share a worker's frameworks
    selected = [*(FAST if is_fast and not any("/" in t for t in tests) else ()), *tests]
    own = {**frameworks, "PYTHONDONTWRITEBYTECODE": "", **({WITHOUT: "1"} if is_fast else {})}
    checks = {
        "lint": lambda: run(bin_ / "ruff", "check", *CODE),
        "format": lambda: run(bin_ / "ruff", "format", "--check", *CODE),
        "types": lambda: run(python, "-m", "mypy", "-p", "serde"),
        "tests": lambda: run(*pytest, *selected, **own),
    }
    names = ["tests"] if tests else [n for n in checks if n != "types" or not is_fast]
    failed = [name for name in names if checks[name]()]
    print("failed: " + ", ".join(failed) if failed else "all checks passed")
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    """Set up and run the checks."""
    parser = argparse.ArgumentParser(
        prog="python3 tests/run.py", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", metavar="FOLDER",
                        help="the virtual environment to make or reuse (.venv)")  # fmt: skip
    parser.add_argument("--setup-only", action="store_true", help="set up, and run nothing")
    parser.add_argument("--fast", action="store_true",
                        help="set up no live frameworks; lint, format, and the quick tests")  # fmt: skip
    options, tests = parser.parse_known_args(arguments)
    if absent := [t for t in tests if t.endswith(".py") and not (ROOT / t).exists()]:
        parser.error(f"there is no {absent[0]}")  # before anything is installed
    bin_ = set_up(options.venv.resolve(), is_fast=options.fast)
    frameworks = {} if options.fast else live(bin_)
    if not options.fast:
        install_browser()
    return 0 if options.setup_only else check_all(bin_, frameworks, tests, options.fast)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
