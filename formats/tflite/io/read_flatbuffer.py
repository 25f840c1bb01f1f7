"""Reads flatbuffers of the schema, every offset checked against the bytes there are.

What is read is limited by the size of the file: tables that overlap, or are named over and over,
end in an error, and the schema's tables do not nest without end.
"""

from __future__ import annotations

import struct
from os import PathLike
from typing import Any

from serde.errors import MalformedFile

from .schema import UNION_TYPE, Field, scalar_of, tables, unions

MOST_READ, SPARE = 4, 1 << 10  # times as many bytes may be read as there are, and some more
IDENTIFIER = b"TFL3"
Bytes = bytes | memoryview


def read_model(data: Bytes, path: str | PathLike[str]) -> dict[str, Any]:
    """The root table of a file.

    Raises:
        MalformedFile: where an offset or a length leads out of the file, or tables overlap.
    """
    reader = _Reader(memoryview(data), path)
    if bytes(data[4:8]) != IDENTIFIER:
        raise MalformedFile(path, "it does not begin as a TensorFlow Lite model", "byte 4")
    return reader.table("Model", reader.offset(0))


class _Reader:
    def __init__(self, data: memoryview, path: str | PathLike[str]) -> None:
        self.data, self.path = data, path
        self.left = MOST_READ * len(data) + SPARE

    def fail(self, reason: str, at: int) -> MalformedFile:
        return MalformedFile(self.path, reason, f"byte {at}")

    def part(self, at: int, size: int) -> memoryview:
        """Bytes that have to be there."""
        if at < 0 or at + size > len(self.data):
            raise self.fail(f"{size} bytes are said to be where the file has ended", at)
        self.left -= size
        if self.left < 0:
            raise self.fail("tables overlap", at)
        return self.data[at : at + size]

    def number(self, code: str, size: int, at: int) -> Any:
        return struct.unpack("<" + code, self.part(at, size))[0]

    def offset(self, at: int) -> int:
        """The place that an offset leads to."""
        target = at + int(self.number("I", 4, at))
        if target <= at:
            raise self.fail("an offset leads to itself", at)
        return target

    def table(self, kind: str, at: int) -> dict[str, Any]:
        """The fields of a table that are written, the rest with their defaults for numbers."""
        fields = tables()[kind]
        vtable = at - int(self.number("i", 4, at))
        vtable_size, size = struct.unpack("<2H", self.part(vtable, 4))
        if vtable_size < 4 or vtable_size % 2 or size < 4:
            raise self.fail(f"the size of a {kind} cannot be", vtable)
        self.part(at, size)
        places = struct.unpack(f"<{vtable_size // 2 - 2}H", self.part(vtable + 4, vtable_size - 4))
        found: dict[str, Any] = {}
        for field, place in zip(fields, (*places, *[0] * len(fields)), strict=False):
            if not place:
                if field.scalar is not None:
                    found[field.name] = field.default
                continue
            if place + (4 if field.scalar is None else field.scalar[1]) > size:
                raise self.fail(f"{field.name} of a {kind} is outside of it", at + place)
            found[field.name] = self.field(field, at + place, found)
        return found

    def field(self, field: Field, at: int, found: dict[str, Any]) -> Any:
        if field.scalar is not None:
            return self.number(*field.scalar, at)
        target = self.offset(at)
        if field.item in unions():
            members, number = unions()[field.item], int(found[field.name + UNION_TYPE])
            if not 0 < number <= len(members):
                raise self.fail(f"{field.name} is of a kind that is not known", at)
            return members[number - 1], self.table(members[number - 1], target)
        if field.item == "string":
            return self.text(field, target)
        return self.vector(field, target) if field.is_vector else self.table(field.item, target)

    def text(self, field: Field, at: int) -> Any:
        if not field.is_vector:
            return bytes(self.part(at + 4, self.number("I", 4, at))).decode("utf-8", "replace")
        return [self.text(field._replace(is_vector=False), p) for p in self.places(at)]

    def vector(self, field: Field, at: int) -> Any:
        """Numbers as a tuple, bytes as a view of the file, tables in a list."""
        scalar = scalar_of(field.item)
        if scalar is None:
            return [self.table(field.item, place) for place in self.places(at)]
        code, size = scalar
        count = int(self.number("I", 4, at))
        data = self.part(at + 4, count * size)
        return data if code == "B" else struct.unpack(f"<{count}{code}", data)

    def places(self, at: int) -> list[int]:
        """Where the elements of a vector of offsets are."""
        count = int(self.number("I", 4, at))
        self.part(at + 4, 4 * count)
        return [self.offset(at + 4 + 4 * n) for n in range(count)]
