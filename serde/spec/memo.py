"""Memos of bounded size, and numbers that stand for equal attributes in their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

MOST = 20_000  # results kept in one memo
LONGEST = 256  # elements of a list, characters of a text
EXACT = frozenset({int, str, type(None)})  # types whose equal values are the same to the last bit
SHOWN = EXACT | {float}  # those that repr tells apart: 0.0 and -0.0 are equal
_numbers: dict[Any, int] = {}
_next = count()


def memoize(memo: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """What ``memo`` holds for ``key``, made where it holds nothing; a full memo starts anew."""
    value = memo.get(key)
    if value is None:
        if len(memo) >= MOST:
            memo.clear()
        value = memo[key] = make()
    return value


def number_attributes(attrs: Mapping[str, Any]) -> int | None:
    """A number that only the same attributes get, None for those that are not to be kept.

    Tensors and subgraphs are not, nor long lists and texts.
    """
    key = []
    for name, value in attrs.items():
        kind = type(value)
        kinds = set(map(type, value)) if kind is tuple else {kind}
        if not kinds <= SHOWN or (kind in (tuple, str) and len(value) > LONGEST):
            return None
        key.append((name, kind, value if kinds <= EXACT else repr(value)))
    return memoize(_numbers, tuple(key), lambda: next(_next))  # type: ignore[no-any-return]


class AttributeNumbers:
    """Numbers of the attributes of a graph's nodes, many of which share a mapping."""

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[Mapping[str, Any], int | None]] = {}  # by the mapping's id

    def __call__(self, attrs: Mapping[str, Any]) -> int | None:
        """The number of ``number_attributes``."""
        known = self._numbers.get(id(attrs))
        if known is None:
            known = self._numbers[id(attrs)] = attrs, number_attributes(attrs)
        return known[1]
