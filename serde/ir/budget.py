"""What one conversion may make of what it reads: a small file must not cost a large machine.

A file can claim any count: of elements, of results, of calls. Whatever makes values, bytes or work
out of a count charges it to the active budget first. Limits grow with what is read, so a large
model is bounded by its own size.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike

from serde.errors import ConversionError, MalformedFile


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of ``least`` units for any source, and ``growth`` more for each one it has."""

    least: int
    growth: int

    def of(self, count: int) -> int:
        """The limit for a source of ``count`` units."""
        return self.least + self.growth * count


BYTES = Limit(1 << 28, 64)  # of arrays, for each byte of the files that are read
VALUES = Limit(50_000, 64)  # of a graph, for each one of the source
VALUE = 1 << 10  # bytes that one value takes with its node, about
NODES = Limit(50_000, 64)  # that calls of functions become, for each one of the source
STEPS = Limit(100_000, 64)  # of an evaluation, for each expression of the source


class Budget:
    """The bytes and values that one conversion may still make.

    Bytes are those of arrays that are inflated, spread out or computed from counts; arrays that
    lie in a file as they are cost nothing.
    """

    def __init__(self) -> None:
        self.most_bytes = BYTES.least
        self.bytes = 0  # made so far
        self.values = 0  # that a graph may have
        self.more_values = 0  # for the bytes that are read, or allowed
        self._files: dict[tuple[int, int], int] = {}  # and bytes of them that are no array yet

    def add_file(
        self, file: tuple[int, int], nbytes: int, path: str | PathLike[str] = "", stored: int = -1
    ) -> None:
        """Allow what a file may become, once for each file.

        Where only ``stored`` bytes lie on the disk, these alone count, and its holes are charged:
        a copy has none.

        Raises:
            MalformedFile: where its holes are out of all proportion.
        """
        if file in self._files:
            return
        stored = nbytes if stored < 0 else min(stored, nbytes)
        self.add_bytes(stored)
        if nbytes > stored:
            self.charge_file(nbytes - stored, path, "the holes of a sparse file")
        self._files[file] = nbytes

    def charge_part(
        self, file: tuple[int, int], nbytes: int, path: str | PathLike[str], what: str
    ) -> None:
        """Charge an array that lies in a file, where others have taken up all of the file.

        Raises:
            MalformedFile: where arrays that share their bytes are out of all proportion.
        """
        left = self._files.get(file, 0)
        self._files[file] = max(left - nbytes, 0)
        if nbytes > left:
            self.charge_file(nbytes - left, path, what)

    def add_bytes(self, nbytes: int) -> None:
        """Allow what ``nbytes`` that are read may become."""
        self.most_bytes += BYTES.growth * nbytes
        self.more_values += nbytes // VALUE

    def allow_mebibytes(self, count: int) -> None:
        """Allow as many mebibytes, and as many values as take these, whatever is read."""
        self.most_bytes = max(self.most_bytes, count << 20)
        self.more_values = max(self.more_values, (count << 20) // VALUE)

    def affords(self, nbytes: int) -> bool:
        """Charge an array that need not be made, where there is enough left for it."""
        is_enough = self.bytes + nbytes <= self.most_bytes
        self.bytes += nbytes if is_enough else 0
        return is_enough

    def charge(self, nbytes: int, what: str) -> None:
        """Charge an array before it is made.

        Raises:
            ConversionError: where it is more than there is left.
        """
        if self.bytes + nbytes > self.most_bytes:
            raise ConversionError(
                f"{what} would take {nbytes >> 20} MiB, and all that is made "
                f"{(self.bytes + nbytes) >> 20}, of {self.most_bytes >> 20} that are in proportion "
                "to what is read: --max-growth allows more"
            )
        self.bytes += nbytes

    def charge_file(self, nbytes: int, path: str | PathLike[str], what: str) -> None:
        """Charge an array of a file before it is made.

        Raises:
            MalformedFile: where it is more than there is left.
        """
        try:
            self.charge(nbytes, what)
        except ConversionError as error:
            raise MalformedFile(path, error.reason) from None

    def limit_values(self, count: int) -> int:
        """How many values a graph of ``count`` may become.

        The first graph is the source's. Later ones have grown already, and may grow a little.
        """
        self.values = max(self.values or VALUES.of(count), count + VALUES.least)
        return self.values + self.more_values


_active: ContextVar[Budget | None] = ContextVar("budget", default=None)


def active_budget() -> Budget:
    """The budget of the conversion that is going on; outside of one, a new one."""
    return _active.get() or Budget()


@contextmanager
def within_budget() -> Iterator[Budget]:
    """Share one budget in the block: that around it, where there is one."""
    outer = _active.get()
    token = _active.set(outer or Budget())
    try:
        yield active_budget()
    finally:
        _active.reset(token)
