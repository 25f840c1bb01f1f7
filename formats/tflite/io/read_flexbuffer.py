"""Reads the options of custom operators: a flexbuffer that is a map of names to numbers."""

from __future__ import annotations

import struct

LONGEST = 64  # bytes of a name
INT, UINT, FLOAT, MAP, BOOL = 1, 2, 3, 9, 26
INDIRECT = 5  # what the kind of a number is higher by that stands elsewhere
CODES = {INT: " bh i   q", UINT: " BH I   Q", FLOAT: "  e f   d", BOOL: " BH I   Q"}


def read_map(data: bytes) -> dict[str, int | float]:
    """The numbers of a map by name; what is no number is left out.

    Raises:
        ValueError: where it is no map, or leads out of the bytes.
    """
    try:
        return _read_map(data)
    except (IndexError, struct.error) as error:
        raise ValueError("options that lead out of their bytes") from error


def _read_map(data: bytes) -> dict[str, int | float]:
    width, packed = data[-1], data[-2]
    if packed >> 2 != MAP:
        raise ValueError("options that are no map")
    at, width = _follow(data, len(data) - 2 - width, width), 1 << (packed & 3)
    size = _count(data, at - width, width)
    keys, key_width = _follow(data, at - 3 * width, width), _count(data, at - 2 * width, width)
    mapping = {}
    for n in range(size):
        packed, place, each = data[at + size * width + n], at + n * width, width
        kind = packed >> 2
        if kind - INDIRECT in CODES:
            kind, place, each = kind - INDIRECT, _follow(data, place, width), 1 << (packed & 3)
        start = _follow(data, keys + n * key_width, key_width)
        if kind in CODES:
            name = data[start : data.index(0, start, start + LONGEST)].decode("utf-8", "replace")
            mapping[name] = _number(data, place, each, kind)
    return mapping


def _follow(data: bytes, at: int, width: int) -> int:
    """The place that an offset at ``at`` leads back to."""
    return at - _count(data, at, width)


def _count(data: bytes, at: int, width: int) -> int:
    return int(_number(data, at, width, UINT))


def _number(data: bytes, at: int, width: int, kind: int) -> int | float:
    code = CODES[kind][width]
    if at < 0 or code == " ":
        raise IndexError(at)
    number: int | float = struct.unpack_from(f"<{code}", data, at)[0]
    return number
