"""A folder by a handle: files are put into it even where its path leads to another meanwhile."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from serde.errors import TargetRefused

HAS_HANDLES = {os.open, os.stat, os.rename, os.unlink} <= os.supports_dir_fd  # not on Windows
FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)


class OpenFolder:
    """A folder that stays the same until it is closed, whatever becomes of its path."""

    _number: int | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        if HAS_HANDLES:
            self._number = os.open(path, FLAGS)

    def __del__(self) -> None:
        """Let go of the folder where Ctrl-C has ended what would have closed it."""
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        number, self._number = self._number, None
        if number is not None:
            with suppress(OSError):  # nothing was written by it
                os.close(number)

    def _at(self, name: str) -> str:
        return name if self._number is not None else os.path.join(self.path, name)

    def _options(self, *names: str) -> dict[str, Any]:
        return {} if self._number is None else dict.fromkeys(names or ("dir_fd",), self._number)

    def create(self, name: str) -> BinaryIO:
        """Make a file that is not there, with the rights that new files have here."""
        # No code of Python, where Ctrl-C could lose the number of the open file.
        opener = partial(os.open, mode=0o666, **self._options())
        return open(self._at(name), "xb", opener=opener)

    def replace(self, old: str, new: str) -> None:
        """Give a file another name, in the place of what has it."""
        os.replace(self._at(old), self._at(new), **self._options("src_dir_fd", "dst_dir_fd"))

    def unlink(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._at(name), **self._options())

    def has(self, name: str) -> bool:
        """Whether there is anything of a name, also a link that leads nowhere."""
        try:
            os.stat(self._at(name), follow_symlinks=False, **self._options())
        except FileNotFoundError:
            return False
        return True

    def refuse_other(self) -> None:
        """Refuse to go on where its path leads to another folder, or to none, by now.

        Raises:
            TargetRefused: naming the folder.
        """
        if self._number is None:
            return
        try:
            is_same = os.path.samestat(os.stat(self.path), os.fstat(self._number))
        except OSError:
            is_same = False
        if not is_same:
            raise TargetRefused(
                f"{self.path} was moved or replaced while files were written to it: leave it in "
                "its place, and write them again"
            )
