"""Which files a model may name as external data.

A location is relative and names a regular file, which lies in the folder the model was named in or
in the one it really lies in: a model cache keeps links to files elsewhere, their data beside those.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from serde.errors import MalformedFile


def resolver(model: str | os.PathLike[str], strict: bool = False):  # type: ignore[no-untyped-def]
    """A function from a location to the path of an accepted file beside ``model``.

    ``strict`` also refuses hard links.
    """
    logical = Path(os.path.abspath(model)).parent
    roots = {os.path.realpath(logical), os.path.dirname(os.path.realpath(model))}
    accepted: dict[str, str] = {}

    def resolve(location: str) -> str:
        if location not in accepted:
            accepted[location] = _accept(location, str(model), logical, roots, strict)
        return accepted[location]

    return resolve


def nowhere(location: str) -> str:
    """The resolver of a model that lies in no folder."""
    raise MalformedFile(
        location, "external data cannot be found: the model was not read from a file"
    )


def _accept(location: str, model: str, folder: Path, roots: set[str], strict: bool) -> str:
    def refuse(reason: str) -> MalformedFile:
        return MalformedFile(model, f"external data in {location[:200]!r}: {reason}")

    if not location or "\0" in location or "\\" in location or ":" in location:
        raise refuse("not a plain relative path")
    parts = location.split("/")
    if location.startswith("/") or ".." in parts:
        raise refuse("the path leaves the model's folder")
    named = folder / location
    real = os.path.realpath(named)
    if not any(os.path.commonpath([real, root]) == root for root in roots):
        raise refuse("the file lies outside the model's folder")
    try:
        found = os.stat(real, follow_symlinks=False)
    except OSError as error:
        raise refuse(error.strerror or "cannot be read") from error
    if not stat.S_ISREG(found.st_mode):
        raise refuse("not a regular file")
    if strict and found.st_nlink > 1:
        raise refuse("a hard link, which strict paths refuse")
    return real
