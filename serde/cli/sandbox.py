"""The ``serde`` command in a process of its own, with limits, for files that nobody vouches for.

A crash in a library that reads them (protobuf, onnx's shape inference) ends that process only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from serde.errors import MalformedFile

SECONDS, MEMORY = 600, 8192  # allowed unless told otherwise; MiB, mapped files not counted
LIMITED = "serde.limited"  # what the command's context holds in the child process
PATIENCE = 2  # seconds to clean up in
# The folder the command is run in is not to be imported from.
START = (
    "import sys; sys.path[:] = filter(None, sys.path); "
    "from serde.cli import commands, sandbox; sandbox.begin(commands.main)"
)


def run_limited(
    arguments: Sequence[str], source: str, seconds: float = SECONDS, memory: int = MEMORY
) -> int:
    """Run ``serde`` with ``arguments`` in a child process; return its exit code.

    What it prints goes where this process prints. It may take ``seconds``, and on Linux ``memory``
    MiB; ``source`` is the file it reads.

    Raises:
        MalformedFile: naming ``source``, where the process crashes or takes too long.
    """
    sys.stdout.flush()
    child = subprocess.Popen([sys.executable, "-c", START, str(memory), *arguments])
    try:
        code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        _stop(child)
        reason = f"stopped after {seconds:g} seconds: --max-seconds allows more"
        raise MalformedFile(source, reason) from None
    except BaseException:
        _stop(child)
        raise
    if code < 0:
        with suppress(ValueError):
            raise MalformedFile(source, f"reading it crashed ({signal.Signals(-code).name})")
        raise MalformedFile(source, f"reading it crashed (signal {-code})")
    return code


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Interrupt the process, so that it removes what it has begun to write; then end it."""
    if os.name == "posix":
        child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(PATIENCE)
    child.kill()
    child.wait()


def begin(command: Callable[..., Any]) -> None:
    """Become ``command``, the ``serde`` command, within the limits told by the first argument."""
    memory = int(sys.argv.pop(1)) << 20
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        command(prog_name="serde", obj=LIMITED)
    except MemoryError:  # with none left to report it in the ordinary way
        os.write(2, b"serde: it takes more memory than there is\n")
        os._exit(1)
