"""Temporary folders that are removed also where their process is killed: by the next one."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from weakref import finalize

from serde.io.atomic_write import lock_folder
from serde.io.finish_first import finish_first

PREFIX = "serde-work-"
NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")
INSIDE = "files"
YOUNG = 60  # seconds in which a folder may not be locked yet


class TemporaryFolder:
    """A folder that is locked as long as its process uses it; those left unlocked are removed.

    It goes with this object at the latest, but not with the copy of it in a forked process.
    """

    def __init__(self, place: str | None = None) -> None:
        self.name = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        lock = ExitStack()
        self._end = finalize(self, _remove, os.getpid(), self.name, lock)
        lock.enter_context(lock_folder(self.name, wait=False))
        with suppress(OSError):  # removed by its process meanwhile
            _remove_abandoned(os.path.dirname(self.name))

    def __enter__(self) -> str:
        """A folder in it, so that writers of several files find that one unlocked."""
        inside = os.path.join(self.name, INSIDE)
        os.mkdir(inside)
        return inside

    def __exit__(self, *error: object) -> None:
        self.cleanup()

    @finish_first
    def cleanup(self) -> None:
        """Remove the folder, unless that is done."""
        self._end()


@finish_first
def _remove(process: int, folder: str, lock: ExitStack) -> None:
    """Remove a folder of a process, and then let go of it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
    lock.close()


def _remove_abandoned(place: str) -> None:
    """Remove the folders of this user in ``place`` whose processes were killed."""
    with os.scandir(place) as entries:
        folders = [e for e in entries if NAME.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
    for entry in folders:
        with suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
            if is_own and time.time() - status.st_mtime > YOUNG:
                with lock_folder(entry.path, wait=False) as is_locked:
                    if is_locked:
                        shutil.rmtree(entry.path, ignore_errors=True)
