"""What a command does on the signals that ask it to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from serde.io.user_code import Terminated

END = 128  # the exit code of a process that a signal ended, less the signal's number
PATIENCE = 0.02  # seconds until a signal is sent again


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block by SystemExit, so that it cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in signals}
    show_lost = sys.unraisablehook
    for number in (n for n in signals if before[n] == signal.SIG_DFL):
        signal.signal(number, _exit)
    sys.unraisablehook = partial(_send_again, show_lost)
    try:
        yield
    finally:
        sys.unraisablehook = show_lost
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one, which a terminal sends it as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _send_again(show: Callable[[Any], Any], lost: Any) -> None:
    """Send a signal again that came where Python drops errors: in ``__del__``, or a callback."""
    error = lost.exc_value
    if not isinstance(error, (KeyboardInterrupt, Terminated)):
        show(lost)
        return
    number = int(error.code or 0) - END if isinstance(error, Terminated) else signal.SIGINT
    again = threading.Timer(PATIENCE, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _exit(number: int, frame: object) -> None:
    raise Terminated(END + number)
