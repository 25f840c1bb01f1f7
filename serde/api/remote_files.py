"""Models at URLs, read and written by fsspec: they are copied to this machine and back."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeVar

from serde.errors import MalformedFile, SerdeError, TargetRefused, Unconvertible, UsageError
from serde.io.command_files import within_command
from serde.io.filesystems import fetch_file, is_url, local_path, name_copy, open_filesystem
from serde.io.provenance import describe_call
from serde.io.sniff import HEAD
from serde.ir.graph import Graph
from serde.passes.copy_weights import copy_weights

Convert = TypeVar("Convert", bound=Callable[..., Any])
FILES = ("params", "other_params", "data", "expected", "backend")  # options that are files
COPYING = frozenset({"import_", "load", "partition"})  # functions that return what reads weights


def find_path(place: Any) -> Any:
    """A URL of this machine's own files as their path, anything else as it is."""
    return local_path(place) if isinstance(place, str) else place


def is_remote(place: Any) -> bool:
    """Whether a source or a target is at a URL that is no path of this machine."""
    return isinstance(place, str) and is_url(local_path(place))


def call_at_urls(
    function: Callable[..., Any], places: Sequence[str], arguments: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Call a function, whose parameters ``places`` are models, on copies of what is at URLs.

    A graph that it returns has its weights in memory. A model in its runtime keeps the copies.
    """
    positional = list_positional(function)[: len(arguments)]
    others = arguments[len(positional) :]
    name, named = function.__name__, {**dict(zip(positional, arguments, strict=False)), **options}
    with within_command() as files, ExitStack() as stack:
        files.call = files.call or describe_call(f"serde.{name}", arguments, options)
        if name == "save":
            return _save_at_url(function, *others, **named)
        urls: dict[str, str] = {}
        for place in named.keys() & set(places):
            url = named[place] = find_path(named[place])
            if is_remote(url):
                named[place] = stack.enter_context(local_copy(url))
                urls[named[place]] = url
        if urls and name in COPYING:
            named["copy"] = True
        named = fetch_options(named, stack)
        leading = [named.pop(parameter) for parameter in positional]
        result = function(*leading, *others, **named)
        for path, url in urls.items():
            name_source(result, path, url)
        if isinstance(result, Graph):
            copy_weights(result)
        elif callable(result):
            weakref.finalize(result, stack.pop_all().close)
    return result


def list_positional(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that take an argument by its place."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, p in signature(function).parameters.items() if p.kind in kinds]


@contextmanager
def local_copy(url: str) -> Iterator[str]:
    """The path of a copy of a model at a URL, with the files beside it that it may need.

    A model in parts is a folder, which is copied whole.

    Raises:
        UsageError: where there are several models.
    """
    from serde.api.migrate.sources import fetch_model, find_models, is_candidate

    with tempfile.TemporaryDirectory(prefix="serde-") as folder:
        copies = os.path.join(folder, "source")
        with leave_out(copies, url):
            if not is_candidate(url) and _fetch_parts(url, os.path.join(folder, "parts")):
                yield os.path.join(folder, "parts")
                return
            models = find_models([url])
            if len(models) > 1:
                names = ", ".join(m.relative for m in models[:4])
                raise UsageError(f"{url} holds {len(models)} models: name one of them: {names}")
            yield fetch_model(models[0], copies)


def _fetch_parts(url: str, folder: str) -> bool:
    """Copy a model in parts, as its manifest names them; whether there is one at the URL."""
    from serde.backends.manifest import NAME, list_files

    system, path = open_filesystem(url.rstrip("/"))
    try:
        is_there = system.isfile(f"{path}/{NAME}")
    except Exception:  # of any driver: what is wrong is told where the model is looked for
        is_there = False
    if not is_there:
        return False
    os.makedirs(folder)
    fetch_file(system, f"{path}/{NAME}", os.path.join(folder, NAME), f"{url}/{NAME}")
    names = list_files(Path(folder)) or {}
    for name in names.keys() - {NAME}:
        fetch_file(system, f"{path}/{name}", os.path.join(folder, name), f"{url}/{name}")
    return bool(names)


def fetch_options(options: Mapping[str, Any], stack: ExitStack) -> dict[str, Any]:
    """Options with the paths of copies in place of the URLs of files."""
    local = {name: find_path(o) if name in FILES else o for name, o in options.items()}
    for name in FILES:
        url: Any = local.get(name)
        if is_remote(url):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="serde-"))
            stack.enter_context(leave_out(folder, url))
            local[name] = os.path.join(folder, name_copy(url))
            system, path = open_filesystem(url)
            fetch_file(system, path, local[name], url)
    return local


@contextmanager
def open_result(target: str) -> Iterator[tuple[str, list[str]]]:
    """A path to write a result to, which is stored at its URL in the end, and what is stored."""
    from serde.api.migrate.sources import store_files

    stored: list[str] = []
    place, _, name = target.rpartition("/")
    system, known = open_filesystem(target)
    with tempfile.TemporaryDirectory(prefix="serde-") as folder:
        path = os.path.join(folder, name)
        if system.isfile(known):  # its head tells a file that may be replaced from any other
            Path(path).write_bytes(system.cat_file(known, 0, HEAD))
        try:
            yield path, stored
        except TargetRefused as error:
            error.args = tuple(str(a).replace(path, target) for a in error.args)
            raise
        stored += store_files(folder, place)


def _save_at_url(save: Callable[..., Any], graph: Graph, path: str, **options: Any) -> list[str]:
    """Save a graph; the files, which are at a URL if ``path`` is one."""
    place = find_path(path)
    if not is_remote(place):
        return save(graph, place, **options)  # type: ignore[no-any-return]
    with open_result(path) as (copy, stored):
        save(graph, copy, **options)
    return stored


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


def name_source(report: Any, path: str, source: str) -> None:
    """Call the source of a report, and the files beside its copy at ``path``, as the user does."""
    for field in ("source", "first", "second", "model"):
        if getattr(report, field, None) == path:
            setattr(report, field, source)
    about = getattr(report, "provenance", None)
    if about is not None and path not in (source, find_path(source)):
        place = f"{source.rpartition('/')[0]}/" if is_remote(source) else ""
        about.relocate(os.path.dirname(path), place)


def at_urls(convert: Convert) -> Convert:
    """Let a conversion read and write at URLs; the report has these for the files."""

    @wraps(convert)
    def convert_copies(source: Any, target: Any, **options: Any) -> Any:
        source_path, target_path = find_path(source), find_path(target)
        with within_command() as files, ExitStack() as stack:
            shown = {k: v for k, v in options.items() if v is not None and k != "progress"}
            if any(map(is_remote, (source, target, *(options.get(name) for name in FILES)))):
                files.call = files.call or describe_call("serde.convert", (source, target), shown)
            options = fetch_options(options, stack)
            if not is_remote(source_path):
                return _convert_to(convert, source_path, target_path, options)
            path = stack.enter_context(local_copy(source))
            report = _convert_to(convert, path, target_path, options)
            name_source(report, path, source)
        return report

    return convert_copies  # type: ignore[return-value]


def _convert_to(convert: Callable[..., Any], source: Any, target: Any, options: Any) -> Any:
    """Convert, and store the result where its target is a URL."""
    if not is_remote(target):
        return convert(source, target, **options)
    with open_result(target) as (path, stored):
        report = convert(source, path, **options)
        report.provenance.relocate(os.path.dirname(path), f"{target.rpartition('/')[0]}/")
    report.files, report.target = stored, target
    return report
