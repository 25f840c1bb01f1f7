"""Sources and results that are no files: ``-`` for the standard streams, and URLs."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from serde.io.copies import copy_stream
from serde.io.sniff import open_uncharged

STREAM = "-"


@contextmanager
def open_source(source: str) -> Iterator[str]:
    """The path of a source on this machine, where it is the standard input."""
    from serde.api.remote_files import leave_out

    if source == STREAM:
        with tempfile.TemporaryDirectory(prefix="serde-") as folder:
            path = os.path.join(folder, "stdin")
            with leave_out(folder, source):
                copy_stream(sys.stdin.buffer, path, "stdin")
                yield path
    else:
        yield source


@contextmanager
def open_target(target: str, to_format: str | None) -> Iterator[str]:
    """The path to write a result to; what is there in the end goes to the standard output.

    Raises:
        UsageError: where that is a terminal, the format is not named, or there are several files.
    """
    if target != STREAM:
        yield target
        return
    from serde.plugins import get_format

    if to_format is None:
        raise click.UsageError("-o - does not tell the format: name it, as with --to onnx")
    if sys.stdout.isatty():
        raise click.UsageError("-o - writes a model to the terminal: redirect it, or name a file")
    with tempfile.TemporaryDirectory(prefix="serde-") as folder:
        path = os.path.join(folder, f"stdout{get_format(to_format).suffixes[0]}")
        yield path
        files = sorted(os.listdir(folder))
        if len(files) > 1:
            raise click.UsageError(
                f"the result is {len(files)} files, and -o - writes one: name a file"
            )
        with open_uncharged(path) as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def with_local_source(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command that only reads take ``-`` and URLs, as ``path``."""

    @wraps(command)
    def run(*arguments: Any, source: str, **options: Any) -> Any:
        from serde.api.remote_files import find_path, is_remote, local_copy

        copy = local_copy(source) if is_remote(source) else open_source(find_path(source))
        with copy as path:
            return command(*arguments, source=source, path=path, **options)

    return run
