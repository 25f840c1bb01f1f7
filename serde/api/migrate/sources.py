"""Which models are in folders, globs, archives and URLs, and where each result goes."""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from serde.api.contained_models import is_archived, list_archived, list_contained
from serde.api.migrate.own_results import JOURNAL, OwnResults
from serde.api.migrate.transfers import stamp_entry
from serde.api.model_names import GZIP, is_ambiguous, is_candidate, list_suffixes, select_candidates
from serde.errors import MalformedFile, SerdeError, UsageError, show_error
from serde.io.command_files import stamp_file
from serde.io.filesystems import is_url, is_web, list_folder, local_path, open_filesystem
from serde.io.sniff import ARCHIVES, read_head, read_regular, split_member
from serde.plugins import Format, format_of, name_other

ListModels = Callable[[str], list[str]]
SLASH = rf"[/{re.escape(os.sep)}]"
ANY_FOLDERS = re.compile(rf"(?:(?<={SLASH})|^)(?:\*\*{SLASH})*\*\*(?:{SLASH}|$)")
SYMBOL = "-symbol.json"  # what follows a prefix
PARAMETERS, PACKED = (".params", ".states"), (".gz", ".bz2", ".xz", ".zst")
NO_MODEL = "an archive without a model"
NO_SYMBOL = "parameters without a symbol: save the network's symbol as well"
NOT_LOOKED_INTO = "its content is not looked into at a URL: name it"
MOST_JOURNAL = 1 << 28  # bytes
WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class ModelSource:
    """A model to convert: where it is, and its name below what the user gave.

    ``siblings`` are the files of its folder that may belong to it; ``stamp`` tells whether the
    model, and at a URL they, have changed.
    """

    path: str
    relative: str
    stamp: str = ""
    siblings: tuple[str, ...] = ()

    @property
    def beside(self) -> frozenset[str]:
        """The names of its siblings."""
        return frozenset(path.rpartition("/")[2].rpartition(os.sep)[2] for path in self.siblings)

    @property
    def is_remote(self) -> bool:
        """Whether it is to be fetched first."""
        return is_url(self.path)


def true_url(url: str) -> str:
    """A URL as its file system writes it."""
    system, path = open_filesystem(url)
    return str(system.unstrip_protocol(path))


def find_models(
    sources: Iterable[str], outside: str = "", skipped: dict[str, str] | None = None,
    list_models: ListModels = list_contained,
) -> list[ModelSource]:  # fmt: skip
    """The models of all sources, each once; ``outside`` is a folder that is not looked into.

    Files that may be meant for models, and are not taken, are entered into ``skipped`` with the
    reason. ``list_models`` lists those of an archive.

    Raises:
        MalformedFile: where nothing is at a path. UsageError: where no source holds a model.
    """
    paths = [local_path(os.fspath(s)) for s in sources]
    models: dict[str, ModelSource] = {}
    skipped = {} if skipped is None else skipped
    for source in paths:
        if is_url(source):
            sources_there = _find_at_url(source, outside, skipped)
        else:
            sources_there = _find_local(source, outside, skipped, list_models)
        for model in sources_there:
            models.setdefault(model.path, model)
    for path in models.keys() & skipped.keys():
        del skipped[path]
    if not models:
        raise UsageError(
            f"no models in {', '.join(paths)}: they end with {', '.join(list_suffixes())}"
        )
    return list(models.values())


def _find_local(
    source: str, outside: str, skipped: dict[str, str], list_models: ListModels
) -> Iterator[ModelSource]:
    if not os.path.lexists(source) and WILDCARD.search(source):
        fixed = source[: WILDCARD.search(source).start()]  # type: ignore[union-attr]
        root, paths = os.path.dirname(fixed) or ".", sorted(_list_matches(source))
        if not paths:
            raise MalformedFile(source, "no file matches")
    elif os.path.isdir(source):
        root, paths = source, [source]
    elif os.path.lexists(source):  # what it leads to may be missing
        yield from _local_models(source, os.path.dirname(source) or ".", list_models)
        return
    elif os.path.exists(f"{source}{SYMBOL}"):
        yield _local_model(f"{source}{SYMBOL}", os.path.dirname(source) or ".")
        return
    elif split_member(source)[1]:
        yield _local_model(source, os.path.dirname(split_member(source)[0]) or ".")
        return
    else:
        raise MalformedFile(source, "there is no such file, folder or prefix")
    apart = os.path.realpath(outside) if outside else None
    for path in paths:
        for name in _walk(path, apart, skipped):
            if not is_ambiguous(name) or _matches(name):
                yield from _local_models(name, root, list_models)
            elif name.lower().endswith(ARCHIVES):
                skipped[os.path.abspath(name)] = NO_MODEL


def _list_matches(pattern: str) -> set[str]:
    """The paths that a pattern matches; ``**`` follows no links, as some lead back."""
    above, *below = ANY_FOLDERS.split(pattern, maxsplit=1)
    tops = {*glob.glob(above)} if above or not below else {os.curdir}
    if not below or not below[0]:  # folders are looked into
        return tops
    matches = set[str]()
    for folder, folders, _ in chain.from_iterable(map(os.walk, tops)):
        folders[:] = [f for f in folders if f[0] != "."]
        matches |= _list_matches(os.path.join(glob.escape(folder), below[0]))
    return matches


def _walk(path: str, outside: str | None, skipped: dict[str, str]) -> Iterator[str]:
    """The models at a path. What cannot be looked into is among them, as each has to be told of."""
    if not os.path.isdir(path) and is_candidate(path):
        yield path
    closed: list[OSError] = []
    root = os.path.abspath(path)
    results = OwnResults(root, os.path.realpath(path) == outside)
    for above in map(str, Path(root).parents):
        results.enter(above, _read_journal(os.path.join(above, JOURNAL)))
    for folder, folders, files in os.walk(path, onerror=closed.append):
        if JOURNAL in files:
            results.enter(os.path.abspath(folder), _read_journal(os.path.join(folder, JOURNAL)))
        files = [f for f in files if not results.has(os.path.abspath(os.path.join(folder, f)))]
        others = {**dict.fromkeys(_list_lone(files), NO_SYMBOL), **_name_others(folder, files)}
        skipped |= {os.path.abspath(os.path.join(folder, f)): others[f] for f in sorted(others)}
        folders[:] = sorted(
            f for f in folders
            if f[0] != "." and os.path.realpath(os.path.join(folder, f)) != outside
        )  # fmt: skip
        yield from (os.path.join(folder, f) for f in select_candidates(sorted(files)))
    yield from (error.filename for error in closed)


def _read_journal(path: str) -> str:
    try:
        return read_regular(path, MOST_JOURNAL).decode("utf-8", "replace")
    except (OSError, SerdeError):
        return ""


def _list_lone(files: Sequence[str]) -> Iterator[str]:
    """The parameters in a folder that no model of it reads."""
    models = [f for f in select_candidates(files) if not f.lower().endswith(ARCHIVES)]
    symbols = [f for f in models if not is_ambiguous(f)] or models
    for name in sorted(files):
        is_read = len(symbols) == 1 or any(name.startswith(stem_of(m)) for m in models)
        if name.lower().endswith(PARAMETERS) and not is_read:
            yield name


def _name_others(folder: str, files: Sequence[str]) -> dict[str, str]:
    """What formats tell of the files in a folder that are none of theirs, such as pickles."""
    others: dict[str, str] = {}
    candidates = {*select_candidates(files)}
    for name in files:
        is_packed = name.lower().endswith(PACKED) and ".tar." not in name.lower()
        if not is_packed and name not in candidates and not name.lower().endswith(PARAMETERS):
            with suppress(OSError, SerdeError):  # what cannot be read is no model
                reason = name_other(name, read_head(os.path.join(folder, name)))
                others |= {name: reason} if reason else {}
    return others


def _matches(path: str) -> bool:
    """Whether a file is a model, as far as it can be told."""
    try:
        if is_archived(path):
            return any(not is_ambiguous(name) for name in list_archived(path))
        return format_of(Path(path)).is_read
    except SerdeError:
        return not os.path.exists(path)
    except OSError:
        return True


def _local_models(path: str, root: str, list_models: ListModels) -> Iterator[ModelSource]:
    """The model of a file; of an archive that holds several, each."""
    absolute = os.path.abspath(path)
    try:
        models = list_models(absolute)
    except (OSError, SerdeError):  # told of where it is read
        models = [absolute]
    for model in models:
        yield _local_model(path + model.removeprefix(absolute), root)


def _local_model(path: str, root: str) -> ModelSource:
    file, member = split_member(path)
    absolute, relative = os.path.abspath(file), os.path.relpath(file, root)
    siblings = tuple(_find_siblings(absolute))
    return _name_member(ModelSource(absolute, relative, stamp_file(absolute), siblings), member)


def _find_siblings(path: str) -> Iterator[str]:
    """The files beside a model whose names begin like its own, and that are no models."""
    folder, name = os.path.split(path)
    for other in list_beginning(folder, stem_of(name)):
        if not is_candidate(other) or is_ambiguous(other):
            yield os.path.join(folder, other)


def list_beginning(folder: str, stem: str) -> Iterator[str]:
    """The names in a folder that begin with ``stem``."""
    names = _list_folder(folder, stamp_file(folder))
    for name in islice(names, bisect_left(names, stem), None):
        if not name.startswith(stem):
            return
        yield name


@lru_cache(1)
def _list_folder(folder: str, stamp: str) -> list[str]:
    """The names in a folder, sorted; ``stamp`` is that of the folder, which may have changed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _find_at_url(source: str, outside: str, skipped: dict[str, str]) -> Iterator[ModelSource]:
    url, member = split_member(source)
    for model in _find_remote(url, outside, skipped):
        yield _name_member(model, member)


def _name_member(source: ModelSource, member: str) -> ModelSource:
    """A model in an archive, which is below a folder of the archive's name."""
    if not member:
        return source
    relative = f"{source.relative}/{member.replace(':', '/')}"
    return replace(source, path=f"{source.path}:{member}", relative=relative)


def _find_remote(source: str, outside: str, skipped: dict[str, str]) -> Iterator[ModelSource]:
    system, path = open_filesystem(source)
    results = OwnResults(system.unstrip_protocol(path.rstrip("/")))
    try:
        if WILDCARD.search(path):
            entries = system.glob(path, detail=True)
            root = path[: WILDCARD.search(path).start()].rpartition("/")[0]  # type: ignore[union-attr]
        elif not _is_page_of_model(system, path) and system.isdir(path):
            entries, root = system.find(path, detail=True), path.rstrip("/")
        else:
            path = next((p for p in (path, f"{path}{SYMBOL}") if system.exists(p)), "")
            if not path:
                raise MalformedFile(source, "there is nothing at this URL")
            entries, root = {path: system.info(path)}, path.rpartition("/")[0]
        for name in entries:
            if name.endswith(f"/{JOURNAL}"):
                text = system.cat_file(name).decode("utf-8", "replace")
                results.enter(system.unstrip_protocol(name.rpartition("/")[0]), text)
        for name in sorted(n for n in entries if not results.has(system.unstrip_protocol(n))):
            is_sure = is_candidate(name) and not is_ambiguous(name)
            is_file = entries[name].get("type") == "file"
            is_apart = is_file and not _is_below(name, outside, system)
            if is_apart and (is_sure or len(entries) == 1):
                yield _remote_model(system, name, root, entries[name])
            elif is_apart and name.lower().endswith(ARCHIVES):
                skipped[system.unstrip_protocol(name)] = NOT_LOOKED_INTO
    except (SerdeError, KeyboardInterrupt):
        raise
    except Exception as error:  # of any driver
        raise SerdeError(f"{source}: {show_error(error)}") from error


def _is_page_of_model(system: Any, path: str) -> bool:
    """Whether HTTP has a file of this name, which would be read as a page to look for links."""
    return is_web(system) and is_candidate(path) and system.exists(path)


def _is_below(name: str, outside: str, system: Any) -> bool:
    """Whether a file is in the folder that results are written to."""
    if not is_url(outside):
        return False
    folder = str(system._strip_protocol(outside)).rstrip("/")
    return name.startswith(f"{folder}/")


def _remote_model(system: Any, name: str, root: str, entry: dict[str, Any]) -> ModelSource:
    relative = name.removeprefix(root).lstrip("/") or name.rpartition("/")[2]
    siblings = {e["name"]: stamp_entry(e) for e in _files_beside(system, name)}
    stamp = "|".join([stamp_entry(entry), *(f"{n}-{mark}" for n, mark in siblings.items())])
    urls = tuple(map(system.unstrip_protocol, siblings))
    return ModelSource(system.unstrip_protocol(name), relative, stamp, urls)


def _files_beside(system: Any, name: str) -> Iterator[dict[str, Any]]:
    """The files of a folder that a model may need: those that begin like it, or all but models."""
    folder, _, base_name = name.rpartition("/")
    entries = {e["name"]: e for e in list_folder(system, folder) if e["type"] == "file"}
    files = sorted(entries)
    models = [f for f in files if is_candidate(f) and not is_ambiguous(f)]
    stem = stem_of(base_name)
    for path in files:
        base = path.rpartition("/")[2]
        if path != name and path not in models and (len(models) == 1 or base.startswith(stem)):
            yield entries[path]


def stem_of(name: str) -> str:
    """The name of a model's file without what tells its format."""
    bare = name[: -len(GZIP)] if name.lower().endswith(GZIP) else name
    for suffix in sorted(list_suffixes(), key=len, reverse=True):
        if bare.lower().endswith(suffix) and len(bare) > len(suffix):
            return bare[: -len(suffix)]
    return name


def plan_targets(models: Sequence[ModelSource], into: Format) -> dict[ModelSource, str]:
    """The path of each result, below the folder of results.

    Of models of one folder that differ in their formats, or of names that some file systems take
    for one, the first has its own name, others those of their files with another ending.

    Raises:
        UsageError: where two models would write one file.
    """
    planned: dict[str, ModelSource] = {}
    targets: dict[ModelSource, str] = {}
    for model in models:
        folder, name = os.path.split(model.relative.replace("\\", "/"))
        stem, suffix = stem_of(name), into.suffixes[0]
        names = chain((stem, name), (f"{name}-{number}" for number in count(2)))
        for target in (_plan_target(folder, n + suffix) for n in names):
            other = planned.setdefault(_fold_name(target), model)
            if other is model:
                break
            is_beside = os.path.dirname(other.path) == os.path.dirname(model.path)
            if targets[other] == target and not is_beside:
                raise UsageError(
                    f"{other.path} and {model.path} would both be written to {target}: give the "
                    "folder that holds both, or migrate them to two folders"
                )
        targets[model] = target
    return targets


def _fold_name(name: str) -> str:
    """What is alike of two names that lead to one file on systems that do not tell them apart."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _plan_target(folder: str, name: str) -> str:
    target = os.path.normpath(os.path.join(folder, name))
    return os.path.basename(target) if target.startswith("..") else target
