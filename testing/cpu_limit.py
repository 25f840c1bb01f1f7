"""A bound on processor time that only work without bound exceeds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

SLOWER = 10  # times, a machine that others use, in a process whose collector has much to visit


@contextmanager
def limit_cpu(seconds: float) -> Iterator[None]:
    """Fail where the block takes more than ten times ``seconds`` of processor time.

    ``seconds`` are ample for the block on an idle machine. What the tests guard against, work
    that grows with a count in a file or with the square of its size, takes minutes.
    """
    start = time.process_time()
    yield
    took = time.process_time() - start
    assert took < SLOWER * seconds, f"{took:.1f} s of processor time, {seconds:g} s are ample"
