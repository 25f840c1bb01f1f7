"""Writing files so that a failure leaves what was there before.

One file replaces another at once. Of several, the model is the last: while the others are put in
place there is none, so that a process that is killed never leaves an old model with new weights.
What was there before is kept under hidden names (``.NAME.….before``) until all is in place.
Nothing is flushed to the disk (``fsync``): that is the system's to do, and a power failure soon
after may damage a result.
"""

from __future__ import annotations

import errno
import filecmp
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from serde.errors import MalformedFile, TargetRefused, UsageError
from serde.io.command_files import PathLike, active_files, check_name
from serde.io.file_bytes import SHORTER
from serde.io.finish_first import finish_first
from serde.io.named_file import name_path_in_errors
from serde.io.open_folder import OpenFolder
from serde.io.tensor_bytes import open_part
from serde.ir.graph import FileSlice

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

LEFTOVER = re.compile(r"\..*\.[0-9a-f]{12}\.part(\.before)?", re.DOTALL)
BEFORE = ".before"  # ends the name of what is kept until all files are in place
CHUNK = 1 << 18  # bytes copied at a time where the system cannot copy by itself
SMALL = 1 << 16  # bytes; parts up to this are read and written with those around them
MOST_OPEN = 8  # files
PATIENCE, PAUSE = 10, 0.02  # seconds to wait for the lock of a folder, in all and at a time


class Replacing:
    """Files written under temporary names, and put in place together when all are complete.

    ``path`` is the model, which the others belong to.
    """

    def __init__(self, path: str) -> None:
        self.model = path
        self.written: list[str] = []
        self._open: list[NewFile] = []
        self._begun: list[tuple[OpenFolder, str]] = []  # temporary names
        self._folders: dict[str, OpenFolder] = {}
        check_target(path)
        active_files().refuse_target(path)

    def __enter__(self) -> Replacing:
        return self

    def open(self, path: str) -> BinaryIO:
        """Open ``path`` for writing; it appears when the block ends well."""
        check_target(path)
        active_files().refuse_target(path)
        place, name = os.path.split(os.path.abspath(path))
        with name_path_in_errors(path):
            if place not in self._folders:
                self._folders[place] = OpenFolder(place)
            folder = self._folders[place]
            while True:
                temporary = _name_temporary(name)
                self._begun.append((folder, temporary))  # first: Ctrl-C may come once it is there
                with suppress(FileExistsError):
                    new = NewFile(folder.create(temporary), folder, temporary, name, path)
                    self._open.append(new)
                    return new.file
                self._begun.pop()  # it is of another process

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            for new in self._open:
                with name_path_in_errors(new.path):
                    new.file.close()  # which fails where the disk is full
            if kind is None:
                self._put_in_place()
            elif self._open and isinstance(error, OSError) and error.filename is None:
                error.filename = self._open[-1].path
        finally:
            self._clean_up()

    @finish_first
    def _clean_up(self) -> None:
        for new in self._open:
            with suppress(OSError):
                new.file.close()
        for folder, temporary in self._begun:
            with suppress(OSError):
                folder.unlink(temporary)
        for folder in self._folders.values():
            folder.close()

    def _put_in_place(self) -> None:
        together = sorted(self._open, key=lambda new: new.path == self.model)
        if len(together) > 1:
            with lock_folder(os.path.dirname(os.path.abspath(self.model))):
                self._refuse_files_of_others(together)
                _replace_together(together)
        else:
            for new in together:
                _refuse_changed(new)
                new.rename(new.temporary, new.name)
        for new in self._open:
            active_files().enter_written(new.path)
            self.written.append(new.path)

    def _refuse_files_of_others(self, together: Sequence[NewFile]) -> None:
        """Refuse to replace what lies beside a model that is not there: it is of something else.

        It may be of this model where a process was killed, whose leftovers tell.
        """
        folder, name = os.path.split(os.path.abspath(self.model))
        begins = f".{name[:80]}."
        if os.path.lexists(self.model) or any(
            other.startswith(begins) and is_leftover(other)
            and other not in {new.temporary for new in together}
            for other in os.listdir(folder)
        ):  # fmt: skip
            return
        for new in together:
            beside = os.path.join(new.folder.path, new.temporary)
            if os.path.exists(new.path) and not filecmp.cmp(beside, new.path, shallow=False):
                raise TargetRefused(
                    f"{new.path} is there without {self.model}, which it would belong to: move it "
                    "away, or write to another name"
                )


class NewFile(NamedTuple):
    """A file that is written under a temporary name, to be put at ``path``."""

    file: BinaryIO
    folder: OpenFolder
    temporary: str
    name: str
    path: str

    def rename(self, old: str, new: str) -> None:
        """Give a file another name in the folder; an error names the path."""
        with name_path_in_errors(self.path):
            self.folder.replace(old, new)


def _refuse_changed(new: NewFile) -> None:
    """Refuse what has come to the place of a file since it was checked."""
    new.folder.refuse_other()
    check_target(new.path)
    kind = active_files().kinds.get(os.path.abspath(new.path))
    if kind is not None:
        refuse_other_file(new.path, *kind)


@contextmanager
def lock_folder(folder: str | os.PathLike[str], wait: bool = True) -> Iterator[bool]:
    """Keep other processes of serde from putting files in place meanwhile, if there are locks.

    Yields whether it is locked; only where it is not to ``wait`` it matters. It waits seconds, as
    the process that has locked it may be stopped. A forked process leaves the lock to its parent.
    """
    if fcntl is None:
        yield False
        return
    process, number = os.getpid(), os.open(folder, os.O_RDONLY)
    try:
        yield _lock(number, PATIENCE if wait else 0)
    finally:
        try:
            with suppress(OSError):  # by itself: a process that was forked meanwhile has it open
                if os.getpid() == process:
                    fcntl.flock(number, fcntl.LOCK_UN)
        finally:
            try:  # noqa: SIM105  (Ctrl-C in suppress would leave it locked: this waits for itself)
                os.close(number)
            except OSError:  # nothing was written by it
                pass


def _lock(number: int, seconds: float) -> bool:
    """Lock an open folder within so many seconds; whether that was possible."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(PAUSE)
        except OSError:  # a file system without locks
            return False
        else:
            return True


@finish_first
def _replace_together(together: Sequence[NewFile]) -> None:
    """Move what is there away, the model first; then put the new files in place, it last."""
    is_done = False
    for new in together:
        _refuse_changed(new)
    try:
        for new in reversed(together):
            if new.folder.has(new.name):
                new.rename(new.name, new.temporary + BEFORE)
        for new in together:
            new.rename(new.temporary, new.name)
        is_done = True
        _remove_before(together)
    except BaseException:
        _remove_before(together) if is_done else _put_back(together)
        raise


def _put_back(together: Sequence[NewFile]) -> None:
    """Put what was moved away in the place of what has come."""
    for new in reversed(together):  # those in place; the model among them at once
        if not new.folder.has(new.temporary):
            with suppress(FileNotFoundError):
                new.folder.unlink(new.name)
    for new in together:
        if new.folder.has(new.temporary + BEFORE):
            new.folder.replace(new.temporary + BEFORE, new.name)


def _remove_before(together: Sequence[NewFile]) -> None:
    """Remove what was moved away; a signal may interrupt it, after which it is called again."""
    for new in together:
        with suppress(OSError):
            new.folder.unlink(new.temporary + BEFORE)


def _name_temporary(name: str) -> str:
    return f".{name[:80]}.{os.urandom(6).hex()}.part"


def check_target(path: str) -> None:
    """Refuse an output path that cannot be written: a folder, or one in no folder.

    Raises:
        TargetRefused: for a path that is none. PermissionError: where files cannot be made.
    """
    if not path:
        raise UsageError("the name of the file to write is empty")
    check_name(path)
    if os.path.basename(path) in ("", os.curdir, os.pardir):
        raise TargetRefused(f"{path} names a folder: name the file to write")
    try:  # once: another process may replace it meanwhile
        kind = os.stat(path).st_mode
    except OSError:
        kind = stat.S_IFREG  # there is none, or a link to none, which is replaced
    if stat.S_ISDIR(kind):
        raise TargetRefused(f"{path} is a folder: name the file to write")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        is_file = os.path.lexists(folder)
        raise TargetRefused(f"{folder} {'is no folder' if is_file else 'does not exist'}")
    if not stat.S_ISREG(kind):
        raise TargetRefused(f"{path} is not a regular file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "no permission to write in this folder", folder)


def begins_with(*beginnings: bytes) -> Callable[[Path], bool]:
    """Whether a file begins with one of some bytes, as a function of its path."""

    def judge(path: Path) -> bool:
        with path.open("rb") as file:
            return file.read(max(map(len, beginnings))).startswith(beginnings)

    return judge


def refuse_other_file(path: PathLike, is_kind: Callable[[Path], bool], kind: str) -> None:
    """Refuse to replace a file of another kind than what is to be written there.

    Nobody means it who writes over a script or over notes. An empty file may be replaced.

    Raises:
        TargetRefused: naming the file.
    """
    check_name(path)
    active_files().kinds[os.path.abspath(path)] = is_kind, kind
    before, after = None, _identify(path)
    while after is not None and after != before:  # another process may replace it meanwhile
        with suppress(FileNotFoundError):
            if is_kind(Path(path)):
                return
        before, after = after, _identify(path)
    if after is not None:
        raise TargetRefused(
            f"{os.fspath(path)} is there, and is no {kind}: write to another name, or move it away"
        )


def _identify(path: PathLike) -> tuple[int, int] | None:
    """What tells a file with content from any other, None where there is none."""
    with suppress(OSError):
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size:
            return status.st_dev, status.st_ino
    return None


def is_leftover(name: str) -> bool:
    """Whether a file is one of a conversion that is going on, or was killed."""
    return LEFTOVER.fullmatch(name) is not None


class Sources:
    """Files that parts are copied from; those in use stay open until the block ends."""

    def __init__(self) -> None:
        self._open: dict[tuple[object, ...], BinaryIO] = {}
        self._files = ExitStack()

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *error: object) -> None:
        self._files.close()

    def copy(self, where: FileSlice, out: BinaryIO) -> None:
        """Append a part of a file to ``out`` without taking it into memory."""
        key = (where.path, where.file)
        source = self._open.get(key)
        if source is None:
            if len(self._open) >= MOST_OPEN:
                self._files.close()
                self._open.clear()
            source = self._open[key] = self._files.enter_context(open_part(where))
        left, offset = where.nbytes, where.offset
        if left > SMALL:
            left, offset = _copy_by_system(source, out, left, offset)
        source.seek(offset)
        while left:
            chunk = source.read(min(CHUNK, left))
            if not chunk:
                raise MalformedFile(where.path, SHORTER)
            out.write(chunk)
            left -= len(chunk)


def _copy_by_system(source: BinaryIO, out: BinaryIO, left: int, offset: int) -> tuple[int, int]:
    """Have the kernel copy ``left`` bytes from ``offset``; return what it left to do, and where."""
    out.flush()
    with suppress(OSError):  # another file system
        while left and hasattr(os, "copy_file_range"):
            done = os.copy_file_range(source.fileno(), out.fileno(), left, offset_src=offset)
            if done == 0:
                break
            left, offset = left - done, offset + done
    out.seek(0, os.SEEK_END)
    return left, offset
