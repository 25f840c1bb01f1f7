"""Writes the options of custom operators: a flexbuffer that is a map of names to numbers."""

from __future__ import annotations

import struct
from collections.abc import Mapping

INT, FLOAT, MAP, BOOL = 1, 3, 9, 26
WIDE = 3  # numbers of 8 bytes, as a power of two


def pack_map(numbers: Mapping[str, float]) -> bytes:
    """A map, in which each number and each distance has 8 bytes."""
    names = sorted(numbers)
    data = b"".join(name.encode() + b"\0" for name in names)
    data += bytes(-len(data) % 8) + struct.pack("<Q", len(names))
    keys, start = len(data), 0
    for name in names:
        data += struct.pack("<Q", len(data) - start)
        start += len(name) + 1
    data += struct.pack("<3Q", len(data) - keys, 8, len(names))
    values = len(data)
    for name in names:
        data += struct.pack("<d" if isinstance(numbers[name], float) else "<q", numbers[name])
    kinds = ({bool: BOOL, float: FLOAT}.get(type(numbers[name]), INT) for name in names)
    data += bytes(kind << 2 | WIDE for kind in kinds)
    return data + struct.pack("<Q", len(data) - values) + bytes([MAP << 2 | WIDE, 8])
