"""Models in archives and folders, of formats that do not look into these themselves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from serde.api.model_names import is_ambiguous, is_candidate
from serde.api.source_names import leave_out
from serde.errors import MalformedFile, UsageError
from serde.io.archive import Archive, is_companion, open_archive
from serde.io.sniff import may_be_archive, read_head
from serde.ir.budget import within_budget
from serde.plugins import installed_formats, list_models

MOST_NAMED = 4  # models that a message names


def is_archived(place: Any) -> bool:
    """Whether a path is that of an archive, and no format reads it as a model."""
    return may_be_archive(place) and not any(f.matches(Path(place)) for f in installed_formats())


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
        return _list_candidates(archive) if archive is not None else []


@contextmanager
def unpack_model(path: str) -> Iterator[str]:
    """The path of the model in an archive, which is unpacked into a temporary folder.

    That of the archive where no model is in it, or a format reads it where it is.

    Raises:
        UsageError: where there are several models. MalformedFile: where it cannot be read.
    """
    if not is_archived(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="serde-") as folder:
        models = [n for n in _unpack(path, folder) if _is_model(os.path.join(folder, n))]
        if len(models) > 1:
            shown = ", ".join(sorted(models)[:MOST_NAMED])
            raise UsageError(
                f"{path} holds {len(models)} models: unpack it, and name one of them: {shown}"
            )
        if not models:
            yield path
            return
        inner = os.path.join(folder, models[0])
        with leave_out(folder, path, f"{path}:"), unpack_model(inner) as model:
            yield model


def _unpack(path: str, folder: str) -> list[str]:
    """Write the files of an archive below a folder, if any may be models; the names of those."""
    with _open(path) as archive:
        candidates = _list_candidates(archive) if archive is not None else []
        if archive is not None and candidates:
            for name in archive.names:
                if not is_companion(name):
                    archive.extract(name, folder)
    return candidates


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


def _list_candidates(archive: Archive) -> list[str]:
    names = map(archive.shorten, archive.names)
    return [name for name in names if is_candidate(name) and not is_companion(name)]
