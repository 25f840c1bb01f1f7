"""Memos of bounded size, and numbers that stand for equal attributes in their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

MOST = 20_000  # results kept in one memo
EXACT = frozenset({int, str, type(None)})  # types whose equal values are the same to the last bit
SHOWN = EXACT | {float}  # those that repr tells apart: 0.0 and -0.0 are equal
_numbers: dict[Any, int] = {}
_by_identity: dict[int, tuple[Mapping[str, Any], int | None]] = {}
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
    """A number that only the same attributes get, None for those with tensors or subgraphs."""
    if not isinstance(attrs, MappingProxyType):
        return _number(attrs)
    # Nothing changes these attributes, and the memo keeps them, so that no others get the address.
    entry = _by_identity.get(id(attrs))
    if entry is None:
        entry = memoize(_by_identity, id(attrs), lambda: (attrs, _number(attrs)))
    return entry[1]  # type: ignore[no-any-return]


def _number(attrs: Mapping[str, Any]) -> int | None:
    key = []
    for name, value in attrs.items():
        kind = type(value)
        kinds = set(map(type, value)) if kind is tuple else {kind}
        if not kinds <= SHOWN:
            return None
        key.append((name, kind, value if kinds <= EXACT else repr(value)))
    return memoize(_numbers, tuple(key), lambda: next(_next))  # type: ignore[no-any-return]
