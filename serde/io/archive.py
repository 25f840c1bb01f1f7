"""The files in ``.tar``, ``.tar.gz`` and ``.zip`` archives, and one that gzip has packed.

What an archive holds as it is, in a plain tar or stored in a zip, can be read where it lies. Other
members are inflated; what is inflated, once or again, is charged to the budget.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePath, PurePosixPath
from typing import IO, Any, BinaryIO

from serde.errors import MalformedFile
from serde.io.command_files import check_name
from serde.io.copies import copy_stream
from serde.io.named_file import raise_of_system
from serde.io.sniff import GZIP_MAGIC, HEAD, ZIP_MAGICS, inflate_head, is_tar, open_regular
from serde.ir.budget import active_budget

MOST_MEMBERS = 10_000
PACKED = (GZIP_MAGIC, b"BZh", b"\xfd7zXZ\0", b"7z\xbc\xaf", b"Rar!", b"\x28\xb5\x2f\xfd")
MOST_HEADER = 1 << 20  # bytes that tell a name, and what else a tar knows of a member
TARS, ZIPS = (".tar", ".tar.gz", ".tgz"), (".zip", ".mar")
PACKINGS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
)


def is_archive(name: str, head: bytes) -> bool:
    """Whether the file of a name, which begins with ``head``, is an archive."""
    if name.endswith(TARS):
        return True
    is_packed = head.startswith(GZIP_MAGIC)
    inner = inflate_head(head) if is_packed else head
    # The oldest archives have no magic number: a name of up to 100 bytes, and zeros behind it.
    is_oldest = is_packed and b"!" <= inner[:1] <= b"~" and b"\0" in inner[:100]
    return is_tar(inner) or is_oldest or is_zip(name, head)


def is_zip(name: str, head: bytes) -> bool:
    """Whether it is a zip, and not one that holds nothing but arrays."""
    if head.startswith(ZIP_MAGICS):
        return not name.endswith((".params", ".npz"))
    return name.endswith(ZIPS) and not (head.startswith(GZIP_MAGIC) or is_tar(head))


def is_companion(name: str) -> bool:
    """Whether it is a file that macOS puts beside another, ``._net-symbol.json``."""
    return re.split(r"[/\\:]", name)[-1].startswith("._")


def name_archive(name: str, head: bytes) -> str | None:
    """What an archive is in which there is no model, and what to do with it."""
    is_zip_of_models = head.startswith(ZIP_MAGICS) and name.endswith((*ZIPS, ".model"))
    is_other = not head.startswith(ZIP_MAGICS) and is_archive(name, head)
    if head.startswith(PACKED) or is_zip_of_models or is_other:
        return "an archive in which no model is found: unpack it, and name the model"
    return None


def open_archive(name: str, head: bytes, data: bytes | None = None) -> Archive:
    """The archive at a path; or in ``data``, where ``name`` is what errors call it."""
    if is_zip(name, head):
        return ZipArchive(name, data)
    is_file = head.startswith(GZIP_MAGIC) and not is_archive(name, head)
    return (GzipArchive if is_file else TarArchive)(name, data)


class Archive:
    """An open archive; ``names`` are its regular files. Links and devices are left alone."""

    def __init__(self, path: str, data: bytes | None = None) -> None:
        self.path, self.data = path, data
        self._file: BinaryIO = io.BytesIO(data or b"")  # the file's, once it is open
        self._heads: dict[str, bytes] = {}  # of a compressed archive

    def __enter__(self) -> Archive:
        for _ in self.walk():
            pass
        return self

    def walk(self) -> Iterator[str]:
        """Open the archive; its regular files, as errors call them, as they are come upon."""
        if self.data is None:
            self._file = open_regular(self.path)
        try:
            yield from (f"{self.path}:{name}" for name in self._read_members())
        except BaseException as error:
            self._file.close()
            if isinstance(error, BROKEN):
                raise_of_system(error)
                raise self._fail(error) from error
            raise

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def _fail(self, error: BaseException) -> MalformedFile:
        return MalformedFile(self.path, f"an archive that cannot be read: {error}")

    def _count(self, number: int, total: int, most: int) -> None:
        """Refuse an archive that claims more members, or more bytes, than a model can have."""
        if number >= MOST_MEMBERS or total > most:
            raise MalformedFile(self.path, "the archive claims more than a model can hold")

    @property
    def names(self) -> list[str]:
        """The regular files in the archive, as errors call them."""
        return [f"{self.path}:{name}" for name in self._sizes()]

    def head(self, name: str) -> bytes:
        """The first bytes of a member."""
        known = self._heads.get(self.shorten(name))
        return self._bytes(self.shorten(name), HEAD) if known is None else known

    def read(self, name: str, most: int | None = None) -> bytes:
        """All of a member, which has ``most`` bytes at most."""
        size = self._sizes()[self.shorten(name)]
        if most is not None and size > most:
            raise MalformedFile(name, "too large for what it should be")
        return self._bytes(self.shorten(name), size)

    def span(self, name: str) -> tuple[int, int] | None:
        """Where in the file a member lies, and its size; None if it is compressed or in memory."""
        short = self.shorten(name)
        offset = self._offset(short) if self.data is None else None
        return None if offset is None else (offset, self._sizes()[short])

    def shorten(self, name: str) -> str:
        """The name of a member as it is in the archive."""
        return name.removeprefix(f"{self.path}:")

    def extract(self, name: str, folder: str) -> None:
        """Write a member to a file of its name below a folder.

        Raises:
            MalformedFile: where it would lie elsewhere, is damaged, or larger than the disk allows.
        """
        short = self.shorten(name)
        parts = PurePosixPath(short).parts
        place = os.path.join(folder, *parts)
        if not parts or ".." in parts or any(PurePath(p).name != p for p in parts):
            raise MalformedFile(name, "a name that leads out of the archive: unpack it with care")
        check_name(place)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        try:
            copy_stream(self._open(short), place, name)
        except BROKEN as error:
            raise_of_system(error)
            raise self._fail(error) from error

    def _bytes(self, name: str, size: int) -> bytes:
        try:
            return self._open(name).read(size)
        except BROKEN as error:
            raise_of_system(error)
            raise self._fail(error) from error

    def _read_members(self) -> Iterator[str]:
        raise NotImplementedError

    def _sizes(self) -> dict[str, int]:
        """The bytes of each member, as it claims them."""
        raise NotImplementedError

    def _offset(self, name: str) -> int | None:
        """Where in the file a member lies, None if it is compressed."""
        raise NotImplementedError

    def _open(self, name: str) -> IO[bytes]:
        raise NotImplementedError


class TarArchive(Archive):
    """A ``.tar``, or one that gzip has packed."""

    def _read_members(self) -> Iterator[str]:
        self._members: dict[str, tarfile.TarInfo] = {}
        self._is_packed = self._file.read(2) == GZIP_MAGIC
        most = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        inner: Any = self._file
        if self._is_packed:
            from serde.io.gzip_stream import GzipStream

            most = active_budget().most_bytes
            inner = GzipStream(self._file, self.path, "what is inflated of the archive")
            inner.most_at_once = MOST_HEADER  # as long as members are listed
        self._tar = tarfile.open(fileobj=inner, mode="r:")  # noqa: SIM115
        total = 0
        for number, member in enumerate(self._tar):
            total += member.size
            self._count(number, total if member.size >= 0 else most + 1, most)
            if member.isreg() and not member.issparse():
                name = member.name.removeprefix("./")
                self._members[name] = member
                if self._is_packed:  # reading it later would inflate all that is before it again
                    self._heads[name] = self._bytes(name, HEAD)
                yield name

        if self._is_packed:
            inner.most_at_once = None

    def _sizes(self) -> dict[str, int]:
        return {name: member.size for name, member in self._members.items()}

    def _offset(self, name: str) -> int | None:
        return None if self._is_packed else self._members[name].offset_data

    def _open(self, name: str) -> IO[bytes]:
        file = self._tar.extractfile(self._members[name])
        assert file is not None  # it is regular
        return file


class ZipArchive(Archive):
    """A ``.zip``, as model servers and DJL have them: ``.mar``."""

    def _read_members(self) -> Iterator[str]:
        self._members: dict[str, zipfile.ZipInfo] = {}
        self._zip = zipfile.ZipFile(self._file)
        total, most = 0, active_budget().most_bytes
        for number, member in enumerate(self._zip.infolist()):
            total += member.file_size
            self._count(number, total, most)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir() or kind not in (0, stat.S_IFREG):
                continue
            if self._members.setdefault(member.filename, member) is not member:
                raise MalformedFile(self.path, f"two members are called {member.filename[:80]!r}")
            yield member.filename

    def _sizes(self) -> dict[str, int]:
        return {name: member.file_size for name, member in self._members.items()}

    def _offset(self, name: str) -> int | None:
        member = self._members[name]
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            return None
        from serde.io.npz import find_member_data

        at = find_member_data(self._file, member)
        if at is None or member.compress_size != member.file_size:
            raise MalformedFile(
                f"{self.path}:{name}", "a member that is not where the archive says"
            )
        return at

    def _open(self, name: str) -> IO[bytes]:
        member = self._members[name]
        if member.flag_bits & 1 or member.compress_type not in PACKINGS:
            raise MalformedFile(
                f"{self.path}:{name}", "it is encrypted, or compressed in a way that is not read: "
                "pack the model again with deflate"
            )  # fmt: skip
        return self._zip.open(member)

    def _bytes(self, name: str, size: int) -> bytes:
        inflated = min(size, self._members[name].file_size)
        active_budget().charge_file(inflated, self.path, "what is inflated of the archive")
        return super()._bytes(name, size)


class GzipArchive(Archive):
    """A file that gzip has packed; it is called as the archive is, without ``.gz``."""

    def _read_members(self) -> Iterator[str]:
        from serde.io.gzip_stream import GzipStream

        self._stream: Any = GzipStream(self._file, self.path, "what is inflated of the file")
        name = os.path.basename(self.path)
        self._member = name.removesuffix(name[-3:] if name.lower().endswith(".gz") else "")
        yield self._member

    def _sizes(self) -> dict[str, int]:  # what it tells is a size modulo 2 ** 32
        return {self._member: active_budget().most_bytes}

    def _offset(self, name: str) -> int | None:
        return None

    def _open(self, name: str) -> IO[bytes]:
        self._stream.seek(0)
        return self._stream  # type: ignore[no-any-return]
