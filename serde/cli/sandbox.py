"""The ``serde`` command in a process of its own, with limits, for files that nobody vouches for.

A crash in a library that reads them (protobuf, onnx's shape inference) ends that process only.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from serde.cli.context import LIMITED
from serde.errors import MalformedFile
from serde.io.child_process import (
    FILE_SIZE,
    describe_crash,
    end_with_parent,
    limit_process,
    run_child,
)

SECONDS, MEMORY = 600, 8192  # allowed unless told otherwise; MiB, mapped files not counted
LEAST_MEMORY = 256  # MiB that the libraries take
CPU_TIME = getattr(signal, "SIGXCPU", 0)  # ends a process that takes too much of it
# -I: nothing is imported from the folder it is run in, nor as the environment says.
START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from serde.cli import commands, sandbox; sandbox.begin(commands.main)"
)


def run_limited(
    arguments: Sequence[str], source: str, seconds: int = SECONDS, memory: int = MEMORY,
    file_size: int = FILE_SIZE,
) -> int:  # fmt: skip
    """Run ``serde`` with ``arguments`` in a child process; return its exit code.

    What it prints goes where this process prints. It may take ``seconds``, of each processor too,
    write files of ``file_size`` MiB, and on Linux take ``memory`` MiB; there it ends with this
    process. ``source`` is the file it reads.

    Raises:
        MalformedFile: naming ``source``, where the process crashes or takes too long.
    """
    sys.stdout.flush()
    limits = [str(n) for n in (os.getpid(), memory, max(1, int(seconds)), file_size)]
    folder = str(Path(__file__).resolve().parents[2])  # where this very package is
    try:
        code, _ = run_child(
            [sys.executable, "-I", "-c", START, folder, *limits, *arguments], seconds
        )
    except TimeoutError as error:
        raise MalformedFile(source, f"{error}: --max-seconds allows more") from None
    if code == -CPU_TIME:
        raise MalformedFile(source, "it took too much processor time: --max-seconds allows more")
    if code < 0:
        raise MalformedFile(source, f"reading it crashed ({describe_crash(code)})")
    return code


def begin(command: Callable[..., Any]) -> None:
    """Become ``command``, the ``serde`` command, within the limits told by the first arguments."""
    parent, *limits = (int(sys.argv.pop(1)) for _ in range(4))
    end_with_parent(parent)
    limit_process(*limits)
    try:
        command(prog_name="serde", obj=LIMITED)
    except MemoryError:  # with none left to report it in the ordinary way
        os.write(2, b"serde: it takes more memory than there is\n")
        os._exit(1)
