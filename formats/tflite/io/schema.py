"""TensorFlow Lite's schema: fields of tables in the order of their numbers, and enumerations."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from . import schema_data

SCALARS = {
    "bool": ("?", 1), "int8": ("b", 1), "ubyte": ("B", 1), "short": ("h", 2), "ushort": ("H", 2),
    "int": ("i", 4), "uint": ("I", 4), "float": ("f", 4), "long": ("q", 8), "ulong": ("Q", 8),
    "double": ("d", 8),
}  # fmt: skip
WIDE_ENUMS = {"BuiltinOperator": "int", "ReduceWindowFunction": "int"}  # others are of a byte
UNION_TYPE = "_type"  # ends the name of the field that tells which table a union holds


class Field(NamedTuple):
    """A field of a table.

    ``scalar`` is the ``struct`` code and the size of a number, None for what an offset leads to;
    ``item`` is the type of a table, of a union's choice, or of an element, without brackets.
    """

    name: str
    item: str
    is_vector: bool
    scalar: tuple[str, int] | None
    default: int | float | bool


def _lines(text: str) -> dict[str, list[str]]:
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: row[1:] for row in rows}


@cache
def enums() -> dict[str, dict[str, int]]:
    """The numbers of each enumeration by name."""
    by_name: dict[str, dict[str, int]] = {}
    for name, members in _lines(schema_data.ENUMS).items():
        numbers: dict[str, int] = {}
        for member in members:
            key, _, number = member.partition("=")
            numbers[key] = int(number) if number else max(numbers.values(), default=-1) + 1
        by_name[name] = numbers
    return by_name


@cache
def enum_names() -> dict[str, dict[int, str]]:
    """The names of each enumeration by their numbers."""
    return {kind: {number: n for n, number in members.items()} for kind, members in enums().items()}


@cache
def unions() -> dict[str, tuple[str, ...]]:
    """The tables that each union may hold; the first is number 1."""
    return {name: tuple(members) for name, members in _lines(schema_data.UNIONS).items()}


@cache
def tables() -> dict[str, tuple[Field, ...]]:
    """The fields of each table; a union has two, the number of its choice first."""
    return {
        name: tuple(field for text in fields for field in _parse(text))
        for name, fields in _lines(schema_data.TABLES).items()
    }


def scalar_of(kind: str) -> tuple[str, int] | None:
    """The ``struct`` code and size of a number, None for other types."""
    return SCALARS.get(WIDE_ENUMS.get(kind, "int8") if kind in enums() else kind)


def _parse(text: str) -> list[Field]:
    name, _, rest = text.partition(":")
    kind, _, default = rest.partition("=")
    item = kind.strip("[]")
    if kind in unions():
        number = Field(name + UNION_TYPE, "ubyte", False, SCALARS["ubyte"], 0)
        return [number, Field(name, item, False, None, 0)]
    if kind != item:
        return [Field(name, item, True, None, 0)]
    scalar = scalar_of(item)
    return [Field(name, item, False, scalar, _number(item, default) if scalar else 0)]


def _number(kind: str, text: str) -> int | float | bool:
    if kind in enums():
        return enums()[kind].get(text, 0)
    if kind == "bool":
        return text == "true"
    return float(text or 0) if kind in ("float", "double") else int(text or 0)
