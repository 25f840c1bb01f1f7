"""Models at URLs, read and written by fsspec: they are copied to this machine and back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from serde.errors import MalformedFile, SerdeError, TargetRefused, Unconvertible, UsageError
from serde.io.command_files import within_command
from serde.io.provenance import describe_call
from serde.io.sniff import HEAD

if TYPE_CHECKING:
    from serde.api.report import Report

Convert = TypeVar("Convert", bound=Callable[..., Any])


def find_path(place: Any) -> Any:
    """A URL of this machine's own files as their path, anything else as it is."""
    if not isinstance(place, str) or "://" not in place:
        return place
    from serde.api.migrate.sources import local_path

    return local_path(place)


def is_remote(place: Any) -> bool:
    """Whether a source or a target is at a URL that is no path of this machine."""
    return isinstance(place, str) and "://" in str(find_path(place))


@contextmanager
def local_copy(url: str) -> Iterator[str]:
    """The path of a copy of a model at a URL, with the files beside it that it may need.

    Raises:
        UsageError: where there are several models.
    """
    from serde.api.migrate.sources import fetch_model, find_models

    models = find_models([url])
    if len(models) > 1:
        names = ", ".join(m.relative for m in models[:4])
        raise UsageError(f"{url} holds {len(models)} models: name one of them: {names}")
    with tempfile.TemporaryDirectory(prefix="serde-") as folder:
        copies = os.path.join(folder, "source")
        with leave_out(copies, url):
            yield fetch_model(models[0], copies)


@contextmanager
def leave_out(folder: str, source: str) -> Iterator[None]:
    """Let errors name files without a folder that the user does not know, and ``source``."""
    try:
        yield
    except SerdeError as error:
        known = folder + os.sep
        error.args = tuple(
            a.replace(known, "") if isinstance(a, str) and known in a else a for a in error.args
        )
        if isinstance(error, MalformedFile):
            error.path = error.path.replace(known, "")
        if isinstance(error, Unconvertible) and error.report is not None:
            name_source(error.report, os.path.join(folder, "source"), source)
        raise


def name_source(report: Report, path: str, source: str) -> None:
    """Call the source of a report, and the files beside its copy at ``path``, as the user does."""
    report.source = source
    if report.provenance is not None and path not in (source, find_path(source)):
        place = f"{source.rpartition('/')[0]}/" if is_remote(source) else ""
        report.provenance.relocate(os.path.dirname(path), place)


def at_urls(convert: Convert) -> Convert:
    """Let a conversion read and write at URLs; the report has these for the files."""

    @wraps(convert)
    def convert_copies(source: Any, target: Any, **options: Any) -> Any:
        source_path, target_path = find_path(source), find_path(target)
        if not is_remote(source_path) and not is_remote(target_path):
            return convert(source_path, target_path, **options)
        with within_command() as files:
            shown = {k: v for k, v in options.items() if v is not None and k != "progress"}
            files.call = files.call or describe_call("serde.convert", (source, target), shown)
            if not is_remote(source_path):
                return _convert_to(convert, source_path, target_path, options)
            with local_copy(source) as path:
                report = _convert_to(convert, path, target_path, options)
                name_source(report, path, source)
        return report

    return convert_copies  # type: ignore[return-value]


def _convert_to(convert: Callable[..., Any], source: Any, target: Any, options: Any) -> Any:
    """Convert, and store the result where its target is a URL."""
    if not is_remote(target):
        return convert(source, target, **options)
    from serde.api.migrate.sources import store_files

    place, _, name = target.rpartition("/")
    with tempfile.TemporaryDirectory(prefix="serde-") as folder:
        path = os.path.join(folder, name)
        _fetch_head(target, path)  # what tells a file that may be replaced from any other
        try:
            report = convert(source, path, **options)
        except TargetRefused as error:
            error.args = tuple(str(a).replace(path, target) for a in error.args)
            raise
        report.files = [*store_files(folder, place)]
        report.provenance.relocate(folder, f"{place}/")
    report.target = target
    return report


def _fetch_head(url: str, path: str) -> None:
    """Copy the beginning of a file, which tells its format, to ``path``, where there is one."""
    from serde.api.migrate.sources import open_filesystem

    system, place = open_filesystem(url)
    if system.isfile(place):
        with open(path, "wb") as file:
            file.write(system.cat_file(place, 0, HEAD))
