"""What a result was made of and by: versions, the call, and hashes of the files."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from serde import __version__
from serde.errors import UsageError
from serde.io.sniff import open_uncharged
from serde.ir.graph import Graph

PREFIX = "serde."  # of keys in a model's metadata
CHUNK = 1 << 20  # bytes
LIBRARIES = ("numpy", "onnx")  # that every conversion may use
LONGEST = 200  # characters of an argument


@dataclass(frozen=True)
class FileStamp:
    """A file as it was when it was read or written; ``digest`` is its SHA-256 if it is known."""

    path: str
    bytes: int
    changed: int
    digest: str | None = None

    @classmethod
    def of(cls, path: str) -> FileStamp:
        """The stamp of a file as it is now."""
        about = os.stat(path)
        return cls(path, about.st_size, about.st_mtime_ns)

    def hash(self) -> str | None:
        """The SHA-256 of the file; None where it is another by now."""
        if self.digest is not None:
            return self.digest
        import hashlib

        digest = hashlib.sha256()
        try:
            if FileStamp.of(self.path) != self:
                return None
            with open_uncharged(self.path) as file:
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
        except OSError:
            return None
        return digest.hexdigest()

    def with_hash(self) -> FileStamp:
        """The stamp of a file that will be replaced."""
        return replace(self, digest=self.hash())

    def relocate(self, folder: str, place: str) -> FileStamp:
        """The stamp with its hash and the name that the user knows, if it is below a folder."""
        root = os.path.realpath(folder) + os.sep
        if not self.path.startswith(root):
            return self
        return replace(self.with_hash(), path=place + self.path.removeprefix(root))

    def describe(self) -> dict[str, Any]:
        """The file as reports list it."""
        return {"path": self.path, "bytes": self.bytes, "sha256": self.hash()}


@dataclass
class Provenance:
    """How a result came about. ``list_runtimes`` gives the modules that may have run models, with
    the versions of those that processes have loaded.

    Files are hashed when a report is made; ``date`` is None unless it was asked for.
    """

    call: str = ""
    opset: int | None = None
    date: str | None = None
    source: list[FileStamp] = field(default_factory=list)
    result: list[FileStamp] = field(default_factory=list)
    list_runtimes: Callable[[], Mapping[str, str | None]] = dict

    def relocate(self, folder: str, place: str) -> None:
        """Hash the files below a temporary folder, and call them as those of ``place``."""
        self.source = [f.relocate(folder, place) for f in self.source]
        self.result = [f.relocate(folder, place) for f in self.result]

    def describe(self) -> dict[str, Any]:
        """The fields of the report."""
        return {
            "call": self.call, "versions": read_versions(self.list_runtimes()), "opset": self.opset,
            "date": self.date, "source": [f.describe() for f in self.source],
            "result": [f.describe() for f in self.result],
        }  # fmt: skip

    def to_metadata(self) -> dict[str, str]:
        """The entries of a model's metadata; paths are left out, names stay."""
        files = [{"name": os.path.basename(f.path), "bytes": f.bytes, "sha256": f.hash()}
                 for f in self.source]  # fmt: skip
        entries = {
            "version": __version__, "call": self.call, "date": self.date,
            "source": json.dumps(files) if files else None,
        }  # fmt: skip
        return {
            f"{PREFIX}{name}": text.encode("utf-8", "backslashreplace").decode()  # names of files
            for name, text in entries.items() if text
        }  # fmt: skip


def enter_provenance(graph: Graph, about: Provenance, options: Mapping[str, Any]) -> Graph:
    """The graph with its provenance, and texts, in its metadata, where ``options`` ask for them.

    Raises:
        UsageError: for texts under keys of serde's own.
    """
    about.opset = None if graph.domain else graph.opset
    texts = options.get("metadata") or {}
    if reserved := [key for key in texts if key.startswith(PREFIX)]:
        raise UsageError(f"--metadata: {reserved[0]!r} is a key of serde's own: choose another")
    graph = replace(graph, metadata={**graph.metadata, **texts}) if texts else graph
    if (word := options.get("provenance")) is None:
        return graph
    about.date = read_date() if word == "date" else None
    return replace(graph, metadata={**graph.metadata, **about.to_metadata()})


def stamp_files(paths: Iterable[str]) -> list[FileStamp]:
    """The stamps of files, each once, by name."""
    return [FileStamp.of(path) for path in sorted({os.path.realpath(path) for path in paths})]


def read_versions(runtimes: Mapping[str, str | None]) -> dict[str, str]:
    """The versions of serde, Python, libraries and runtimes that were imported."""
    versions = {"serde": __version__, "python": sys.version.split()[0]}
    for name, loaded in {**dict.fromkeys(LIBRARIES), **runtimes}.items():
        if (version := getattr(sys.modules.get(name), "__version__", loaded)) is not None:
            versions[name] = str(version)
    return versions


def read_date() -> str:
    """The date and time, in UTC; that of ``$SOURCE_DATE_EPOCH`` where it is set."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def describe_call(function: str, arguments: Iterable[Any], options: Mapping[str, Any]) -> str:
    """A call as it is written in Python; objects are called by their types."""
    shown = [_show(a) for a in arguments]
    shown += [f"{name}={_show(value)}" for name, value in options.items()]
    return f"{function}({', '.join(shown)})"


def _show(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return repr(os.fspath(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_show(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        items = ", ".join(map(_show, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if value is None or isinstance(value, (bool, int, float, str)):
        text = repr(value)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return f"<{type(value).__module__}.{type(value).__qualname__}>"
