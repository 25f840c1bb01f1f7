"""What sources are called in errors and reports, where what is read is a copy of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from serde.errors import MalformedFile, SerdeError, Unconvertible
from serde.io.filesystems import is_url, local_path
from serde.io.sniff import split_member


def find_path(place: Any) -> Any:
    """A URL of this machine's own files as their path, anything else as it is."""
    return local_path(place) if isinstance(place, str) else place


def is_remote(place: Any) -> bool:
    """Whether a source or a target is at a URL that is no path of this machine."""
    return isinstance(place, str) and is_url(local_path(place))


@contextmanager
def leave_out(folder: str, source: str, place: str = "") -> Iterator[None]:
    """Let errors name files without a folder that the user does not know, and ``source``.

    In place of the folder they have ``place``, which is that of an archive.
    """
    try:
        yield
    except SerdeError as error:
        known = folder + os.sep
        error.args = tuple(
            a.replace(known, place) if isinstance(a, str) and known in a else a for a in error.args
        )
        if isinstance(error, MalformedFile):
            error.path = error.path.replace(known, place)
        report = error.report if isinstance(error, Unconvertible) else None
        if report is not None and report.source.startswith(known):
            name_source(report, report.source, source)
        raise


def name_source(report: Any, path: str, source: str) -> None:
    """Call the source of a report, and the files beside its copy at ``path``, as the user does."""
    for part in (report, *getattr(report, "models", ())):
        for field in ("source", "first", "second", "model"):
            if getattr(part, field, None) == path:
                setattr(part, field, source)
    about = getattr(report, "provenance", None)
    if about is not None and path not in (source, find_path(source)):
        place = f"{source.rpartition('/')[0]}/" if is_remote(source) else ""
        archive, member = split_member(source)
        if member:
            place = source.removesuffix(os.path.basename(member))
        elif os.path.isfile(archive):
            place = f"{archive}:"
        about.relocate(os.path.dirname(path), place)
