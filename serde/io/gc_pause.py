"""Python's cycle collector, kept still while large graphs are made.

The collector is one for all threads: it is off while any of them pauses it, and as it was before
once none does. A forked process, which has the thread that forked and no other, goes on with the
pauses of that one.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class _Block:
    """A block of a thread that pauses the collector."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.is_over = False


class _Pauses:
    """The blocks, of all threads, that pause the collector.

    An interrupt may come between any two steps here. Each call can be made again, and then does
    what the interrupted one has left.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a collection inside may run code that converts
        self.blocks: set[_Block] = set()
        self.was_enabled = False

    def begin(self, blocks: Collection[_Block]) -> None:
        """Let blocks that are not over pause the collector; the first stops it."""
        with self.lock:
            left = [b for b in blocks if not b.is_over]
            if not left:
                return
            if not self.blocks:
                self.was_enabled |= gc.isenabled()
            self.blocks.update(left)
            gc.disable()

    def end(self, blocks: Collection[_Block]) -> None:
        """Let blocks pause the collector no more; after the last it goes on."""
        with self.lock:
            self.blocks.difference_update(blocks)
            if not self.blocks and self.was_enabled:
                gc.enable()
                self.was_enabled = False

    def keep_own(self) -> None:
        """Forget the pauses of other threads, which a forked process does not have."""
        self.lock = threading.RLock()
        self.end(self.blocks.difference(self.list_own()))

    def list_own(self) -> list[_Block]:
        """The blocks of this thread."""
        thread = threading.get_ident()
        return [b for b in self.blocks.copy() if b.thread == thread]


_pauses = _Pauses()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_pauses.keep_own)


@contextmanager
def pause_collector() -> Iterator[None]:
    """Let the collector rest in the block, or the decorated function.

    A graph is a tree: it holds no cycles, yet growing it would have the collector walk all of it
    again and again (a third of the time that 100,000 nodes take).
    """
    block = _Block()
    try:
        _pauses.begin([block])
        yield
    finally:
        block.is_over = True
        try:
            _pauses.end([block])
        finally:  # an interrupt may have ended the first call
            _pauses.end([block])


@contextmanager
def resume_collector() -> Iterator[None]:
    """End the pauses of this thread in the block, as where other code runs: verification, say."""
    blocks = _pauses.list_own()
    try:
        _pauses.end(blocks)
        yield
    finally:
        _pauses.begin(blocks)
