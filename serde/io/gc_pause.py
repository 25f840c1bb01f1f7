"""Python's cycle collector, kept still while large graphs are made.

The collector is one for all threads: it is off while any of them pauses it, and as it was before
once none does. A forked process, which has the thread that forked and no other, goes on with the
pauses of that one.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """How many blocks, of all threads, pause the collector."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a collection inside may run code that converts
        self.count = 0
        self.was_enabled = False
        self.of_thread = threading.local()  # ``count``: the pauses of this thread

    def add(self, count: int) -> None:
        """Count pauses of this thread; the first stops the collector, after the last it goes on."""
        if not count:
            return
        self.of_thread.count = self.count_own() + count
        with self.lock:
            if self.count == 0:
                self.was_enabled = gc.isenabled()
            self.count += count
            if self.count > 0:
                gc.disable()
            elif self.was_enabled:
                self._resume()

    def _resume(self) -> None:
        gc.enable()
        self.was_enabled = False

    def keep_own(self) -> None:
        """Forget the pauses of other threads, which a forked process does not have."""
        self.lock, self.count = threading.RLock(), self.count_own()
        if not self.count and self.was_enabled:
            self._resume()

    def count_own(self) -> int:
        """The pauses of this thread."""
        return getattr(self.of_thread, "count", 0)


_pauses = _Pauses()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_pauses.keep_own)


@contextmanager
def pause_collector() -> Iterator[None]:
    """Let the collector rest in the block, or the decorated function.

    A graph is a tree: it holds no cycles, yet growing it would have the collector walk all of it
    again and again (a third of the time that 100,000 nodes take).
    """
    _pauses.add(1)
    try:
        yield
    finally:
        _pauses.add(-1)


@contextmanager
def resume_collector() -> Iterator[None]:
    """End the pauses of this thread in the block, as where other code runs: verification, say."""
    count = _pauses.count_own()
    _pauses.add(-count)
    try:
        yield
    finally:
        _pauses.add(count)
