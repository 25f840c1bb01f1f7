"""Reads flatbuffers of the schema, every offset checked against the bytes there are.

What is read is limited by the size of the file: tables that overlap, or are named over and over,
end in an error, and the schema's tables do not nest without end.
"""

from __future__ import annotations

import struct
from itertools import chain, repeat
from os import PathLike
from typing import Any, NamedTuple

from serde.errors import MalformedFile
from serde.io.file_bytes import FileBytes

from .schema import UNION_TYPE, Field, scalar_of, tables, unions

OPTIONS = "Options"  # ends the names of tables that say how an operator computes
MOST_READ, SPARE = 4, 1 << 10  # times as many bytes may be read as there are, and some more
IDENTIFIER = b"TFL3"
Bytes = bytes | FileBytes


class Span(NamedTuple):
    """Where a vector of bytes is in the file."""

    start: int
    size: int


def read_model(data: Bytes, path: str | PathLike[str]) -> dict[str, Any]:
    """The root table of a file; vectors of bytes are a ``Span`` of it.

    Raises:
        MalformedFile: where an offset or a length leads out of the file, or tables overlap.
    """
    reader = _Reader(data, path)
    if bytes(data[4:8]) != IDENTIFIER:
        raise MalformedFile(path, "it does not begin as a TensorFlow Lite model", "byte 4")
    try:
        return reader.table("Model", reader.offset(0))
    except RecursionError:
        raise MalformedFile(path, "its tables nest too deep") from None


class _Reader:
    def __init__(self, data: Bytes, path: str | PathLike[str]) -> None:
        self.data, self.path = data, path
        self.left = MOST_READ * len(data) + SPARE

    def fail(self, reason: str, at: int) -> MalformedFile:
        return MalformedFile(self.path, reason, f"byte {at}")

    def unpack(self, codes: str, at: int) -> tuple[Any, ...]:
        """Numbers that have to be there."""
        size = struct.calcsize("<" + codes)
        self.check(at, size)
        return struct.unpack("<" + codes, self.data[at : at + size])

    def check(self, at: int, size: int) -> None:
        """Refuse bytes that are not there."""
        if at < 0 or at + size > len(self.data):
            raise self.fail(f"{size} bytes are said to be where the file has ended", at)
        self.left -= size
        if self.left < 0:
            raise self.fail("tables overlap", at)

    def count(self, at: int) -> int:
        """How many elements a vector has."""
        return int(self.unpack("I", at)[0])

    def offset(self, at: int) -> int:
        """The place that an offset leads to."""
        target = at + self.count(at)
        if target <= at:
            raise self.fail("an offset leads to itself", at)
        return target

    def table(self, kind: str, at: int) -> dict[str, Any]:
        """The fields of a table that are written, the rest with their defaults for numbers."""
        fields = tables()[kind]
        vtable = at - int(self.unpack("i", at)[0])
        vtable_size, size = self.unpack("2H", vtable)
        if vtable_size < 4 or vtable_size % 2 or size < 4:
            raise self.fail(f"the size of a {kind} cannot be", vtable)
        self.check(at, size)
        places = self.unpack(f"{vtable_size // 2 - 2}H", vtable + 4)
        values: dict[str, Any] = {}
        if kind.endswith(OPTIONS) and any(places[len(fields) :]):
            raise self.fail(
                f"{kind} has fields that are not known: the file is of a newer release", at
            )
        for field, place in zip(fields, chain(places, repeat(0)), strict=False):
            if not place:
                if field.scalar is not None:
                    values[field.name] = field.default
                continue
            if place + (4 if field.scalar is None else field.scalar[1]) > size:
                raise self.fail(f"{field.name} of a {kind} is outside of it", at + place)
            values[field.name] = self.field(field, at + place, values)
        return values

    def field(self, field: Field, at: int, values: dict[str, Any]) -> Any:
        if field.scalar is not None:
            return self.unpack(field.scalar[0], at)[0]
        target = self.offset(at)
        if field.item in unions():
            members, number = unions()[field.item], int(values[field.name + UNION_TYPE])
            if not 0 < number <= len(members):
                raise self.fail(f"{field.name} is of a kind that is not known", at)
            return members[number - 1], self.table(members[number - 1], target)
        if field.item == "string":
            return self.text(field, target)
        return self.vector(field, target) if field.is_vector else self.table(field.item, target)

    def text(self, field: Field, at: int) -> Any:
        if not field.is_vector:
            size = self.count(at)
            self.check(at + 4, size)
            return bytes(self.data[at + 4 : at + 4 + size]).decode("utf-8", "replace")
        return [self.text(field._replace(is_vector=False), p) for p in self.places(at)]

    def vector(self, field: Field, at: int) -> Any:
        """Numbers as a tuple, bytes as their place in the file, tables in a list."""
        scalar = scalar_of(field.item)
        if scalar is None:
            return [self.table(field.item, place) for place in self.places(at)]
        code, count = scalar[0], self.count(at)
        if code != "B":
            return self.unpack(f"{count}{code}", at + 4)
        self.check(at + 4, count)
        return Span(at + 4, count)

    def places(self, at: int) -> list[int]:
        """Where the elements of a vector of offsets are."""
        count = self.count(at)
        self.check(at + 4, 4 * count)
        return [self.offset(at + 4 + 4 * n) for n in range(count)]
