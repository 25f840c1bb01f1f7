"""Which files a model may name as external data.

A location is relative and names a regular file, which lies in the folder the model was named in or
in the one it really lies in: a model cache keeps links to files elsewhere, their data beside those.
What is checked is an open file, reached from that folder without following a link; the weights are
read later from that file or not at all (``FileSlice.file``), whatever happens to its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from serde.errors import MalformedFile
from serde.io.command_files import active_files
from serde.io.named_file import name_path_in_errors
from serde.io.sniff import allow_file, file_id, is_regular

FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # a pipe would have to be waited for


class AcceptedFile(NamedTuple):
    """A file that weights may be read from: where it is, how long, and which one (``file_id``)."""

    path: str
    size: int
    file: tuple[int, int]


Resolve = Callable[[str], AcceptedFile]


def resolver(model: str | os.PathLike[str], strict: bool = False) -> Resolve:
    """A function from a location to an accepted file beside ``model``.

    ``strict`` also refuses hard links.
    """
    logical = Path(os.path.abspath(model)).parent
    roots = {os.path.realpath(logical), os.path.dirname(os.path.realpath(model))}
    accepted: dict[str, AcceptedFile] = {}

    def resolve(location: str) -> AcceptedFile:
        if location not in accepted:
            accepted[location] = _accept(location, str(model), logical, roots, strict)
        return accepted[location]

    return resolve


def refuse_location(location: str) -> AcceptedFile:
    """The resolver of a model that lies in no folder."""
    raise MalformedFile(
        location, "external data cannot be found: the model was not read from a file"
    )


def _accept(location: str, model: str, folder: Path, roots: set[str], strict: bool) -> AcceptedFile:
    def refuse(reason: str) -> MalformedFile:
        return MalformedFile(model, f"external data in {location[:200]!r}: {reason}")

    if not location or "\0" in location or "\\" in location or ":" in location:
        raise refuse("not a plain relative path")
    parts = location.split("/")
    if location.startswith("/") or ".." in parts:
        raise refuse("the path leaves the model's folder")
    real = os.path.realpath(folder / location)
    root = next((r for r in roots if _is_beneath(real, r)), None)
    if root is None:
        raise refuse("the file lies outside the model's folder")
    try:
        number = _open_beneath(root, os.path.relpath(real, root))
    except OSError as error:
        active_files().absent.add(real)
        raise refuse(error.strerror or "cannot be read") from error
    with name_path_in_errors(real):
        try:
            info = os.fstat(number)
            if not is_regular(number):
                raise refuse("not a regular file")
            if strict and info.st_nlink > 1:
                raise refuse("a hard link, which strict paths refuse")
            allow_file(real, number)
            return AcceptedFile(real, info.st_size, file_id(number))
        finally:
            os.close(number)


def _is_beneath(path: str, root: str) -> bool:
    try:
        return os.path.commonpath([path, root]) == root
    except ValueError:  # of another drive
        return False


def _open_beneath(root: str, relative: str) -> int:
    """Open a file to read it, folder by folder from ``root``; a link on the way is an OSError."""
    if os.open not in os.supports_dir_fd:
        return os.open(os.path.join(root, relative), os.O_RDONLY | NO_LINK | NO_WAITING)
    *folders, name = relative.split(os.sep)
    at = os.open(root, FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, FOLDER | NO_LINK, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(name, os.O_RDONLY | NO_LINK | NO_WAITING, dir_fd=at)
    finally:
        os.close(at)
