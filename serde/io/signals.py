"""What a command does on the signals that ask it to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from serde.io.user_code import Terminated


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block by SystemExit, so that it cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in signals}
    for number in (n for n in signals if before[n] == signal.SIG_DFL):
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one, which a terminal sends it as well."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _exit(number: int, frame: object) -> None:
    raise Terminated(128 + number)
