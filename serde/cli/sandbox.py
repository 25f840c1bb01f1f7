"""The ``serde`` command in a process of its own, with limits, for files that nobody vouches for.

A crash in a library that reads them (protobuf, onnx's shape inference) ends that process only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from serde.cli.context import LIMITED
from serde.errors import MalformedFile
from serde.io.child_process import describe_crash, limit_memory, run_child

SECONDS, MEMORY = 600, 8192  # allowed unless told otherwise; MiB, mapped files not counted
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
    try:
        code, _ = run_child([sys.executable, "-c", START, str(memory), *arguments], seconds)
    except TimeoutError as error:
        raise MalformedFile(source, f"{error}: --max-seconds allows more") from None
    if code < 0:
        raise MalformedFile(source, f"reading it crashed ({describe_crash(code)})")
    return code


def begin(command: Callable[..., Any]) -> None:
    """Become ``command``, the ``serde`` command, within the limits told by the first argument."""
    limit_memory(int(sys.argv.pop(1)))
    try:
        command(prog_name="serde", obj=LIMITED)
    except MemoryError:  # with none left to report it in the ordinary way
        os.write(2, b"serde: it takes more memory than there is\n")
        os._exit(1)
