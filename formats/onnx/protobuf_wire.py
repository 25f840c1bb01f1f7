"""Protobuf's wire format, as much of it as is needed to leave weights where they are.

Layout (https://protobuf.dev/programming-guides/encoding/): a message is a run of fields, each a
varint key ``number << 3 | kind`` and a payload: kind 0 a varint, 1 eight bytes, 2 a length and that
many bytes, 5 four bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from serde.io.file_bytes import FileBytes

Bytes = bytes | memoryview | FileBytes
SHORT = [bytes((value,)) for value in range(0x80)]  # the varints of one byte
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Numbers of fields of ModelProto, GraphProto and TensorProto.
GRAPH, NODE, INITIALIZER, VALUE_INFO, RAW_DATA = 7, 1, 5, 13, 9


class WireError(ValueError):
    """The bytes are no protobuf message; ``offset`` is where that shows."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


def read_varint(view: Bytes, at: int, end: int) -> tuple[int, int]:
    """Decode a varint at ``at``; return it and the offset behind it."""
    if at < end and (byte := view[at]) < 0x80:
        return byte, at + 1
    value = shift = 0
    start = at
    while at < end and shift < 70:
        byte = view[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError("a number runs past its end", start)


def iterate_fields(view: Bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield ``(number, kind, field start, payload start, payload end)`` for each field."""
    at = start
    while at < end:
        begin, key = at, view[at]
        if key < 0x80:
            at += 1
        else:
            key, at = read_varint(view, at, end)
        number, kind = key >> 3, key & 7
        if kind == BYTES:
            if at < end and (size := view[at]) < 0x80:
                payload = at + 1
            else:
                size, payload = read_varint(view, at, end)
            at = payload + size
        elif kind == VARINT:
            payload = at
            _, at = read_varint(view, at, end)
        elif kind in (FIXED64, FIXED32):
            payload, at = at, at + (8 if kind == FIXED64 else 4)
        else:
            raise WireError(f"field {number} has the unknown kind {kind}", begin)
        if number == 0 or at > end:
            raise WireError(f"field {number} runs past the end of its message", begin)
        yield number, kind, begin, payload, at


def encode_varint(value: int) -> bytes:
    """Encode a non-negative integer."""
    if value <= 0x7F:
        return SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(4096)
def encode_header(number: int, size: int) -> bytes:
    """The key and length that go before ``size`` bytes of field ``number``."""
    return encode_varint(number << 3 | BYTES) + encode_varint(size)
