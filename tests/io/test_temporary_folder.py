"""Temporary folders: removed with their process, or after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import serde
from serde.io import atomic_write
from serde.io.atomic_write import lock_folder
from serde.io.temporary_folder import PREFIX, YOUNG, TemporaryFolder

CODE = """
import sys
from pathlib import Path
from serde.io import atomic_write
from serde.io.atomic_write import lock_folder
from serde.io.temporary_folder import TemporaryFolder
with TemporaryFolder() as folder:
    Path(folder, "model").write_bytes(b"x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def start(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder in ``place``, and the folder."""
    paths = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": os.fspath(place)},
    )  # fmt: skip
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def make_old(*folders: Path) -> None:
    """Let folders be older than those that may not be locked yet."""
    for folder in folders:
        before = folder.stat().st_mtime - 2 * YOUNG
        os.utime(folder, (before, before))


@pytest.mark.skipif(os.name != "posix", reason="locks and signals are those of POSIX")
def test_the_next_process_removes_those_of_killed_ones_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, left = start(tmp_path)
    living, used = start(tmp_path)
    recent, young = start(tmp_path)
    for process in (killed, recent):
        process.send_signal(signal.SIGKILL)
        process.communicate()
    others = [tmp_path / f"{PREFIX}mine", tmp_path / "serde-view-12345678"]
    for other in others:
        other.mkdir()
    (tmp_path / f"{PREFIX}12345678").symlink_to(others[0])
    left, used, young = left.parent, used.parent, young.parent
    make_old(left, used, *others)
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path))
    with TemporaryFolder() as folder:
        assert not left.exists() and [*used.glob("*/model")] and young.exists()
        assert all(o.exists() for o in (*others, tmp_path / f"{PREFIX}12345678", Path(folder)))
    living.communicate("")
    assert not used.exists() and not Path(folder).exists()


FORK = """
import os, sys, weakref
from pathlib import Path
from serde.io.temporary_folder import TemporaryFolder
folder, ways = TemporaryFolder(), sys.argv[1:]
def use():
    with TemporaryFolder() as within:
        if not os.fork():
            if "clean up" in ways: folder.cleanup()
            if "unwind" in ways: raise ValueError
            if "drop" in ways: globals().pop("folder")
            if "skip exit" in ways: os._exit(0)
            sys.exit(0)
        os.wait()
        return Path(within).is_dir()
print(use(), Path(folder.name).is_dir())
old = os.stat(folder.name).st_mtime - 1000
os.utime(folder.name, (old, old))
TemporaryFolder().cleanup()
print(Path(folder.name).is_dir())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("way", ["exit", "skip exit", "unwind", "clean up", "drop"])
def test_a_forked_process_leaves_folders_and_locks_to_its_parent(way: str, tmp_path: Path) -> None:
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", FORK, way], stdout=subprocess.PIPE, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": os.fspath(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["True"] * 3 and not [*tmp_path.iterdir()]


def test_there_are_no_other_temporary_folders() -> None:
    """Those of the standard library go with forked processes, and stay after killed ones."""
    package = Path(serde.__file__).resolve().parent
    for folder in (package, *(package.parent / n for n in ("bridges", "formats", "frontends"))):
        for path in folder.rglob("*.py"):
            assert "TemporaryDirectory" not in path.read_text(encoding="utf-8"), path


def test_no_descriptor_stays_open() -> None:
    folder = TemporaryFolder()
    before = os.open(os.curdir, os.O_RDONLY)
    os.close(before)
    folder.cleanup()
    for _ in range(8):
        with TemporaryFolder():
            pass
    after = os.open(os.curdir, os.O_RDONLY)
    os.close(after)
    assert after <= before


def test_several_files_are_written_into_one_without_waiting() -> None:
    with TemporaryFolder() as folder, lock_folder(folder, wait=False) as is_locked:
        assert is_locked or atomic_write.fcntl is None
