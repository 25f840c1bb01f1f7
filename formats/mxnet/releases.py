"""The releases of MXNet that symbols are written for, and what each of them lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from serde.errors import UsageError

from .release_data import BROUGHT

OLDEST = "1.5"
NEWEST = "1.9.1"  # written for where nothing else is asked for
KNOWN = (OLDEST, *BROUGHT)
FORM = re.compile(r"(\d{1,2})\.(\d{1,2})(\.\d{1,2})?", re.ASCII)  # builds add to it: 1.7.0.post2


class Release(NamedTuple):
    """A release: its name, its number as MXNet counts, and when what it lacks came.

    Things are ``op``, ``op.attribute`` and ``op.attribute=value``, as in ``release_data``.
    """

    name: str
    number: int
    lacks: Mapping[str, str]

    def missing_reason(self, op: str, attrs: Mapping[str, Any]) -> str | None:
        """Why a node cannot be written for the release, None if it can."""
        for thing in (op, *(t for name, v in attrs.items() for t in (name, f"{name}={v}"))):
            full = op if thing is op else f"{op}.{thing}"
            if full in self.lacks:
                what = f"operator {op}" if thing is op else f"{thing} for {op}"
                return f"MXNet {self.name} has no {what}, which came with {self.lacks[full]}"
        return None

    @property
    def has_bool(self) -> bool:
        """Whether tensors may hold booleans."""
        return "Cast.dtype=bool" not in self.lacks

    @property
    def has_doubles(self) -> bool:
        """Whether a number beside a tensor is of 64 bits."""
        return "_plus_scalar.scalar=double" not in self.lacks


def get_release(text: str | None) -> Release:
    """The release called ``1.6`` or ``1.6.0``; the newest if None.

    Raises:
        UsageError: for a text that is none, and for releases that are not written for.
    """
    found = FORM.match(NEWEST if text is None else str(text))
    if found is None or f"{found[1]}.{found[2]}" not in KNOWN:
        raise UsageError(f"mxnet={text!r}: symbols are written for releases {', '.join(KNOWN)}")
    return _parse_release(found[0])


@cache
def _parse_release(text: str) -> Release:
    major, minor, *patch = (int(n) for n in text.split("."))
    at = KNOWN.index(f"{major}.{minor}")
    lacks = {thing: later for later in KNOWN[at + 1 :] for thing in BROUGHT[later].split()}
    return Release(text, major * 10000 + minor * 100 + sum(patch), lacks)
