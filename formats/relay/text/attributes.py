"""Parses attributes: ``strides=[2, 2], layout="NCHW", axis=None``, of calls and of functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .. import ast, registry
from .lexer import KEYWORDS
from .literals import LiteralError, make_attribute, read_number
from .types import DEPTH, Types

EQUALS = re.compile(r"\s*=(?!=)")
INTEGERS = re.compile(r"\s*\[((?:-?\d{1,9}(?:, ?-?\d{1,9})*)?)\](?=[,)])")
DEBUGGING = "the text was printed without metadata, for reading only: print it with metadata"


class Attributes(Types):
    """The parser of attributes."""

    def __init__(self, text: str, path: str, at: int) -> None:
        super().__init__(text, path, at)
        self._defaults: dict[str, ast.Attrs] = {}

    def is_at_attribute(self) -> bool:
        """Whether the current token is the name of an attribute."""
        lex = self.lex
        return (lex.kind == "word" or lex.kind in KEYWORDS) and lex.is_followed_by(EQUALS)

    def parse_attributes(self) -> dict[str, Any]:
        """Read ``name=value`` up to the closing bracket, which stays the current token."""
        lex = self.lex
        attrs: dict[str, Any] = {}
        while lex.kind != ")":
            if not self.is_at_attribute():
                raise lex.expected_error("name=value or ')'")
            name = lex.value
            if name in attrs:
                raise lex.error(f"attribute {name!r} is set twice")
            lex.advance()
            attrs[name] = self._parse_assigned()
            if not self.skip(",") and lex.kind != ")":
                raise lex.expected_error("',' or ')'")
        return attrs

    def _parse_assigned(self) -> Any:
        """The value after the equals sign that is the current token."""
        lex = self.lex
        quick = INTEGERS.match(lex.text, lex.pos)
        if quick is not None:
            lex.jump(quick.end())
            return tuple(map(int, quick[1].split(","))) if quick[1] else ()
        lex.advance()
        return self._parse_value(0)

    def _parse_value(self, depth: int) -> Any:
        lex = self.lex
        if depth > DEPTH:
            raise lex.error(f"attributes nest more than {DEPTH} deep")
        kind, value = lex.kind, lex.value
        if kind == "[":
            return self.parse_sequence("[", "]", lambda: self._parse_value(depth + 1))
        if kind == "meta":
            return self.parse_meta()
        if kind == "{":
            raise lex.error(DEBUGGING)
        if kind == "(":
            lex.advance()
            inner = self._parse_value(depth + 1)
            self.take(")")
            return inner
        if kind == "word" and value not in _WORDS:
            raise lex.error(f"{value!r} is no value of an attribute; {DEBUGGING}")
        if kind == "word":
            result = _WORDS[value]
        elif kind == "string":
            result = value[1:-1]
        elif kind == "number":
            try:
                result = make_attribute(*read_number(value))
            except LiteralError as error:
                raise lex.error(str(error)) from None
        elif kind == "?":
            result = ast.AnyDim()
        elif kind in ("local", "graph", "global"):
            return self.parse_reference()
        else:
            raise lex.expected_error("the value of an attribute")
        lex.advance()
        return result

    def parse_reference(self) -> ast.Expr:
        """The expression that a name refers to; advance past it."""
        raise NotImplementedError

    def make_call_attrs(
        self, op: ast.Expr, values: dict[str, Any], unnamed: Sequence[tuple[int, str]] = ()
    ) -> ast.Attrs | None:
        """The attributes of a call of ``op``. ``unnamed`` ones, which 0.6 allows, come first.

        Each is a pair of its offset and its string.
        """
        key = values.pop("attrs_type_key", None)
        if key is None and isinstance(op, ast.Op):
            key = registry.attrs_key(op.name)
        if not isinstance(key, str):
            if not values and not unnamed:
                return None
            key = ""
        declared = registry.fields(key) or {}
        if len(unnamed) > len(declared):
            raise self.lex.error("an operand is an expression, not a text", unnamed[0][0])
        values = dict(zip(declared, (text for _, text in unnamed), strict=False)) | values
        if not values:
            if key not in self._defaults:
                self._defaults[key] = ast.Attrs(key)
            return self._defaults[key]
        for name in values.keys() & declared.keys():
            values[name] = _convert_to_kind(declared[name].kind, values[name])
        if key == registry.ARANGE:
            for name in registry.OPERANDS_OF_ARANGE:
                values.pop(name, None)
        return ast.Attrs(key, MappingProxyType(registry.drop_defaults(key, values)))

    def make_function_attrs(
        self, values: dict[str, Any]
    ) -> tuple[Mapping[str, Any], ast.VirtualDevice | None]:
        """The attributes of a function, and the virtual device that is printed among them."""
        device = values.pop("virtual_device", None)
        if device is not None and not isinstance(device, ast.VirtualDevice):
            raise self.lex.error("virtual_device is no virtual device")
        return MappingProxyType(values) if values else ast.NOTHING, device


_WORDS: dict[str, Any] = {"None": None, "nullptr": None, "True": True, "False": False}


def _convert_to_kind(kind: str, value: Any) -> Any:
    """A number as the type its attribute has: ``epsilon=1``, ``keepdims=0``."""
    plain = value.value if isinstance(value, ast.Imm) else value
    if kind == "d" and isinstance(plain, (int, float)):
        return float(plain)
    if kind == "b" and isinstance(plain, int):
        return bool(plain)
    return int(plain) if kind == "i" and isinstance(plain, int) else value
