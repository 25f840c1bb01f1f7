"""Which files a command reads and writes, so that it destroys none that it has read.

A command, or a call of the API, runs in one ``within_command`` block. Files that a model is read
from, and other inputs, are entered as they are opened; ``Replacing`` asks before it writes
(``refuse_target``). Files are told by device and inode: links and other spellings of a name change
nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from serde.errors import TargetRefused, UsageError

PathLike = str | os.PathLike[str]
FileId = tuple[int, int]
OF_SOURCE, OF_COMMAND = "a file of the source", "read by this command"
CURE = "write to another name"


class FileRead(NamedTuple):
    """A file that was read: its path, its stamp as it was opened, and what it is to the user."""

    path: str
    stamp: str
    role: str


class CommandFiles:
    """The files of one command.

    ``absent`` are paths that were looked for in vain. ``spared`` are files that are not read, and
    not replaced either. ``outputs`` were named by the user and are no part of a model: nothing that
    is read may be one of them. ``kinds`` are, by path, how a file is told that may be replaced, and
    its name. ``call`` is the command as it was typed.
    """

    def __init__(self) -> None:
        self.read: dict[FileId, FileRead] = {}
        self.spared: dict[FileId, FileRead] = {}
        self.written: dict[FileId, str] = {}
        self.absent: set[str] = set()
        self.kinds: dict[str, tuple[Callable[[Path], bool], str]] = {}
        self.call = ""
        self.outputs: dict[str, FileId | None] = {}
        self._replaceable: set[FileId] = set()
        self._models: dict[FileId | None, set[FileId]] = {}  # files of a model, by its main one
        self._current: set[FileId] | None = None  # files of the model that is being read

    @contextmanager
    def reading_model(self, path: PathLike) -> Iterator[None]:
        """Enter all files that are opened in the block as files of the model at ``path``.

        Its main file is that, unless another is named in the block (``enter_main``).
        """
        outer, files_of_model = self._current, set[FileId]()
        self._current = files_of_model
        try:
            self.enter(path, OF_SOURCE)
            yield
            if not any(files is files_of_model for files in self._models.values()):
                self.enter_main(path)
        finally:
            self._current = outer

    def enter_main(self, path: PathLike) -> None:
        """Enter the file that a model is known by: the others are replaced with it.

        Where that is in an archive, nothing is: an archive may hold other things as well.
        """
        self.enter(path, OF_SOURCE)
        if self._current is not None:
            self._models[_find_id(path)] = self._current

    def note_opened(self, path: PathLike, status: os.stat_result) -> None:
        """Enter an open file, if it is one of the model that is being read."""
        if self._current is not None:
            self._enter(os.fspath(path), status, OF_SOURCE)

    def enter(self, path: PathLike, role: str = OF_COMMAND) -> None:
        """Enter a file by its path, before it is read.

        Raises:
            UsageError: where it is an output of the command, or no name of a file.
        """
        check_name(path)
        try:
            status = os.stat(path)
        except OSError:
            return
        if stat.S_ISREG(status.st_mode):
            self._enter(os.fspath(path), status, role)

    def _enter(self, path: str, status: os.stat_result, role: str) -> None:
        file = _id_of(status)
        if self._current is not None:
            self._current.add(file)
        for output, known in self.outputs.items():
            if known == file:
                raise UsageError(f"{output} is {role}: {CURE}")
        self.read.setdefault(file, FileRead(os.path.abspath(path), _make_stamp(status), role))

    def spare(self, path: PathLike, role: str) -> None:
        """Let nothing replace a file, which is not read."""
        status = os.stat(path)
        self.spared[_id_of(status)] = FileRead(os.path.abspath(path), _make_stamp(status), role)

    def enter_weights(self, paths: Iterable[str]) -> None:
        """Enter the files that weights lie in, which a caller has read before."""
        for path in paths:
            file = _find_id(path)
            if file is not None and file not in self.read:
                self.enter(path, OF_SOURCE)

    def allow_replacing(self, target: PathLike, known: CommandFiles | None = None) -> None:
        """Let ``target`` be written where it is a model that was read, all its files with it.

        ``known`` is the record of reading it, if that was no part of the command.
        """
        file, models = _find_id(target), (known or self)._models
        if file is not None and file in models:
            self._replaceable |= models[file] | {file}

    def claim_output(self, path: str, may_be_source: bool = False) -> None:
        """Reserve a path for an output of the command, before anything is read.

        Raises:
            UsageError: where it was read, or another output is the same file.
        """
        for other in self.outputs:
            if is_same_file(path, other):
                raise UsageError(f"{path} and {other} are one file: {CURE}")
        if not may_be_source:
            self.refuse_target(path)
        self.outputs[path] = None if may_be_source else _find_id(path)

    def refuse_target(self, path: PathLike) -> None:
        """Refuse to write over a file that was read or spared, or an output over the result.

        Raises:
            TargetRefused: naming the file.
        """
        file, path = _find_id(path), os.fspath(path)
        if file is None:
            return
        written, read = self.written.get(file), self.read.get(file) or self.spared.get(file)
        if path in self.outputs and written is not None and _find_id(written) == file:
            raise TargetRefused(f"{path} is a file of the result: {CURE}")
        # Where another process has replaced a file, its inode may be that of any new one.
        is_read = read is not None and _find_id(read.path) == file
        if read is not None and is_read and file not in self._replaceable:
            raise TargetRefused(f"{path} is {read.role}: {CURE}")

    def read_before_writing(self) -> list[FileRead]:
        """The files that were read but those that the command itself has written."""
        return [known for file, known in self.read.items() if file not in self.written]

    def list_read(self) -> frozenset[str]:
        """The paths of all files that were read."""
        return frozenset(known.path for known in self.read.values())

    def refuse_result(self, path: PathLike) -> None:
        """Refuse to put a file of a result where another output of the command is to be.

        Raises:
            TargetRefused: naming the output.
        """
        for output in self.outputs:
            if is_same_file(path, output):
                raise TargetRefused(f"{output} is a file of the result: {CURE}")

    def enter_written(self, path: str) -> None:
        """Enter a file that was put in place."""
        file = _find_id(path)
        if file is not None:
            self.written[file] = os.path.abspath(path)


def check_name(path: PathLike) -> None:
    """Refuse a path that no file can have, whatever it was read from.

    Raises:
        UsageError: naming it.
    """
    try:
        has_form = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # half of a pair of UTF-16
        has_form = False
    if not has_form:
        raise UsageError(f"{os.fspath(path)!r} is the name of no file: give another name")


def is_same_file(a: PathLike, b: PathLike) -> bool:
    """Whether two paths lead to one file, or would."""
    try:
        return os.path.samefile(a, b)
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)


def stamp_file(path: PathLike) -> str:
    """What tells a file from another and from itself after a change; empty where there is none."""
    try:
        return _make_stamp(os.stat(path))
    except OSError:
        return ""


def _make_stamp(status: os.stat_result) -> str:
    times = status.st_mtime_ns, status.st_ctime_ns
    return "-".join(map(str, (status.st_size, *times, status.st_ino)))


def _id_of(status: os.stat_result) -> FileId:
    return status.st_dev, status.st_ino


def _find_id(path: PathLike) -> FileId | None:
    check_name(path)
    try:
        return _id_of(os.stat(path))
    except OSError:
        return None


_active: ContextVar[CommandFiles | None] = ContextVar("command files", default=None)


def active_files() -> CommandFiles:
    """The files of the command that is going on; outside of one, a record that nobody reads."""
    return _active.get() or CommandFiles()


@contextmanager
def within_command(files: CommandFiles | None = None) -> Iterator[CommandFiles]:
    """Share one record in the block: that around it, where there is one, or else ``files``."""
    files = _active.get() or files or CommandFiles()
    token = _active.set(files)
    try:
        yield files
    finally:
        _active.reset(token)
