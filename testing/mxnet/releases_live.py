"""Releases of MXNet that this Python cannot import, for tests to compare with.

    python testing/mxnet/releases_live.py FOLDER [--python PYTHON] [RELEASE …]

makes an environment for each release, or leaves it as it is where it stands. The wheels need
Python 3.7 and NumPy 1.16: the ``python3.7`` of the path, or the one of ``--python``. Tests use the
environments in ``$SERDE_MXNET``, and are skipped where there is none.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
from testing.live_worker import LiveWorker, make

VARIABLE = "SERDE_MXNET"
SECOND = "2.0.0b1"
# Releases whose files are read, and those that symbols are written for beside 1.9.1.
LATER = ("1.5.1", "1.6.0", "1.7.0.post2", "1.8.0.post0", SECOND)
READ = ("0.9.5.post2", "0.11.0", "1.0.0", "1.2.0", "1.3.0", "1.4.0", *LATER)
WRITTEN = ("1.2.1.post1", "1.3.1", "1.4.1", *LATER)
RELEASES = (*dict.fromkeys((*READ, *WRITTEN)),)
NEEDS = ("numpy<1.17", "requests", "graphviz", "scipy")
BOOK = "d2l==1.0.3"  # Dive into Deep Learning, whose networks MXNet 2.0 runs, and what it imports
BOOK_NEEDS = ("matplotlib", "pandas", "ipython")
FORTRAN = "libgfortran.so.3"  # that the wheels before 1.2 link; NumPy's wheel brings one


def obstacle(python: str = "python3.7") -> str:
    """Why this machine cannot have the environments, or nothing."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "the wheels of these releases are for Linux on x86-64"
    if shutil.which(python) is None:
        return f"they need Python 3.7, and there is no {python}: name one by --python"
    return ""


def set_up(python: str, release: str, folder: Path) -> None:
    """Make the environment of a release in ``folder``."""
    subprocess.run([python, "-m", "venv", "--clear", folder / "v"], check=True)
    pip = [folder / "v/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    groups = [["--pre", "--no-deps", f"mxnet=={release}"], [*NEEDS]]
    if release == SECOND:
        groups += [["--no-deps", "--ignore-requires-python", BOOK], [*BOOK_NEEDS, *NEEDS]]
    for args in groups:
        subprocess.run([*pip, *args], check=True, capture_output=True, text=True)
    (folder / "lib").mkdir(exist_ok=True)
    for library in folder.glob("v/lib/python3*/site-packages/numpy/.libs/libgfortran*.so.3*"):
        (folder / "lib" / FORTRAN).symlink_to(library)


def environment(folder: Path) -> Mapping[str, str]:
    """The variables of a process in it."""
    own = {"PYTHONPATH": "", "OMP_NUM_THREADS": "1", "LD_LIBRARY_PATH": str(folder / "lib")}
    return {**os.environ, **own}


def number_of(release: str) -> int:
    """A release as MXNet counts: 10300 is 1.3.0."""
    major, minor, patch = re.findall(r"\d+", release)[:3]
    return int(major) * 10000 + int(minor) * 100 + int(patch)


@cache
def worker(release: str) -> LiveWorker:
    """The process that runs a release."""
    return LiveWorker(
        f"MXNet {release}", VARIABLE, Path(__file__).with_name("releases_worker.py"),
        "testing/mxnet/releases_live.py", obstacle, environment, release,
    )  # fmt: skip


def main(arguments: list[str]) -> str | None:
    """Make the environments; what is in the way, if anything."""
    parser = argparse.ArgumentParser(description="Make environments of old releases of MXNet.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help=f"of {', '.join(RELEASES)}")
    parser.add_argument("--python", default="python3.7", help="a Python 3.7")
    args = parser.parse_args(arguments)
    for release in args.releases or RELEASES:
        book = (BOOK, *BOOK_NEEDS) if release == SECOND else ()
        recipe = " ".join((f"mxnet=={release}", *NEEDS, *book))
        build = partial(set_up, args.python, release)
        folder = args.folder.resolve() / release
        if why := make(folder, recipe, partial(obstacle, args.python), build):
            return why
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
