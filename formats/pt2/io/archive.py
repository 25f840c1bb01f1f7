"""The zip that ``torch.export.save`` writes: JSON, and each weight as a member of its own."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from serde.errors import MalformedFile
from serde.io.named_file import raise_of_system
from serde.io.npz import BROKEN, ZIP, find_member_data
from serde.io.sniff import file_id, open_regular, open_uncharged, refuse_missing
from serde.ir.budget import active_budget
from serde.ir.graph import FileSlice

FORMAT, VERSION, ORDER = "archive_format", "archive_version", "byteorder"
KIND, PICKLE = b"pt2", b"\x80\x02"
OLD = "serialized_exported_program.json"  # of releases before 2.8, whose weights are pickles
MOST_MEMBERS, LONGEST_MARK = 1_000_000, 64
VERSIONS = ("0",)
AGAIN = "load it with torch.export.load, and save it again with PyTorch 2.8 or newer"


def name_pickled(name: str, head: bytes) -> str | None:
    """What a file is that PyTorch has pickled, and what to do with it."""
    is_old = head.startswith(PICKLE) and name.endswith((".pt", ".pth", ".bin"))
    if not is_old and not (head.startswith(ZIP) and b"/data.pkl" in head):
        return None
    return (
        "weights or a module that PyTorch has pickled: load it there, and export the module with "
        "torch.export.save or torch.onnx.export"
    )


def matches(path: Path) -> bool:
    """Whether ``path`` holds an exported program."""
    if not path.is_file():
        return False
    with open_uncharged(path) as file:
        if not file.read(len(ZIP)).startswith(ZIP):
            return False
        try:
            names = zipfile.ZipFile(file).namelist()
        except BROKEN as error:
            raise_of_system(error)
            return False
    return OLD in names or any(n.endswith(f"/{FORMAT}") for n in names)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open the archive at ``path``.

    Raises:
        MalformedFile: for what is no archive of this kind, or one that is damaged.
    """
    refuse_missing(path)
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            yield Archive(archive, file, os.fspath(path))
    except BROKEN as error:
        raise_of_system(error)
        raise MalformedFile(path, f"a zip archive that cannot be read: {error}") from error


class Archive:
    """An open archive; members are named without the folder that all are in."""

    def __init__(self, archive: zipfile.ZipFile, file: IO[bytes], path: str) -> None:
        self.archive, self.file, self.path = archive, file, path
        self.number = file_id(file)
        infos = archive.infolist()
        if len(infos) > MOST_MEMBERS:
            raise MalformedFile(path, f"claims {len(infos)} members")
        if any(i.filename == OLD for i in infos):
            raise MalformedFile(
                path, f"its weights are pickled, as PyTorch did before 2.8: {AGAIN}"
            )
        marks = [i.filename for i in infos if i.filename.endswith(f"/{FORMAT}")]
        self.folder = marks[0].removesuffix(FORMAT) if marks else ""
        self.members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name = info.filename.removeprefix(self.folder)
            if self.members.setdefault(name, info) is not info:
                raise MalformedFile(path, f"two members are called {name[:80]!r}")
        self._check_marks()

    def _check_marks(self) -> None:
        kind, version = self.read(FORMAT, LONGEST_MARK), self.read(VERSION, LONGEST_MARK)
        if kind.strip() != KIND:
            raise MalformedFile(self.path, f"an archive of {kind!r}, not of an exported program")
        if version.strip().decode("latin-1") not in VERSIONS:
            raise MalformedFile(
                self.path, f"archive version {version!r} is not known, which 0 is: {AGAIN}"
            )
        if ORDER in self.members and self.read(ORDER, LONGEST_MARK).strip() != b"little":
            raise MalformedFile(self.path, "its weights are not little-endian: save it on a "
                                "machine that is")  # fmt: skip

    def fail(self, name: str, reason: str) -> MalformedFile:
        """The error about a member."""
        return MalformedFile(self.path, f"member {name[:80]!r} {reason}")

    def _find(self, name: str) -> zipfile.ZipInfo:
        info = self.members.get(name)
        if info is None:
            raise self.fail(name, "is missing: the file is incomplete")
        if info.flag_bits & 1 or info.compress_type not in (
            zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED,
        ):  # fmt: skip
            raise self.fail(name, "is encrypted, or compressed in a way that PyTorch does not use")
        return info

    def read(self, name: str, most: int | None = None) -> bytes:
        """The contents of a member."""
        info = self._find(name)
        if most is not None and info.file_size > most:
            raise self.fail(name, f"has {info.file_size} bytes, more than {most}")
        if info.compress_type != zipfile.ZIP_STORED:
            active_budget().charge_file(info.file_size, self.path, f"member {name[:80]!r}")
        elif info.file_size != info.compress_size:
            raise self.fail(name, "is stored in fewer bytes than it has")
        with self.archive.open(info) as file:
            data = file.read(info.file_size + 1)
        if len(data) != info.file_size:
            raise self.fail(name, "has not the size that the archive says")
        return data

    def read_json(self, name: str) -> Any:
        """The JSON of a member."""
        try:
            data = self.read(name)
            tree = json.loads(data)
            if b"\\ud" in data.lower():  # half a character is no text
                json.dumps(tree, ensure_ascii=False).encode()
            return tree
        except (ValueError, RecursionError) as error:
            raise self.fail(name, f"is no JSON: {error}") from error

    def place(self, name: str) -> FileSlice | bytes:
        """Where a weight lies in the file, or its bytes where it is compressed."""
        info = self._find(name)
        if info.compress_type != zipfile.ZIP_STORED:
            return self.read(name)
        at = find_member_data(self.file, info)
        if at is None or info.compress_size != info.file_size:
            raise self.fail(name, "is not where the archive says")
        active_budget().charge_part(self.number, info.file_size, self.path, f"member {name[:80]!r}")
        return FileSlice(self.path, at, info.file_size, self.number)
