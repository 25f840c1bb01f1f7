"""Files packed with gzip, inflated as they are read.

``gzip.GzipFile`` reads a header, zeros behind the end, and members of no contents in Python, byte
by byte: a file of 50 MB of these takes it seconds.
"""

from __future__ import annotations

import os
import zlib
from typing import IO

from serde.errors import MalformedFile
from serde.ir.budget import active_budget

CHUNK = 1 << 14  # bytes read at once
PART = 1 << 20  # bytes inflated at once
MOST_MEMBERS, LEAST_MEMBER = 10_000, 1024  # one more for as many bytes that are read


class GzipStream:
    """What an open file holds, to read and seek; all that is inflated is charged, also again.

    ``most_at_once`` bounds single reads.
    """

    def __init__(self, packed: IO[bytes], path: str | os.PathLike[str], what: str) -> None:
        self.packed, self.path, self.what = packed, path, what
        self.most_at_once: int | None = None
        self._restart()

    def _restart(self) -> None:
        self.packed.seek(0)
        self._at = self._members = 0
        self._data = b""
        self._begin_member()

    def _begin_member(self) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS + self.packed.tell() // LEAST_MEMBER:
            raise MalformedFile(self.path, "packed by gzip in tiny members: pack it again as one")
        self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def _inflate(self, most: int) -> bytes:
        """The next bytes, ``most`` or less; none at the end."""
        while True:
            if self._engine.eof:
                self._data = self._engine.unused_data.lstrip(b"\0")
                while not self._data:
                    chunk = self.packed.read(CHUNK)
                    if not chunk:
                        return b""
                    self._data = chunk.lstrip(b"\0")
                self._begin_member()
            elif not self._data:
                self._data = self.packed.read(CHUNK)
                if not self._data:
                    raise EOFError("it ends before what is packed in it does")
            part = self._engine.decompress(self._data, most)
            self._data = self._engine.unconsumed_tail
            if part:
                active_budget().charge_file(len(part), self.path, self.what)
                self._at += len(part)
                return part

    def read(self, size: int = -1) -> bytes:
        """The next ``size`` bytes, less at the end; all of them if it is negative."""
        if self.most_at_once is not None and size > self.most_at_once:
            raise MalformedFile(self.path, "the archive claims more than a model can hold")
        parts = []
        while size and (part := self._inflate(min(size, PART) if size > 0 else PART)):
            parts.append(part)
            size -= len(part) if size > 0 else 0
        return b"".join(parts)

    def seek(self, offset: int) -> int:
        """Go to an offset, or to the end where that is before; back by way of the start."""
        if offset < self._at:
            self._restart()
        while self._at < offset and self._inflate(min(offset - self._at, PART)):
            pass
        return self._at

    def tell(self) -> int:
        """The offset that is read next."""
        return self._at
