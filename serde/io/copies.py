"""Copies of what does not tell how long it is: the standard input, and files at URLs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO

from serde.errors import MalformedFile
from serde.io.named_file import name_path_in_errors

CHUNK = 1 << 20


def limit_copy(folder: str, what: str) -> Callable[[int], None]:
    """A check of how many bytes of ``what`` were copied to a folder: half of its free space.

    What does not end would fill the disk, for all who use it.
    """
    most = shutil.disk_usage(folder).free // 2

    def check(count: int) -> None:
        if count > most:
            raise MalformedFile(
                what,
                f"is longer than {most:,} bytes, half of what is free for temporary files. Store "
                "it in a file, and name that, or set TMPDIR to a folder with more space",
            )

    return check


def copy_stream(source: IO[bytes], path: str, what: str) -> None:
    """Write a stream to a file.

    Raises:
        MalformedFile: where it does not end in time.
    """
    check, count = limit_copy(os.path.dirname(path), what), 0
    with name_path_in_errors(what), Path(path).open("wb") as file:
        while chunk := source.read(CHUNK):
            count += len(chunk)
            check(count)
            file.write(chunk)
