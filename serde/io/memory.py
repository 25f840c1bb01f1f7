"""How much memory a process that runs a model may take."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from serde.errors import UsageError

MOST = "SERDE_MAX_MEMORY"  # names the MiB in the environment
AVAILABLE = re.compile(r"MemAvailable:\s+(\d+) kB")
GROUPS = (  # of processes that share a limit: its files, of both versions of Linux's cgroups
    "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
)  # fmt: skip
LEAST = 1024  # MiB that frameworks reserve, whatever they take


def find_memory_limit() -> int | None:
    """The MiB that a process may take: as the environment says, or else those that are free.

    Raises:
        UsageError: where the environment has no number of them.
    """
    said = os.environ.get(MOST)
    if not said:
        free = find_free_memory()
        return None if free is None else max(free, LEAST)
    if not said.isdecimal() or not int(said):
        raise UsageError(f"the variable {MOST} is {said!r}: set it to a number of MiB, or unset it")
    return int(said)


def find_free_memory() -> int | None:
    """The MiB that are free on this machine, or that its group of processes may take (Linux)."""
    free = []
    with suppress(OSError):
        match = AVAILABLE.search(Path("/proc/meminfo").read_text("ascii"))
        free += [int(match[1]) >> 10] if match else []
    for path in GROUPS:
        with suppress(OSError, ValueError):  # no such group, or one without a limit
            free.append(int(Path(path).read_text("ascii")) >> 20)
    return min(free, default=None)
