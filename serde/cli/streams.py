"""Sources and results that are no files: ``-`` for the standard streams, and URLs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, TypeVar

import click

from serde.io.copies import copy_stream
from serde.io.sniff import open_uncharged
from serde.io.temporary_folder import TemporaryFolder

STREAM = "-"
Command = TypeVar("Command", bound=Callable[..., Any])


@contextmanager
def open_source(source: str) -> Iterator[str]:
    """The path of a source on this machine, also of the standard input, at a URL, in an archive."""
    from serde.api.contained_models import unpack_model
    from serde.api.remote_files import find_source, is_elsewhere, local_copy
    from serde.api.source_names import leave_out

    if source == STREAM:
        with TemporaryFolder() as folder:
            path = os.path.join(folder, "stdin")
            with leave_out(folder, source):
                copy_stream(sys.stdin.buffer, path, "stdin")
                with unpack_model(path) as model:
                    yield model
        return
    source = find_source(source)
    if is_elsewhere(source):
        with local_copy(source) as path:
            yield path
    else:
        yield source


@contextmanager
def open_target(target: str, to_format: str | None) -> Iterator[str]:
    """The path to write a result to; it goes to the standard output, or its URL, in the end.

    Raises:
        UsageError: where that is a terminal, the format is not named, or there are several files.
    """
    from serde.api.remote_files import open_result
    from serde.api.source_names import find_path, is_remote
    from serde.plugins import get_format

    if is_remote(target):
        with open_result(target) as (path, _):
            yield path
        return
    if target != STREAM:
        yield find_path(target)
        return
    if to_format is None:
        raise click.UsageError("-o - does not tell the format: name it, as with --to onnx")
    if sys.stdout.isatty():
        raise click.UsageError("-o - writes a model to the terminal: redirect it, or name a file")
    with TemporaryFolder() as folder:
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


def with_local_models(*parameters: str) -> Callable[[Command], Command]:
    """Let a command take ``-`` and URLs as models, its ``parameters``, and read copies of these.

    It is given the names that the user knows as ``shown``, by the paths of the copies.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*arguments: Any, **options: Any) -> Any:
            from serde.api.remote_files import fetch_options

            named = [options[p] if isinstance(options[p], tuple) else (options[p],)
                     for p in parameters]  # fmt: skip
            sources = [source for each in named for source in each]
            if sources.count(STREAM) > 1:
                raise click.UsageError("- is the standard input, which holds one model")
            with ExitStack() as stack:
                paths = {source: stack.enter_context(open_source(source)) for source in sources}
                for parameter in parameters:
                    model = options[parameter]
                    local = (*map(paths.get, model),) if isinstance(model, tuple) else paths[model]
                    options[parameter] = local
                shown = {path: source for source, path in paths.items()}
                return command(*arguments, shown=shown, **fetch_options(options, stack))

        return run  # type: ignore[return-value]

    return decorate
