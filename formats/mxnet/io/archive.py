"""Models in ``.tar`` and ``.tar.gz`` archives, read where they are.

Weights in a plain archive are mapped like those of a file of their own. Those in a compressed one
are inflated into memory; what is inflated, once or again, is charged to the budget.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from serde.errors import MalformedFile
from serde.io.sniff import HEAD, inflate_head, open_regular
from serde.ir.budget import active_budget

from .magic import GZIP_MAGIC, TAR_MAGIC, TAR_MAGIC_AT
from .params import Params, parse_params, read_params

MOST_MEMBERS = 10_000
BROKEN = (
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    OverflowError,
    RecursionError,
)


def is_archive(path: Path, head: bytes) -> bool:
    """Whether the file at ``path``, which begins with ``head``, is an archive."""
    if path.name.endswith((".tar", ".tar.gz", ".tgz")):
        return True
    is_packed = head.startswith(GZIP_MAGIC)
    inner = inflate_head(head) if is_packed else head
    # The oldest archives have no magic number: a name of up to 100 bytes, and zeros behind it.
    is_oldest = is_packed and b"!" <= inner[:1] <= b"~" and b"\0" in inner[:100]
    return inner[TAR_MAGIC_AT:].startswith(TAR_MAGIC) or is_oldest


class Archive:
    """An open archive; ``names`` are its regular files. Links and devices are left alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members: dict[str, tarfile.TarInfo] = {}
        self._heads: dict[str, bytes] = {}  # of a compressed archive

    def __enter__(self) -> Archive:
        self._file = open_regular(self.path)
        try:
            self._is_packed = self._file.read(2) == GZIP_MAGIC
            most = self._file.seek(0, io.SEEK_END)
            self._file.seek(0)
            inner: Any = self._file
            if self._is_packed:
                most = active_budget().most_bytes
                inner = _Inflating(self._file, self.path)
            self._tar = tarfile.open(fileobj=inner, mode="r:")
            self._list(most)
        except BROKEN as error:
            self._file.close()
            raise self._fail(error) from error
        except MalformedFile:
            self._file.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def _fail(self, error: Exception) -> MalformedFile:
        return MalformedFile(self.path, f"an archive that cannot be read: {error}")

    def _list(self, most: int) -> None:
        total = 0
        for number, member in enumerate(self._tar):
            total += member.size
            if number >= MOST_MEMBERS or member.size < 0 or total > most:
                raise MalformedFile(self.path, "the archive claims more than a model can hold")
            if member.isreg() and not member.issparse():
                name = member.name.removeprefix("./")
                self._members[name] = member
                if self._is_packed:  # reading it later would inflate all that is before it again
                    self._heads[name] = self._bytes(name, HEAD)

    @property
    def names(self) -> list[str]:
        """The regular files in the archive, as errors call them."""
        return [f"{self.path}:{name}" for name in self._members]

    def _member(self, name: str) -> tarfile.TarInfo:
        return self._members[name.removeprefix(f"{self.path}:")]

    def _open(self, name: str) -> IO[bytes]:
        file = self._tar.extractfile(self._member(name))
        assert file is not None  # it is regular
        return file

    def head(self, name: str) -> bytes:
        """The first bytes of a member."""
        known = self._heads.get(name.removeprefix(f"{self.path}:"))
        return self._bytes(name, HEAD) if known is None else known

    def read(self, name: str, most: int) -> bytes:
        """All of a member, which has ``most`` bytes at most."""
        if self._member(name).size > most:
            raise MalformedFile(name, "too large for what it should be")
        return self._bytes(name, most)

    def _bytes(self, name: str, size: int) -> bytes:
        try:
            return self._open(name).read(size)
        except BROKEN as error:
            raise self._fail(error) from error

    def params(self, name: str) -> Params:
        """The parameters a member holds."""
        member = self._member(name)
        if self._is_packed:
            return parse_params(self.read(name, member.size), name)
        return read_params(self.path, name, member.offset_data, member.size)


class _Restarting:
    """A file that tells when it is read from the start again."""

    def __init__(self, file: IO[bytes], restart: Callable[[], None]) -> None:
        self.read, self.file, self.restart = file.read, file, restart

    def seek(self, offset: int, whence: int = 0) -> int:
        if offset == 0 and whence == 0:
            self.restart()
        return self.file.seek(offset, whence)

    def seekable(self) -> bool:
        return True


class _Inflating:
    """A gzip stream that charges what it inflates, again where it begins at the start again."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.packed, self.path, self.reached = file, path, 0
        self.file = gzip.GzipFile(fileobj=cast(Any, _Restarting(file, self.restart)))

    def restart(self) -> None:
        self.reached = 0

    def reach(self, offset: int) -> None:
        more = max(0, offset - self.reached)
        active_budget().charge_file(more, self.path, "what is inflated of the archive")
        self.reached += more

    def read(self, size: int) -> bytes:
        self.reach(self.file.tell() + size)
        return self.file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        self.reach(offset)
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def close(self) -> None:
        self.file.close()
