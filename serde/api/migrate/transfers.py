"""Models at URLs, fetched to this machine, and results, stored there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from serde.errors import SerdeError, show_error
from serde.io.filesystems import fetch_file, is_url, name_copy, open_filesystem
from serde.io.sniff import split_member


def stamp_entry(entry: Mapping[str, Any]) -> str:
    """What tells a file of fsspec from itself after a change."""
    marks = (entry.get(key) for key in ("size", "ETag", "etag", "mtime", "LastModified", "created"))
    return "-".join(str(mark) for mark in marks if mark is not None)


def fetch_model(place: str, siblings: Iterable[str], folder: str) -> str:
    """The path of a model on this machine; one at a URL is copied, with the files beside it."""
    if not is_url(place):
        return place
    os.makedirs(folder)
    url, member = split_member(place)
    system, path = open_filesystem(url)
    for name in (path, *(open_filesystem(other)[1] for other in siblings)):
        fetch_file(system, name, os.path.join(folder, name_copy(name)))
    copy = os.path.join(folder, name_copy(path))
    return f"{copy}:{member}" if member else copy


def store_files(folder: str, url: str) -> dict[str, str]:
    """Copy what was written to where it belongs; return the stamps of the copies."""
    system, path = open_filesystem(url)
    system.makedirs(path, exist_ok=True)
    stamps = {}
    for name in sorted(os.listdir(folder)):
        place, result = f"{path.rstrip('/')}/{name}", f"{url.rstrip('/')}/{name}"
        try:
            system.put_file(os.path.join(folder, name), place)
        except OSError:
            raise
        except Exception as error:  # of any driver
            raise SerdeError(f"{result}: it cannot be written: {show_error(error)}") from error
        stamps[result] = stamp_entry(system.info(place))
    return stamps
