"""Reads the options of custom operators: a flexbuffer that maps names to numbers and lists."""

from __future__ import annotations

import struct
from typing import Any

LONGEST = 64  # bytes of a name
INT, UINT, FLOAT, MAP, BOOL = 1, 2, 3, 9, 26
INDIRECT = 5  # what the kind of a number is higher by that stands elsewhere
LIST = 10  # and that of a list of numbers, in front of which its length stands
CODES = {INT: " bh i   q", UINT: " BH I   Q", FLOAT: "  e f   d", BOOL: " BH I   Q"}


def read_map(data: bytes) -> dict[str, Any]:
    """The numbers of a map by name, and lists of numbers; what is neither is left out.

    Raises:
        ValueError: where it is no map, or leads out of the bytes.
    """
    try:
        return _read_map(data)
    except (IndexError, struct.error) as error:
        raise ValueError("options that lead out of their bytes") from error


def _read_map(data: bytes) -> dict[str, Any]:
    width, packed = data[-1], data[-2]
    if packed >> 2 != MAP:
        raise ValueError("options that are no map")
    at, width = _follow(data, len(data) - 2 - width, width), 1 << (packed & 3)
    size = _count(data, at - width, width)
    keys, key_width = _follow(data, at - 3 * width, width), _count(data, at - 2 * width, width)
    mapping: dict[str, Any] = {}
    left = len(data)  # of the numbers of all lists: some may be one in the bytes
    for n in range(size):
        packed, place, each = data[at + size * width + n], at + n * width, width
        kind = packed >> 2
        if kind - INDIRECT in CODES or kind - LIST in CODES:
            place, each = _follow(data, place, width), 1 << (packed & 3)
        name = _read_name(data, keys + n * key_width, key_width)
        if kind - LIST in CODES:
            length = _count(data, place - each, each)
            left -= length
            if left < 0:
                raise ValueError("options that are longer than their bytes")
            places = range(place, place + length * each, each)
            mapping[name] = [_number(data, start, each, kind - LIST) for start in places]
        elif (kind := kind - INDIRECT if kind - INDIRECT in CODES else kind) in CODES:
            mapping[name] = _number(data, place, each, kind)
    return mapping


def _read_name(data: bytes, at: int, width: int) -> str:
    start = _follow(data, at, width)
    return data[start : data.index(0, start, start + LONGEST)].decode("utf-8", "replace")


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
