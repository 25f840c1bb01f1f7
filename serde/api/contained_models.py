"""Models in archives and folders, of formats that do not look into these themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from serde.api.model_names import is_ambiguous, select_candidates
from serde.api.source_names import leave_out
from serde.errors import MalformedFile, UsageError
from serde.io.archive import Archive, is_companion, open_archive
from serde.io.sniff import ARCHIVES, may_be_archive, read_head, split_member
from serde.io.temporary_folder import TemporaryFolder
from serde.ir.budget import within_budget
from serde.plugins import installed_formats, list_models

MOST_NAMED = 4  # models that a message names
MOST_NESTED = 16  # archives in each other


def is_archived(place: Any) -> bool:
    """Whether a path is that of an archive, and no format reads it as a model."""
    if not may_be_archive(place):
        return False
    is_member = bool(split_member(os.fspath(place))[1])
    return is_member or not any(f.matches(Path(place)) for f in installed_formats())


def find_single_model(folder: str) -> str | None:
    """The only model in a folder; None if there are others, or the folder is a model itself."""
    path = Path(folder)
    if any(f.matches(path) for f in installed_formats()):
        return None
    from serde.backends.manifest import list_files

    models = list_models(path) if list_files(path) is None else []
    return models[0] if len(models) == 1 else None


def list_archived(path: str) -> list[str]:
    """The files in an archive whose names end like a model; archives in it are among them.

    None of what cannot be read as an archive.
    """
    with _open(path) as archive:
        return select_candidates(_list_files(archive)) if archive is not None else []


def list_contained(path: str, is_inner: bool = False) -> list[str]:
    """The models in an archive as ``unpack_model`` takes them, ``models.zip:net/model.onnx``.

    The path itself where there is one model, or none, or it is no archive. Only files are unpacked
    whose names do not tell, and archives: those in an inner one count as a model each.
    """
    if not path.lower().endswith(ARCHIVES) or not os.path.isfile(path):
        return [path]
    with _open(path) as archive, TemporaryFolder() as folder:
        names = _list_files(archive) if archive is not None else []
        candidates = select_candidates(names)
        if archive is None or len(candidates) < 2:
            return [path]
        models = []
        for name in candidates:
            if is_ambiguous(name) or name.lower().endswith(ARCHIVES):
                archive.extract(name, folder)
                unpacked = os.path.join(folder, name)
                inner = [unpacked] if is_inner else list_contained(unpacked, True)
                if _is_model(unpacked):
                    models += [name + each.removeprefix(unpacked) for each in inner]
            else:
                models.append(name)
    return [f"{path}:{name}" for name in sorted(models)] if len(models) > 1 else [path]


@contextmanager
def unpack_model(path: str, depth: int = 0) -> Iterator[str]:
    """The path of the model in an archive, which is unpacked into a temporary folder.

    Of ``models.zip:net/model.onnx`` it is that file. The path of the archive where no model is in
    it, or a format reads it where it is.

    Raises:
        UsageError: where there are several models, or none of that name. MalformedFile: where it
            cannot be read.
    """
    if not is_archived(path):
        yield path
        return
    archive, member = split_member(path)
    if depth == MOST_NESTED:
        raise MalformedFile(archive, f"more than {depth} archives in each other: unpack some")
    with TemporaryFolder() as folder:
        names = _unpack(archive, folder, member)
        chosen = _find_member(names, member)
        models = [] if chosen else _list_models(names, folder)
        if len(models) == 1 and not member:
            chosen = models[0]
        if chosen:
            inner = os.path.join(folder, chosen) + member[len(chosen) :]
            with leave_out(folder, path, f"{archive}:"), unpack_model(inner, depth + 1) as model:
                yield model
        elif models:
            shown = ", ".join(f"{archive}:{n}" for n in sorted(models)[:MOST_NAMED])
            what = f"no file {member}" if member else f"{len(models)} models"
            raise UsageError(f"{archive} holds {what}: name a model in it: {shown}")
        else:
            yield path


def _unpack(path: str, folder: str, member: str) -> list[str]:
    """Write what a member may be read with below a folder; all files if none is named.

    Their names; none if no file may be a model.
    """
    with _open(path) as archive:
        names = _list_files(archive) if archive is not None else []
        if archive is None or not _select_candidates(names):
            return []
        for name in _list_needed(names, _find_member(names, member)):
            archive.extract(name, folder)
        return names


def _find_member(names: list[str], member: str) -> str:
    """The file that a member names, or is in, as of ``inner.zip:net.onnx``; empty if none is."""
    return next((n for n in names if f"{member}:".startswith(f"{n}:")), "")


def _list_needed(names: list[str], chosen: str) -> list[str]:
    """The files of the folder of one, and below, but other models; all where none is chosen."""
    if not chosen:
        return names
    folder = chosen[: chosen.rfind("/") + 1]
    others = {n for n in select_candidates(names) if not is_ambiguous(n)} - {chosen}
    return [n for n in names if n.startswith(folder) and n not in others]


def _list_models(names: list[str], folder: str) -> list[str]:
    """The models among files that are unpacked below a folder."""
    return [n for n in _select_candidates(names) if _is_model(os.path.join(folder, n))]


def _select_candidates(names: list[str]) -> list[str]:
    """The files that may be models by their names; a lone file's content tells."""
    return names if len(names) == 1 else select_candidates(names)


def _is_model(path: str) -> bool:
    """Whether a file is a model, by its name or its content, or an archive that may hold one."""
    is_read = any(f.matches(Path(path)) for f in installed_formats() if f.is_read)
    return is_read or not is_ambiguous(path) or is_archived(path)


@contextmanager
def _open(path: str) -> Iterator[Archive | None]:
    """An archive, within the bounds of a conversion; None where it cannot be read as one."""
    with within_budget(), ExitStack() as stack:
        try:
            archive = stack.enter_context(open_archive(path, read_head(path)))
        except MalformedFile:
            archive = None
        yield archive


def _list_files(archive: Archive) -> list[str]:
    return [name for name in map(archive.shorten, archive.names) if not is_companion(name)]
