"""What a command does on the signals that ask it to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from serde.io.finish_first import FINISHED_FIRST
from serde.io.user_code import Terminated, is_of_user

END = 128  # the exit code of a process that a signal ended, less the signal's number
IMPORTING = "<frozen importlib._bootstrap>"  # the file of frames that import a module
PATIENCE = 0.02  # seconds until a signal is sent again


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block by SystemExit, so that it cleans up.

    While a module is imported they wait, and so does Ctrl-C: an error there, in the C++ of an
    extension, ends the process at once. So they do while files are put in place or removed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended: list[int] = []  # the signals by which the block ends
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in (*signals, signal.SIGINT)}
    show_lost = sys.unraisablehook
    for number in (n for n in signals if before[n] == signal.SIG_DFL):
        signal.signal(number, partial(_handle, ended, _exit))
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, partial(_handle, ended, signal.default_int_handler))
    sys.unraisablehook = partial(_send_again, ended, show_lost)
    try:
        yield
    finally:
        sys.unraisablehook = show_lost
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one, which a terminal sends it as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _send_again(ended: list[int], show: Callable[[Any], Any], lost: Any) -> None:
    """Send a signal again that came where Python drops errors: in ``__del__``, or a callback.

    An error after a signal is of an object that was not made yet, or is half removed.
    """
    error = lost.exc_value
    if not isinstance(error, (KeyboardInterrupt, Terminated)):
        if not ended:
            show(lost)
        return
    _repeat(int(error.code or 0) - END if isinstance(error, Terminated) else signal.SIGINT)


def _repeat(number: int) -> None:
    """Send this process a signal again, a moment later."""
    again = threading.Timer(PATIENCE, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _handle(
    ended: list[int], handler: Callable[[int, FrameType | None], Any], number: int, frame: Any
) -> None:
    """Handle a signal, once nothing is done that is finished first, but for the user's own."""
    caller: FrameType | None = frame
    while caller is not None and not is_of_user(caller.f_code.co_filename):
        code = caller.f_code
        if code.co_filename == IMPORTING or code in FINISHED_FIRST:
            _repeat(number)
            return
        caller = caller.f_back
    ended.append(number)
    handler(number, frame)


def _exit(number: int, frame: object) -> None:
    raise Terminated(END + number)
