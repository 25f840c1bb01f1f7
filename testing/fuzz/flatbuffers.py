"""Ways to damage a model of TensorFlow Lite: its tables, written anew, and words of its bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from serde.errors import ConversionError, MalformedFile
from serde.formats.tflite.io.read_flatbuffer import Span, read_model
from testing.tflite.models import write as write_tables

from .numbers import FLOATS, INTS, TEXTS


def of_tables(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes | None:
    """Change one field of one table of a TensorFlow Lite model, or a word of its bytes."""
    if random.random() < 0.1:
        return of_words(data, random)
    try:
        model = _as_written(read_model(data, "model"), data)
        places = [*_list_places(model)]
        table, key = random.choice(places)
        _change_field(table, key, random, random.choice(places)[0])
        return write_tables(model)
    except (MalformedFile, struct.error, ConversionError, LookupError, TypeError, ValueError):
        return None


def _as_written(value: Any, data: bytes) -> Any:
    """Tables as they are written: lists in place of tuples, bytes in place of where they are."""
    if isinstance(value, Span):
        return [*data[value.start : value.start + value.size]]
    if isinstance(value, dict):
        return {k: _as_written(v, data) for k, v in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        return value[0], _as_written(value[1], data)
    return [_as_written(v, data) for v in value] if isinstance(value, (list, tuple)) else value


def _list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each table or list with a key or a place of it."""
    if isinstance(value, tuple):
        yield from _list_places(value[1])
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from _list_places(inner)


def _change_field(table: Any, key: Any, random: Random, other: Any) -> None:
    """Another number, nothing, or what stands elsewhere, in place of a field."""
    value, kind = table[key], random.randrange(6)
    if kind == 0:
        del table[key]
    elif kind == 1 and isinstance(table, list):
        table.insert(key, value)
    elif isinstance(value, bool):
        table[key] = not value
    elif isinstance(value, int):
        table[key] = random.choice((value + 1, value - 1, -1, 0, 1, 2, 3, 7, 127, *INTS))
    elif isinstance(value, float):
        table[key] = random.choice(FLOATS)
    elif isinstance(value, str):
        table[key] = random.choice(TEXTS)
    elif isinstance(value, list) and kind < 4:
        table[key] = [*value, *value] if kind == 2 else value[: random.randrange(len(value) + 1)]
    elif type(other) is type(table) and isinstance(table, dict) and key in other:
        table[key] = other[key]


def of_words(data: bytes, random: Random) -> bytes | None:
    """Change a word of a flatbuffer, which is an offset, a size, a place or a number of it."""
    count = len(data) // 4
    if not count:
        return None
    raw = bytearray(data)
    at, there = (4 * random.randrange(count) for _ in range(2))
    word = int.from_bytes(raw[at : at + 4], "little") + random.choice((-4, -2, -1, 1, 2, 4))
    word = random.choice((word, random.choice(INTS))) & 0xFFFFFFFF
    raw[at : at + 4] = random.choice((word.to_bytes(4, "little"), raw[there : there + 4]))
    return bytes(raw)
