"""Models at URLs, read and written by fsspec, and in archives: what is read is a copy here."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeVar

from serde.api.contained_models import find_single_model, is_archived, unpack_model
from serde.api.source_names import find_path, is_remote, leave_out, name_source
from serde.errors import TargetRefused, UsageError
from serde.io.command_files import within_command
from serde.io.filesystems import fetch_file, name_copy, open_filesystem
from serde.io.provenance import describe_call
from serde.io.sniff import HEAD
from serde.io.temporary_folder import TemporaryFolder
from serde.ir.graph import Graph
from serde.passes.copy_weights import copy_weights

Convert = TypeVar("Convert", bound=Callable[..., Any])
FILES = ("params", "other_params", "data", "expected", "backend")  # options that are files
COPYING = frozenset({"import_", "load", "partition"})  # functions that return what reads weights


def find_source(place: Any) -> Any:
    """A source as ``find_path`` has it; of a folder that is no model, the only one in it."""
    path = find_path(place)
    is_folder = isinstance(path, (str, os.PathLike)) and os.path.isdir(path)
    return (find_single_model(os.fspath(path)) if is_folder else None) or path


def is_elsewhere(place: Any) -> bool:
    """Whether a source is read as a copy: at a URL, or in an archive that no format reads."""
    return is_remote(place) or is_archived(place)


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
            models = named[place]
            is_list = isinstance(models, (list, tuple))
            local = [_localize(m, urls, stack) for m in (models if is_list else [models])]
            named[place] = local if is_list else local[0]
        if urls and name in COPYING:
            named["copy"] = True
        files_read = [named.get(option) for option in FILES]
        named = fetch_options(named, stack)
        leading = [named.pop(parameter) for parameter in positional]
        result = function(*leading, *others, **named)
        for path, url in urls.items():
            name_source(result, path, url)
        is_copy = bool(urls) or any(is_remote(each) for each in files_read)
        if is_copy and isinstance(result, Graph):
            copy_weights(result.constants())
        elif is_copy and name == "inspect":
            copy_weights(result.weights)
        elif urls and callable(result):
            weakref.finalize(result, stack.pop_all().close)
    return result


def _localize(place: Any, urls: dict[str, str], stack: ExitStack) -> Any:
    """A source on this machine; where it is a copy, ``urls`` gets what it is a copy of."""
    source = find_source(place)
    if not is_elsewhere(source):
        return source
    path = stack.enter_context(local_copy(source))
    urls[path] = os.fspath(source)
    return path


def list_positional(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters that take an argument by its place."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, p in signature(function).parameters.items() if p.kind in kinds]


@contextmanager
def local_copy(source: Any) -> Iterator[str]:
    """The path of a copy of a model at a URL or in an archive, with the files beside it.

    A model in parts is a folder, which is copied whole.

    Raises:
        UsageError: where there are several models.
    """
    from serde.api.migrate.sources import find_models
    from serde.api.migrate.transfers import fetch_model
    from serde.api.model_names import is_candidate

    if not is_remote(source):
        with unpack_model(os.fspath(source)) as path:
            yield path
        return
    url = source
    with TemporaryFolder() as folder:
        copies = os.path.join(folder, "source")
        with leave_out(copies, url):
            if not is_candidate(url) and _fetch_parts(url, os.path.join(folder, "parts")):
                yield os.path.join(folder, "parts")
                return
            models = find_models([url])
            if len(models) > 1:
                names = ", ".join(m.relative for m in models[:4])
                raise UsageError(f"{url} holds {len(models)} models: name one of them: {names}")
            with unpack_model(fetch_model(models[0].path, models[0].siblings, copies)) as path:
                yield path


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
            folder = stack.enter_context(TemporaryFolder())
            stack.enter_context(leave_out(folder, url))
            local[name] = os.path.join(folder, name_copy(url))
            system, path = open_filesystem(url)
            fetch_file(system, path, local[name], url)
    return local


@contextmanager
def open_result(target: str) -> Iterator[tuple[str, list[str]]]:
    """A path to write a result to, which is stored at its URL in the end, and what is stored."""
    from serde.api.migrate.transfers import store_files

    stored: list[str] = []
    place, _, name = target.rpartition("/")
    system, known = open_filesystem(target)
    with TemporaryFolder() as folder:
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


def at_urls(convert: Convert) -> Convert:
    """Let a conversion read and write at URLs; the report has these for the files."""

    @wraps(convert)
    def convert_copies(source: Any, target: Any, **options: Any) -> Any:
        source_path, target_path = find_source(source), find_path(target)
        with within_command() as files, ExitStack() as stack:
            shown = {k: v for k, v in options.items() if v is not None and k != "progress"}
            if any(map(is_remote, (source, target, *(options.get(name) for name in FILES)))):
                files.call = files.call or describe_call("serde.convert", (source, target), shown)
            options = fetch_options(options, stack)
            if not is_elsewhere(source_path):
                return _convert_to(convert, source_path, target_path, options)
            path = stack.enter_context(local_copy(source_path))
            report = _convert_to(convert, path, target_path, options)
            name_source(report, path, os.fspath(source_path))
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
