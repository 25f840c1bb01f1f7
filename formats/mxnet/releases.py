"""The releases of MXNet that symbols are written for, and what each of them lacks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from serde.errors import UsageError

from .release_data import BROUGHT, REMOVED, RENAMED

OLDEST, SECOND = "1.2", "2.0"
NEWEST = "1.9.1"  # written for where nothing else is asked for
FIRST = (OLDEST, *BROUGHT)  # of MXNet 1.x
KNOWN = (*FIRST, SECOND)
FORM = re.compile(r"(\d{1,2})\.(\d{1,2})(\.\d{1,2})?", re.ASCII)  # builds add to it: 1.7.0.post2


class Release(NamedTuple):
    """A release: its name, its number as MXNet counts, and why it lacks what it lacks.

    Things are ``op``, ``op.attribute`` and ``op.attribute=value``, as in ``release_data``, whose
    names of operators are those of the newest 1.x; ``renamed`` are those that it has others for.
    """

    name: str
    number: int
    lacks: Mapping[str, str]
    renamed: Mapping[str, str]

    def missing_reason(self, op: str, attrs: Mapping[str, Any]) -> str | None:
        """Why a node cannot be written for the release, None if it can."""
        if not self.lacks:
            return None
        pairs = ((name, v) for name, v in attrs.items() if v is not None)
        for thing in (op, *(t for name, v in pairs for t in (name, f"{name}={v}"))):
            full = op if thing is op else f"{op}.{thing}"
            if full in self.lacks:
                what = f"operator {op}" if thing is op else f"{thing} for {op}"
                return f"MXNet {self.name} has no {what}, which {self.lacks[full]}"
        return None

    def has(self, op: str, **attrs: Any) -> bool:
        """Whether the release has an operator, with these attributes."""
        return self.missing_reason(op, attrs) is None

    @property
    def has_bool(self) -> bool:
        """Whether tensors may hold booleans."""
        return self.has("Cast", dtype="bool")

    @property
    def has_doubles(self) -> bool:
        """Whether a number beside a tensor is of 64 bits."""
        return self.has("_plus_scalar", scalar="double")

    @property
    def has_np_shape(self) -> bool:
        """Whether shapes are NumPy's, where a size of 0 is none that is unknown."""
        return self.name.startswith(SECOND)


def get_release(text: str | None) -> Release:
    """The release called ``1.6`` or ``1.6.0``; the newest 1.x if None.

    Raises:
        UsageError: for a text that is none, and for releases that are not written for.
    """
    match = FORM.match(NEWEST if text is None else str(text))
    if match is None or f"{match[1]}.{match[2]}" not in KNOWN:
        raise UsageError(f"mxnet={text!r}: symbols are written for releases {', '.join(KNOWN)}")
    return _parse_release(match[0])


@lru_cache(64)
def _parse_release(text: str) -> Release:
    major, minor, *patch = (int(n) for n in text.split("."))
    number = major * 10000 + minor * 100 + sum(patch)
    short = f"{major}.{minor}"
    if short == SECOND:
        removed = dict.fromkeys(REMOVED.split(), f"only MXNet {FIRST[-1]} and before have")
        return Release(text, number, removed, RENAMED)
    later = FIRST[FIRST.index(short) + 1 :]
    lacks = {t: f"came with {name}" for name in later for t in BROUGHT[name].split()}
    return Release(text, number, lacks, {})
