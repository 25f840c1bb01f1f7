"""Errors of the system with the file in them: it tells the path only where one is opened."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, TypeVar

Result = TypeVar("Result")
OF_DISK = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT})


@contextmanager
def name_path_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Enter ``path``, which people know, into errors of the system: not a temporary name."""
    try:
        yield
    except OSError as error:
        _name_path(error, path)
        raise


def _name_path(error: OSError, path: str | os.PathLike[str]) -> None:
    error.filename = os.fspath(path)
    del error.filename2


def raise_of_system(error: BaseException) -> None:
    """Raise an error of a library that reads a file where the system refused, or a disk failed.

    Else the content of a file is at fault: libraries raise errors without a number, and a damaged
    file has them seek where there is nothing. ``zipfile`` calls no zip what it cannot read.
    """
    hidden = error.__context__
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        raise error
    if isinstance(hidden, OSError) and hidden.errno in OF_DISK:
        raise hidden


def report_path(method: Callable[..., Result]) -> Callable[..., Result]:
    """Have the errors of a method of an open file name what it was opened with."""

    def call(self: NamedFile, *arguments: Any) -> Result:
        try:
            return method(self, *arguments)
        except OSError as error:
            _name_path(error, self.name)  # type: ignore[arg-type]
            raise

    return call


def stat_open(file: IO[bytes]) -> os.stat_result:
    """What the system knows of an open file."""
    with name_path_in_errors(file.name):
        return os.fstat(file.fileno())


class NamedFile(io.FileIO):
    """A regular file that is read; all of its errors name it."""

    close = report_path(io.FileIO.close)
    read = report_path(io.FileIO.read)
    readall = report_path(io.FileIO.readall)
    readinto = report_path(io.FileIO.readinto)
    seek = report_path(io.FileIO.seek)
    tell = report_path(io.FileIO.tell)

    def seekable(self) -> bool:
        """Whether it can be sought in, as any regular file can, even while its disk fails."""
        return True
