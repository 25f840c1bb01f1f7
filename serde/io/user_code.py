"""Code of users that ends the process or its output: plug-ins, scripts, traced functions, rules.

``sys.exit`` in such code is an error of that code, and no end of a command that says nothing. So is
a standard output that it closes: results could not be printed.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from serde.errors import UsageError

if TYPE_CHECKING:
    from traceback import FrameSummary

STANDARD = os.path.dirname(os.__file__)  # the folder of the standard library
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
BUILTINS = "<"  # what begins the name of a file that is none


class Terminated(SystemExit):
    """The end of the process that a signal asked for."""


@contextmanager
def refuse_exits() -> Iterator[None]:
    """Turn an exit of the code in the block, but not that of a signal, into an error.

    Raises:
        UsageError: with the line of the code that exits; where code closes the standard output.
    """
    was_open = is_output_open()
    try:
        yield
    except Terminated:
        raise
    except SystemExit as error:
        raise UsageError(describe_exit(error)) from error
    if was_open and not is_output_open():
        raise UsageError(
            "the user's code closed the standard output, sys.stdout: let it leave that open"
        )


def is_output_open() -> bool:
    """Whether the standard output takes text."""
    try:
        sys.stdout.flush()
        with suppress(io.UnsupportedOperation):  # it is no file
            os.fstat(sys.stdout.fileno())
    except BrokenPipeError:  # nobody reads it
        return True
    except (OSError, ValueError, AttributeError):
        return False
    return True


def describe_exit(error: SystemExit) -> str:
    """Which line of which code exits, and with what."""
    frames = _list_frames(error)
    outside = [f for f in frames if not _is_standard(f.filename)]
    frame = (outside or frames)[-1] if frames else None
    where = f"{frame.filename}, line {frame.lineno}" if frame is not None else "code of a plug-in"
    shown = "" if error.code is None else repr(error.code)
    return f"{where}: the code exits with SystemExit({shown}). Let it return, or raise an error"


def _list_frames(error: BaseException) -> Sequence[FrameSummary]:
    from traceback import extract_tb

    return extract_tb(error.__traceback__)


def find_user_line(error: BaseException) -> str | None:
    """The line where an error arose, if it is of code that is no installed package."""
    frames = [f for f in _list_frames(error) if not _is_standard(f.filename)]
    is_own = frames and is_of_user(frames[-1].filename)
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if is_own else None


def is_of_user(file: str) -> bool:
    """Whether a file of code is of no installed package, nor of serde."""
    is_installed = _is_standard(file) or file.startswith(PACKAGE) or "-packages" in file
    return not is_installed and os.path.exists(file)


def _is_standard(file: str) -> bool:
    """Whether a file is of Python's own library, where packages may be installed beside it."""
    return file.startswith(BUILTINS) or (file.startswith(STANDARD) and "-packages" not in file)
