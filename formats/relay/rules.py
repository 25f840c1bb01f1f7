"""Relay's rule table and the way its attributes are held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from serde.errors import ConversionError, show_attribute
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph
from serde.rewrite.rules import RuleTable

from . import registry
from .partial_eval.types import dtype_of

Floats = tuple[float, ...]
Pairs = tuple[Ints, ...]


def _int(value: Any) -> int:
    if isinstance(value, (bool, str)) or int(value) != value:
        raise ValueError(value)
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, str):
        raise ValueError(value)
    return float(value)


def _bool(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _many(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def items(value: Any) -> tuple[Any, ...]:
        return tuple(map(read, value)) if isinstance(value, tuple) else (read(value),)

    return items


def _dtype(value: Any) -> DType | None:
    return dtype_of(value) if _text(value) not in ("", "void") else None


READERS: Mapping[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("an integer", _int),
    float: ("a number", _float),
    bool: ("a boolean", _bool),
    str: ("a text", _text),
    Ints: ("integers", _many(_int)),
    Floats: ("numbers", _many(_float)),
    DType: ("an element type", _dtype),
    Graph: ("a subgraph", lambda value: value),
    Pairs: ("pairs of integers", _many(_many(_int))),
    int | Ints: ("an integer or integers", lambda v: v if isinstance(v, int) else _many(_int)(v)),
}


def parse(kind: Any, raw: Any) -> Any:
    """An attribute as a rule declares it; ``kind | None`` takes None as well."""
    options = getattr(kind, "__args__", ()) if kind not in READERS else ()
    if type(None) in options:
        if raw is None:
            return None
        kind = next(o for o in options if o is not type(None))
    what, read = READERS[kind]
    try:
        value = read(raw)
    except (TypeError, ValueError, OverflowError):
        raise ConversionError(f"{show_attribute(raw)} is not {what}: it is dynamic") from None
    if value is None and type(None) not in options:
        raise ConversionError(f"{raw!r} is not {what}. Enter one in the module")
    return value


def defaults(op: str) -> dict[str, Any]:
    """The defaults TVM declares for the attributes of ``op``."""
    declared = registry.fields(registry.attrs_key(op) or "") or {}
    return {n: f.default for n, f in declared.items() if f.default is not registry.REQUIRED}


reads = RuleTable("relay → ir", parse=parse, defaults=defaults)
