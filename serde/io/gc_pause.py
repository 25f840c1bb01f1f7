"""Python's cycle collector, kept still while large graphs are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_collector() -> Iterator[None]:
    """Let the collector rest in the block, or the decorated function.

    A graph is a tree: it holds no cycles, yet growing it would have the collector walk all of it
    again and again (a third of the time that 100,000 nodes take).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def resume_collector() -> Iterator[None]:
    """Let the collector work in the block, as where other code runs: verification, say."""
    was_on = gc.isenabled()
    gc.enable()
    try:
        yield
    finally:
        if not was_on:
            gc.disable()
