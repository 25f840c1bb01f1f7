"""MXNet's two rule tables and the way its attributes are spelled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from serde.errors import ConversionError
from serde.ir.geometry import Ints
from serde.ir.graph import DType
from serde.rewrite.rules import Rule, RuleTable

from .ops_without_attributes import LENIENT
from .unsupported_ops import REFUSED

Bounds = tuple[int | None, ...]
Floats = tuple[float, ...]
Pairs = tuple[tuple[int, int], ...]
INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
LARGEST = 1 << 63
BRACKETS = re.compile(r"[()\[\]]")
SUFFIXED = re.compile(r".*[\d.][fF]")
TRUTH = {"true": True, "1": True, "false": False, "0": False}
# Annotations that may stand on any node, since MXNet 0.8 also as ``<argument>_<key>``.
HIDDEN = ("lr_mult", "wd_mult", "ctx_group", "force_mirroring", "mirror_stage", "profiler_scope")


class Layer(NamedTuple):
    """One of the layers that oneDNN fused into a node: its operator and attributes."""

    op: str
    attrs: Mapping[str, Any]


def _int(text: str) -> int:
    text = text.strip().rstrip("Ll")
    # Old files write 1.0, or 1e6, for an integer.
    number = int(text) if INTEGER.fullmatch(text) else _number(text)
    if not -LARGEST <= number < LARGEST or number != int(number):
        raise ValueError(text)
    return int(number)


def _items(text: str) -> list[str]:
    inner = text.strip()
    if inner[:1] in "([" and inner[-1:] in ")]":
        inner = inner[1:-1]
    return [part for part in (p.strip() for p in inner.split(",")) if part]


def _ints(text: str) -> Ints:
    return () if text.strip() == "None" else tuple(_int(p) for p in _items(text))


def _bounds(text: str) -> Bounds:
    return tuple(None if p == "None" else _int(p) for p in _items(text))


def _bool(text: str) -> bool:
    return TRUTH[text.strip().lower()]


def _make_optional(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text.strip() == "None" else read(text)


def _number(text: str) -> float:
    """A number as C++ reads it, without what Python takes as well: ``1_000``, ``٣``."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def _float(text: str) -> float:
    """A number as C++ may write it, ``0.5f``."""
    return _number(text[:-1] if SUFFIXED.fullmatch(text) else text)


def _floats(text: str) -> Floats:
    return tuple(_float(p) for p in _items(text))


def _pairs(text: str) -> Pairs:
    numbers = [_int(p) for p in BRACKETS.sub(" ", text).split(",") if p.strip()]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


READERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    bool: ("a boolean", _bool),
    int: ("an integer", _int),
    float: ("a number", _float),
    str: ("a text", str),
    Ints: ("a tuple of integers", _ints),
    Bounds: ("a tuple of integers or None", _bounds),
    Floats: ("a tuple of numbers", _floats),
    Pairs: ("a tuple of pairs of integers", _pairs),
    int | None: ("an integer or None", _make_optional(_int)),
    float | None: ("a number or None", _make_optional(_float)),
    bool | None: ("a boolean or None", _make_optional(_bool)),
    str | None: ("a text or None", _make_optional(str)),
    Ints | None: ("a tuple of integers or None", _make_optional(_ints)),
    Floats | None: ("a tuple of numbers or None", _make_optional(_floats)),
}


LONGEST = 256  # characters of an attribute whose value is kept


def parse(kind: Any, raw: Any) -> Any:
    """Read an attribute as MXNet writes it: always a text."""
    if isinstance(raw, str) and kind not in READERS:
        raise ConversionError(f"{raw[:80]!r} is no subgraph")
    if not isinstance(raw, str):
        return raw  # which a pass has read
    return (_read if len(raw) <= LONGEST else _read.__wrapped__)(kind, raw)


@lru_cache(4096)
def _read(kind: Any, raw: str) -> Any:
    what, read = READERS[kind]
    try:
        return read(raw)
    except (KeyError, ValueError, OverflowError):
        raise ConversionError(f"{raw[:80]!r} is not {what}") from None


def is_hidden(name: str) -> bool:
    """Whether an attribute is an annotation, which no result depends on."""
    return name.startswith("__") or name.endswith(HIDDEN)


SECOND = 20000  # MXNet 2.0, as MXNet counts
NEWEST, LAST = 10901, 1 << 31
_changed: dict[range, RuleTable] = {}


def dtype_of(name: str) -> DType:
    """The element type MXNet calls ``name``."""
    return DType.of(name)


reads = RuleTable(
    "mxnet → ir", parse=parse, hidden=is_hidden, reasons=REFUSED, unset="None", lenient=LENIENT
)


def reads_between(first: int, end: int) -> RuleTable:
    """The table of what operators meant in releases from ``first`` up to ``end``.

    Numbers are MXNet's: 10300 is 1.3.0. Operators that it has no rule for mean what they do in
    ``reads``.
    """
    table = RuleTable("mxnet → ir", parse=parse, hidden=is_hidden, unset="None", lenient=LENIENT)
    return _changed.setdefault(range(first, end), table)


def changed_rules(version: int) -> dict[str, Rule]:
    """The rules of operators that mean something else in a release than in the newest 1.x."""
    known = min(max(version, 0), LAST - 1)
    tables = (table for span, table in _changed.items() if known in span)
    return {op: rule for table in tables for op, rule in table.rules.items()}


def note_old_meaning(g: Any, end: str) -> None:
    """Tell the user that a node is read as releases before ``end`` computed it."""
    g.note(f"is read as MXNet before {end} computed it, as the file is older; later it changed")


def reads_of(version: int) -> RuleTable:
    """The table for files of a release."""
    changed = changed_rules(version)
    return reads.merge(changed) if changed else reads


reads_second = reads_between(SECOND, LAST)
