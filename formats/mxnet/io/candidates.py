"""A file that may be an MXNet symbol or its parameters, in a folder or an archive."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from serde.io.archive import Archive
from serde.io.sniff import read_head, read_regular

from .magic import looks_like_block, looks_like_params, looks_like_symbol
from .params import Params, parse_params, read_params

EPOCH = re.compile(r"-(\d{4,})\.params$")  # as MXNet writes it
ANY_EPOCH = re.compile(r"-(\d+)\.params$")  # as others do, where what precedes it is a symbol's
SYMBOL = "-symbol.json"
MOST_JSON = 1 << 28  # bytes of symbol JSON


class Candidate(NamedTuple):
    """A file in a folder or an archive: what errors call it, its start, and ways to read it."""

    name: str
    head: bytes
    text: Callable[[], bytes]
    params: Callable[[], Params]

    @property
    def prefix(self) -> str:
        """The name without what tells a symbol from parameters, and one epoch from another."""
        if self.is_symbol:
            return self.name.removesuffix(".json").removesuffix("-symbol")
        return EPOCH.sub("", self.name).removesuffix(".params")

    def belongs_to(self, prefix: str) -> bool:
        """Whether the name of a parameter file is ``prefix`` and an epoch of any digits, if any."""
        without = {self.prefix, self.name.removesuffix(".params"), ANY_EPOCH.sub("", self.name)}
        return prefix in without

    def epoch(self, prefix: str) -> int | None:
        """The number behind ``prefix`` at the end of a parameter file's name."""
        match = ANY_EPOCH.search(self.name)
        if match is None or self.name == f"{prefix}.params":
            return None
        is_own = self.name[: match.start()] == prefix
        return int(match[1]) if is_own or EPOCH.search(self.name) else None

    @property
    def is_symbol(self) -> bool:
        """Whether the name or the content says symbol."""
        known = looks_like_symbol(self.head) or looks_like_block(self.head)
        return self.name.endswith(SYMBOL) or known

    @property
    def is_params(self) -> bool:
        """Whether the name or the content says parameters."""
        return self.name.endswith(".params") or looks_like_params(self.head)


def open_file(path: Path, head: bytes | None = None) -> Candidate:
    """A file of a folder; without its ``head`` that is read."""
    name = str(path)
    head = read_head(path) if head is None else head
    return Candidate(name, head, partial(_text, path), partial(read_params, name))


def open_member(archive: Archive, name: str) -> Candidate:
    """A member of an archive."""
    text, params = partial(archive.read, name, MOST_JSON), partial(_read_member, archive, name)
    return Candidate(name, archive.head(name), text, params)


def _read_member(archive: Archive, name: str) -> Params:
    """The parameters in an archive: where they are if they lie there as they are."""
    span = archive.span(name)
    return parse_params(archive.read(name), name) if span is None else (
        read_params(archive.path, name, *span)
    )  # fmt: skip


def _text(path: Path) -> bytes:
    return read_regular(path, MOST_JSON)


def base_name(name: str) -> str:
    """A name without the folder or archive it lies in."""
    return re.split(r"[/\\:]", name)[-1]
