"""Processes with limits of time and memory."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

SET_PARENT_DEATH_SIGNAL = 1  # of Linux's prctl
FILE_SIZE = 1 << 16  # MiB that each file of a process with limits may have
# Begins Python code that runs as a command: the working directory is not to be imported from.
FORGET_FOLDER = "import sys; sys.path[:] = filter(None, sys.path)\n"
PATIENCE = 2  # seconds that a stopped process has to clean up


def child_environment(**changes: str) -> dict[str, str]:
    """The environment of a process whose output is read as UTF-8, whatever the terminal's is."""
    return {**os.environ, "PYTHONIOENCODING": "utf-8", **changes}


def run_child(
    command: Sequence[str], seconds: float, *, text: str | None = None,
    env: Mapping[str, str] | None = None, apart: bool = False,
) -> tuple[int, str]:  # fmt: skip
    """Run a command; return its exit code, and where it runs ``apart`` what it wrote to stderr.

    Args:
        command: the program and its arguments.
        seconds: after these it is stopped.
        text: what it reads as its standard input; the caller's if left out.
        env: its environment.
        apart: whether its output is kept from the terminal, and signals of the terminal from it.

    Raises:
        TimeoutError: where it takes too long.
    """
    child = subprocess.Popen(
        command, env=env, encoding="utf-8", errors="replace",
        stdin=None if text is None else subprocess.PIPE,
        stdout=subprocess.DEVNULL if apart else None,
        stderr=subprocess.PIPE if apart else None, start_new_session=apart,
    )  # fmt: skip
    try:
        _, errors = child.communicate(text, seconds)
    except subprocess.TimeoutExpired:
        _stop(child, apart)
        raise TimeoutError(f"stopped after {seconds:g} seconds") from None
    except BaseException:
        _stop(child, apart)
        raise
    return child.returncode, errors or ""


def _stop(child: subprocess.Popen[str], is_group: bool) -> None:
    """Interrupt the process, so that it removes what it has begun to write; then end it."""
    if os.name == "posix":
        _send(child, signal.SIGINT, is_group)
        with suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE)
        _send(child, signal.SIGKILL, is_group)
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def _send(child: subprocess.Popen[str], number: int, is_group: bool) -> None:
    """Send a signal to a process, or to all that it started."""
    with suppress(ProcessLookupError):
        if is_group:
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)


def describe_crash(code: int) -> str:
    """The signal that ended a process, from its negative exit code."""
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


def limit_process(memory: int, seconds: int | None = None, file_size: int | None = None) -> None:
    """Limit what this process takes, and dump no core.

    Args:
        memory: MiB, mapped files not counted (Linux).
        seconds: of processor time, of each processor (POSIX).
        file_size: MiB of each file that is written (POSIX).
    """
    if os.name != "posix":
        return
    import resource

    _lower_limit(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        _lower_limit(resource.RLIMIT_DATA, memory << 20)
    if seconds is not None:
        _lower_limit(resource.RLIMIT_CPU, seconds * (os.cpu_count() or 1), PATIENCE)
    if file_size is not None:
        _lower_limit(resource.RLIMIT_FSIZE, file_size << 20)


def limit_child(pid: int, memory: int) -> int:
    """Limit the MiB that a process which was started by this one takes; it dumps no core (Linux).

    Mapped files are not counted. Returns its limit, which was lower if this process has such a one.
    """
    if sys.platform == "linux":
        import resource

        with suppress(ProcessLookupError):  # it has ended
            for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, memory << 20)):
                limits = _lower(resource.prlimit(pid, kind), most)
                resource.prlimit(pid, kind, limits)
            return limits[0] >> 20
    return memory


def _lower_limit(kind: int, most: int, patience: int = 0) -> None:
    """Limit what this process takes of a kind; a lower limit that it is under stays."""
    import resource

    resource.setrlimit(kind, _lower(resource.getrlimit(kind), most, patience))


def _lower(limits: tuple[int, int], most: int, patience: int = 0) -> tuple[int, int]:
    """The limits of a process, lowered."""
    import resource

    soft, hard = (n if n != resource.RLIM_INFINITY else math.inf for n in limits)
    return int(min(most, soft)), int(min(most + patience, hard))


def end_with_parent(parent: int) -> None:
    """Have the system kill this process when ``parent``, which started it, ends (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)
