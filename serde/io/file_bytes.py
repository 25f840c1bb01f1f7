"""The bytes of a file, read page by page.

A file is never mapped: the system ends a process that touches what another has cut off (SIGBUS).
"""

from __future__ import annotations

import os
from typing import BinaryIO, overload

from serde.errors import MalformedFile
from serde.io.named_file import stat_open

PAGE_BITS = 16
PAGE = 1 << PAGE_BITS  # bytes
MOST_PAGES = 64  # that are kept
SHORTER = "it became shorter while it was read"


class FileBytes:
    """An open file, or ``size`` bytes from ``start`` of it, by index and slice as ``bytes`` are.

    Reading raises MalformedFile where the file has become shorter since.
    """

    def __init__(
        self, file: BinaryIO, path: str | os.PathLike[str], start: int = 0, size: int | None = None
    ) -> None:
        self.file, self.path, self.start = file, path, start
        self.size = stat_open(file).st_size - start if size is None else size
        self._pages: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...

    def __getitem__(self, at: int | slice) -> int | bytes:
        if isinstance(at, slice):
            begin, end, _ = at.indices(self.size)
            number = begin >> PAGE_BITS
            if end > (number + 1) << PAGE_BITS:
                return self._read(begin, end - begin)
            page, first = self._pages.get(number) or self._read_page(number), number << PAGE_BITS
            return page[begin - first : max(begin, end) - first]
        number = at >> PAGE_BITS
        return (self._pages.get(number) or self._read_page(number))[at & PAGE - 1]

    def _read_page(self, number: int) -> bytes:
        if len(self._pages) == MOST_PAGES:
            self._pages.clear()
        first = number << PAGE_BITS
        page = self._pages[number] = self._read(first, min(PAGE, max(0, self.size - first)))
        return page

    def _read(self, begin: int, size: int) -> bytes:
        self.file.seek(self.start + begin)
        data = self.file.read(size)
        if len(data) < size:
            raise MalformedFile(self.path, SHORTER)
        return data
