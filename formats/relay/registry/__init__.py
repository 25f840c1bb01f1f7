"""What TVM declares of operators and attribute types: names, order, kinds and defaults.

Relay's text leaves out attributes that have their default, and the types of attributes; its JSON
holds all of them, and numbers look like references to other nodes. This table has both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from .data import TYPES

PREFIX = "relay.attrs."
ARANGE = "relay.attrs.ArangeAttrs"
OPERANDS_OF_ARANGE = ("start", "stop", "step")  # which TVM repeats as attributes
CHANGED = {  # fields whose default changed: their value is kept, because it tells the release
    (f"{PREFIX}BatchMatmulAttrs", "transpose_b"),
    *((f"{PREFIX}Conv{n}DTransposeAttrs", "kernel_layout") for n in (1, 2, 3)),
}
# What stands for the type of attributes in the table: of operators without any, and with any
APART = {"-": None, "DictAttrs": "DictAttrs"}
REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "REQUIRED"})()


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute.

    ``kind`` is how JSON holds it: ``i`` int, ``b`` bool, ``d`` double, ``s`` string and ``t`` data
    type in place; ``o`` an object, that is the index of another node, ``f`` an object of floats and
    ``v`` a virtual device, None where it is unconstrained.
    """

    name: str
    kind: str
    default: Any = REQUIRED


def attrs_key(op: str) -> str | None:
    """The type of the attributes of the operator ``op``; None if it has none or is unknown."""
    return _parse_ops().get(op)


def is_registered(op: str) -> bool:
    """Whether TVM 0.17 has the operator."""
    return op in _parse_ops()


def operators() -> frozenset[str]:
    """The names of TVM 0.17's operators."""
    return frozenset(_parse_ops())


def fields(type_key: str) -> Mapping[str, Field] | None:
    """The fields of an attribute type in TVM's order; None for a type TVM 0.17 lacks."""
    return _parse_attrs().get(type_key)


def drop_defaults(type_key: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` in TVM's order, without those that are the default, unless that has changed."""
    known = fields(type_key)
    if known is None:
        return dict(values)
    kept = {
        name: values[name]
        for name, declared in known.items()
        if name in values
        and (not _is_same(values[name], declared.default) or (type_key, name) in CHANGED)
    }
    return kept | {name: value for name, value in values.items() if name not in known}


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


@cache
def _parse_ops() -> dict[str, str | None]:
    return {
        word: APART.get(key, PREFIX + key)
        for key, *words in _split_paragraphs(TYPES)
        for word in words
        if ":" not in word
    }


@cache
def _parse_attrs() -> dict[str, Mapping[str, Field]]:
    return {
        PREFIX + key: MappingProxyType(
            {f.name: f for f in (_parse_field(word) for word in words if ":" in word)}
        )
        for key, *words in _split_paragraphs(TYPES)
        if key not in APART
    }


def _parse_field(word: str) -> Field:
    declaration, equals, default = word.partition("=")
    name, _, kind = declaration.partition(":")
    return Field(name, kind, _parse_value(default) if equals else REQUIRED)


def _parse_value(text: str) -> Any:
    value = json.loads(text)
    return tuple(value) if isinstance(value, list) else value


def _split_paragraphs(table: str) -> list[list[str]]:
    """The words of each paragraph, whose lines but the first are indented."""
    return [paragraph.split() for paragraph in re.split(r"\n(?! )", table.strip())]
