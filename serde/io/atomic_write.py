"""Writing files so that a failure leaves what was there before."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO, cast

from serde.errors import UsageError
from serde.io.tensor_bytes import open_part
from serde.ir.graph import FileSlice

CHUNK = 1 << 18  # bytes copied at a time where the system cannot copy by itself
SMALL = 1 << 16  # bytes; parts up to this are read and written with those around them
MOST_OPEN = 8  # files


class Replacing:
    """Files written under temporary names, and put in place together when all are complete."""

    def __init__(self, path: str) -> None:
        self.written: list[str] = []
        self._open: list[tuple[BinaryIO, str, str]] = []
        check_target(path)

    def __enter__(self) -> Replacing:
        return self

    def open(self, path: str) -> BinaryIO:
        """Open ``path`` for writing; it appears when the block ends well."""
        check_target(path)
        folder, name = os.path.split(os.path.abspath(path))
        with name_path_in_errors(path):
            number, temporary = tempfile.mkstemp(".part", f".{name[:80]}.", folder)
        _make_readable(number)
        file = cast(BinaryIO, os.fdopen(number, "wb"))
        self._open.append((file, temporary, path))
        return file

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            for file, _, path in self._open:
                with name_path_in_errors(path):
                    file.close()  # which fails where the disk is full
            if kind is None:
                self._put_in_place()
            elif self._open and isinstance(error, OSError) and error.filename is None:
                error.filename = self._open[-1][2]
        finally:
            for file, temporary, _ in self._open:
                with suppress(OSError):
                    file.close()
                with suppress(FileNotFoundError):
                    os.unlink(temporary)

    def _put_in_place(self) -> None:
        for _, temporary, path in self._open:
            with name_path_in_errors(path):
                os.replace(temporary, path)
            self.written.append(path)


def _make_readable(number: int) -> None:
    """Give an open file the rights of a new one, whatever its name leads to by now."""
    if hasattr(os, "fchmod"):
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(number, 0o666 & ~mask)


@contextmanager
def name_path_in_errors(path: str) -> Iterator[None]:
    """Enter ``path``, which people know, into errors of the system: not a temporary name."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def check_target(path: str) -> None:
    """Refuse an output path that cannot be written: a folder, or one in no folder.

    Raises:
        UsageError: for a path that is none. PermissionError: where files cannot be made.
    """
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder: name the file to write")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{folder} does not exist")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"{path} is not a regular file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "no permission to write in this folder", folder)


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
                raise UsageError(f"{where.path} became shorter while it was read")
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


def copy_slice(where: FileSlice, out: BinaryIO) -> None:
    """Append one part of a file to ``out``; for many parts, ``Sources`` keeps the file open."""
    with Sources() as sources:
        sources.copy(where, out)
