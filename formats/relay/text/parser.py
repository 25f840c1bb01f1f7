"""Relay modules in TVM's text form, 0.6 (``v0.0.4``) to 0.19 (``#[version = "0.0.5"]``).

Read as well, though TVM's own parser does not: text without a header, single functions and
expressions, names printed raw, NaN, ``ref`` types, a ``let`` as the value of a ``let``. Refused,
though TVM reads it: a ``%0`` bound twice in one function, of which TVM keeps the first.
"""

from __future__ import annotations

import os
import re
from types import MappingProxyType
from typing import Any

from serde.errors import MalformedFile
from serde.io.sniff import open_regular

from .. import ast
from ..ast_walk import run, to_function
from ..io.magic import HEADER
from ..json.reader import parse_metadata
from .attributes import EQUALS
from .expressions import OMITTED, Expressions

_METADATA = re.compile(r"^(?:#\[\s*metadata\s*\]|METADATA:)[ \t\r]*$", re.MULTILINE)
_TVM = re.compile(r'"tvm_version"\s*:\s*"([^"]*)"')
_ENTRY = re.compile(r"meta\[\s*([^\]]*?)\s*\]\[(\d+)\]")
VERSIONS = ("0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5")


def read_text(path: str | os.PathLike[str]) -> ast.Module:
    """Read the text file at ``path``.

    Raises:
        MalformedFile: with the line and column of what cannot be read.
    """
    with open_regular(path) as file:
        return parse_text(file.read(), os.fspath(path))


def parse_text(text: str | bytes, path: str = "module") -> ast.Module:
    """Read a module, or a single function or expression, which becomes ``main``."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MalformedFile(path, "not UTF-8", f"byte {error.start}") from None
    header = HEADER.match(text)
    version = header and (header[1] or header[2])
    if version and version not in VERSIONS:
        raise MalformedFile(path, f"text of version {version[:20]!r} is not read", "line 1")
    metadata = _METADATA.search(text)
    code = text[: metadata.start()] if metadata else text
    parser = _Parser(code, path, header.end() if header else 0)
    parser.tvm = "0.6" if version and version < VERSIONS[-1] else ""
    if metadata:
        parser.metadata = text[metadata.end() :]
    return parser.parse_module()


class _Parser(Expressions):
    """The parser of definitions."""

    def __init__(self, text: str, path: str, at: int) -> None:
        super().__init__(text, path, at)
        self.metadata: str | None = None
        self.tvm = ""
        self._entries: dict[str, tuple[Any, ...]] | None = None
        self.types: dict[str, ast.TypeDef] = {}
        self.functions: dict[str, ast.Function] = {}

    def parse_module(self) -> ast.Module:
        lex = self.lex
        lex.advance()
        if not lex.kind:
            raise lex.error("the file holds no definition")
        if lex.kind == "global" and lex.is_followed_by(EQUALS):
            raise lex.error(f"@{lex.value} is compiled already: only Relay functions are read")
        if lex.kind not in ("def", "type", "extern"):
            self._parse_main()
        while lex.kind:
            if lex.kind == "def":
                self._parse_definition()
            elif lex.kind in ("type", "extern"):
                self._parse_type_definition()
            else:
                raise lex.expected_error("'def' or 'type'")
        for name, at in self.called.items():
            if name not in self.functions:
                raise lex.error(f"@{name} is used and not defined", at)
        functions, types = MappingProxyType(self.functions), MappingProxyType(self.types)
        return ast.Module(functions, types, tvm=self.tvm or self._find_release())

    def _find_release(self) -> str:
        """The release that wrote the text, which is recorded with its constants only."""
        match = _TVM.search(self.metadata or "")
        return match[1] if match else ""

    def _parse_main(self) -> None:
        """What TVM prints of a single function or expression: it becomes ``main``."""
        body = run(self.parse_body())
        if self.lex.kind:
            raise self.lex.expected_error("the end of the text")
        if self.free and not isinstance(body, ast.Function):
            self.functions["main"] = ast.Function(tuple(self.free), body)
        else:
            self.functions["main"] = to_function(body)

    def _parse_definition(self) -> None:
        lex = self.lex
        lex.advance()
        at = lex.start
        name = lex.read_defined_name()
        if name in self.functions:
            raise lex.error(f"@{name} is defined twice", at)
        if lex.kind == "=":
            raise lex.error(f"@{name} is compiled already: only Relay functions are read", at)
        self.function += 1
        self.functions[name] = run(self.parse_function())

    def _parse_type_definition(self) -> None:
        """``type List[A] { Cons(A, List[A]), Nil, }``."""
        lex = self.lex
        external = self.skip("extern")
        self.take("type")
        at = lex.start
        name = self.take("word", "a data type's name")
        if name in self.types:
            raise lex.error(f"data type {name} is defined twice", at)
        mark = self.type_vars.enter()
        params = self.parse_generics()
        constructors: tuple[ast.Constructor, ...] = ()
        if not external or lex.kind == "{":
            constructors = self.parse_sequence("{", "}", lambda: self._parse_constructor(name))
        self.skip(";")
        self.type_vars.leave(mark)
        self.types[name] = ast.TypeDef(name, params, constructors)

    def _parse_constructor(self, of: str) -> ast.Constructor:
        lex = self.lex
        name = lex.value
        if lex.kind not in ("word", "number"):
            raise lex.expected_error("a constructor")
        if name in self.constructors:
            owner = self.constructors[name].of
            raise lex.error(f"data type {owner} has a constructor {name} as well")
        lex.advance()
        inputs = self.parse_sequence("(", ")", self.parse_type) if lex.kind == "(" else ()
        self.constructors[name] = ast.Constructor(name, inputs, of)
        return self.constructors[name]

    def parse_meta(self) -> Any:
        lex = self.lex
        match = _ENTRY.fullmatch(lex.value) if lex.kind == "meta" else None
        if match is None:
            raise lex.expected_error("an entry of the metadata")
        entries = self._load_metadata().get(match[1], ())
        index = int(match[2][:10])
        if index >= len(entries):
            count = f"{len(entries)} of {match[1]}"
            raise lex.error(f"the metadata has no entry {index}: it holds {count}")
        lex.advance()
        return entries[index]

    def _load_metadata(self) -> dict[str, tuple[Any, ...]]:
        if self._entries is None:
            if self.metadata is None:
                raise self.lex.error(OMITTED)
            self._entries = parse_metadata(self.metadata, f"{self.lex.path} (metadata)")
        return self._entries
