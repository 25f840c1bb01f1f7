"""Writes the options of custom operators: a flexbuffer that maps names to numbers and lists."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

INT, FLOAT, MAP, INTS, BOOL = 1, 3, 9, 11, 26
WIDE = 3  # numbers of 8 bytes, as a power of two


def pack_map(options: Mapping[str, float | Sequence[int]]) -> bytes:
    """A map of numbers and lists of integers; each number and each distance has 8 bytes."""
    names = sorted(options)
    data = b"".join(name.encode() + b"\0" for name in names)
    data += bytes(-len(data) % 8)
    lists = {}
    for name in names:
        if isinstance(numbers := options[name], Sequence):
            lists[name] = len(data) + 8
            data += struct.pack(f"<{1 + len(numbers)}q", len(numbers), *numbers)
    data += struct.pack("<Q", len(names))
    keys, start = len(data), 0
    for name in names:
        data += struct.pack("<Q", len(data) - start)
        start += len(name) + 1
    data += struct.pack("<3Q", len(data) - keys, 8, len(names))
    values = len(data)
    for name in names:
        number = len(data) - lists[name] if name in lists else options[name]
        data += struct.pack("<d" if isinstance(number, float) else "<q", number)
    kinds = ({bool: BOOL, float: FLOAT, int: INT}.get(type(options[n]), INTS) for n in names)
    data += bytes(kind << 2 | WIDE for kind in kinds)
    return data + struct.pack("<Q", len(data) - values) + bytes([MAP << 2 | WIDE, 8])
