"""Writes flatbuffers in two passes: places first, then bytes in the order of the file.

A table is a mapping from field names to values, a union a pair of a table's name and that table. A
vector of bytes may be a ``Tensor``, whose bytes are copied from the file that they lie in.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from serde.errors import ConversionError
from serde.io.atomic_write import Sources
from serde.io.tensor_bytes import pack
from serde.ir.graph import Tensor

from .schema import Field, scalar_of, tables, unions

LARGEST = (1 << 31) - 1  # bytes that offsets reach
SHOWN = 8  # numbers in a message
ALIGNMENT = 16  # bytes that data of tensors begin at a multiple of
Table = Mapping[str, Any]
Content = bytes | Tensor | Callable[[], bytes]


class Part(NamedTuple):
    """A piece of the file: where it begins, and what is there.

    That is bytes, a function that makes them once all places are known, or a vector of the bytes of
    a tensor.
    """

    start: int
    size: int
    content: Content


class Layout:
    """The places of everything in a file whose root is one table."""

    def __init__(self, identifier: bytes, root: str, table: Table) -> None:
        self.parts: list[Part] = []
        self.end = 0
        self._vtables: dict[bytes, int] = {}
        self._waiting: deque[tuple[list[int], str, bool, Any]] = deque()
        head = self._refer(root, False, table)
        self._place(8, 4, lambda: struct.pack("<I", head[0]) + identifier)
        while self._waiting:
            slot, kind, is_vector, value = self._waiting.popleft()
            slot[0] = self._place_value(kind, is_vector, value)

    def write(self, out: BinaryIO, sources: Sources) -> int:
        """Write all parts; return how many bytes there are."""
        at = 0
        for start, size, content in self.parts:
            out.write(bytes(start - at))
            if isinstance(content, Tensor):
                out.write(struct.pack("<I", content.nbytes))
                write_tensor(content, out, sources)
            else:
                out.write(content if isinstance(content, bytes) else content())
            at = start + size
        return at

    def _refer(self, kind: str, is_vector: bool, value: Any) -> list[int]:
        """A box that will hold the place of a value, which is placed later."""
        slot = [0]
        self._waiting.append((slot, kind, is_vector, value))
        return slot

    def _place(self, size: int, alignment: int, content: Content, lead: int = 0) -> int:
        """Reserve bytes; what is behind the first ``lead`` begins at a multiple of a number."""
        start = self.end + -(self.end + lead) % alignment
        self.end = start + size
        if self.end > LARGEST:
            raise ConversionError("the file has more than 2 GiB beside its weights")
        self.parts.append(Part(start, size, content))
        return start

    def _place_value(self, kind: str, is_vector: bool, value: Any) -> int:
        if kind == "string":
            data = value.encode() if isinstance(value, str) else bytes(value)
            text = struct.pack("<I", len(data)) + data + b"\0"
            return self._place(len(text), 4, text)
        if not is_vector:
            return self._place_table(kind, value)
        if isinstance(value, Tensor):
            return self._place(4 + value.nbytes, ALIGNMENT, value, 4)
        scalar = scalar_of(kind)
        if scalar is not None:
            code, width = scalar
            data = struct.pack("<I", len(value)) + _pack_numbers(code, kind, value)
            return self._place(len(data), max(4, width), data, 4)
        slots = [self._refer(kind, False, element) for element in value]

        def vector() -> bytes:
            places = [slot[0] - (start + 4 + 4 * at) for at, slot in enumerate(slots)]
            return struct.pack(f"<I{len(places)}I", len(places), *places)

        start = self._place(4 + 4 * len(slots), 4, vector)
        return start

    def _place_table(self, kind: str, table: Table) -> int:
        fields = tables()[kind]
        present = [(at, f, v) for at, f in enumerate(fields) if (v := _value(f, table)) is not None]
        if unknown := set(table) - {f.name for f in fields}:
            raise ConversionError(f"{kind} has no field {', '.join(sorted(unknown))}")
        offsets, size = [0] * len(fields), 4
        ordered = sorted(present, key=lambda entry: -_width(entry[1]))
        for at, field, _ in ordered:
            size += -size % _width(field)
            offsets[at] = size
            size += _width(field)
        while offsets and not offsets[-1]:
            offsets.pop()
        vtable = struct.pack(f"<{len(offsets) + 2}H", 4 + 2 * len(offsets), size, *offsets)
        if vtable not in self._vtables:
            self._vtables[vtable] = self._place(len(vtable), 2, vtable)
        vtable_place = self._vtables[vtable]
        slots = {at: self._refer(*target) for at, f, v in present if (target := _target(f, v))}
        alignment = max([4, *(_width(f) for _, f, _ in present)])

        def inline() -> bytes:
            data = bytearray(size)
            struct.pack_into("<i", data, 0, start - vtable_place)
            for at, field, value in present:
                place = offsets[at]
                if at in slots:
                    struct.pack_into("<I", data, place, slots[at][0] - (start + place))
                else:
                    assert field.scalar is not None
                    number = _pack_numbers(field.scalar[0], field.name, [value])
                    data[place : place + len(number)] = number
            return bytes(data)

        start = self._place(size, alignment, inline)
        return start


def _pack_numbers(code: str, what: str, numbers: Sequence[float]) -> bytes:
    """Numbers in a type of a flatbuffer, of four bytes where it is of sizes."""
    try:
        return struct.pack(f"<{len(numbers)}{code}", *numbers)
    except (struct.error, OverflowError):
        raise ConversionError(
            f"{what} has a number beyond what a file of TensorFlow Lite holds of it: "
            f"{list(numbers)[:SHOWN]}. Give smaller sizes (--static, --input)"
        ) from None


def write_tensor(tensor: Tensor, out: BinaryIO, sources: Sources) -> None:
    """The bytes of a tensor, copied where they lie in a file."""
    if tensor.where is not None:
        sources.copy(tensor.where, out)
    else:
        out.write(pack(tensor.load(), tensor.dtype).data)


def _value(field: Field, table: Table) -> Any:
    """What a table has for a field; None for what need not be written."""
    value = table.get(field.name)
    if field.scalar is not None:
        return None if value == field.default else value
    return value


def _target(field: Field, value: Any) -> tuple[str, bool, Any] | None:
    """The type and the value that an offset leads to; None for a number."""
    if field.scalar is not None:
        return None
    if field.item in unions():
        kind, table = value
        return kind, False, table
    return field.item, field.is_vector, value


def _width(field: Field) -> int:
    return 4 if field.scalar is None else field.scalar[1]


def union_number(union: str, table: str) -> int:
    """The number that stands for a table of a union."""
    return unions()[union].index(table) + 1
