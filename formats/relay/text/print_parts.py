"""Formats names, types and attributes, and collects the metadata they refer to."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from serde.errors import ConversionError

from .. import ast, registry
from .lexer import KEYWORDS
from .literals import SUFFIXES, format_float, format_number

NEAR = 1e-9  # doubles TVM holds to be equal
_PLAIN = re.compile(r"[A-Za-z]\w*(?:/\w+)*", re.ASCII)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[./][A-Za-z_]\w*)*", re.ASCII)
_RESERVED = KEYWORDS | {"True", "False", "Tensor", "inff", "nanf"}
META_KEYS: dict[type[Any], str] = {
    ast.Constant: "relay.Constant", ast.Var: "relay.Var", ast.Call: "relay.Call",
    ast.Tuple: "relay.Tuple", ast.TupleGetItem: "relay.TupleGetItem", ast.If: "relay.If",
    ast.Function: "relay.Function", ast.GlobalVar: "GlobalVar", ast.Op: "Op",
    ast.TensorType: "relay.TensorType", ast.TupleType: "TupleType", ast.FuncType: "FuncType",
    ast.RefType: "relay.RefType", ast.TypeVar: "TypeVar", ast.GlobalTypeVar: "GlobalTypeVar",
    ast.TypeCall: "TypeCall", ast.IncompleteType: "IncompleteType",
    ast.VirtualDevice: "VirtualDevice", str: "runtime.String",
}  # fmt: skip


class Names:
    """Unique names, which TVM's parser reads unless ``raw``."""

    def __init__(self, raw: bool) -> None:
        self.raw = raw
        self._taken: dict[str, int] = {}

    def claim(self, name: str, prefix: str) -> str:
        """A name like ``name``, with a number behind it if that is taken."""
        if not name[:1].isalpha() or not name[0].isascii():
            name = prefix + name
        if not self.raw:
            name = make_readable(name)
        if name in self._taken:
            while True:
                self._taken[name] += 1
                numbered = f"{name}{self._taken[name]}"
                if numbered not in self._taken:
                    name = numbered
                    break
        self._taken[name] = 0
        return name


@lru_cache(4096)
def require_dotted(name: str) -> str:
    """``name``, that of an operator or attribute, which cannot be changed.

    Raises:
        ConversionError: when the text form cannot hold it.
    """
    if _DOTTED.fullmatch(name) is None:
        raise ConversionError(f"{name!r} cannot be written as text: write JSON")
    return name


def make_readable(name: str) -> str:
    """A name like ``name`` that TVM's parser reads."""
    if _PLAIN.fullmatch(name) is None:
        name = re.sub(r"[^\w]", "_", name, flags=re.ASCII)
    if name in _RESERVED or name.startswith(("inff", "nanf")) or not name[:1].isalpha():
        name = "v" + name
    return name


class Parts:
    """The printer of types and attributes, which collects what goes into the metadata."""

    def __init__(self, like_tvm: bool) -> None:
        self.like_tvm = like_tvm
        self.metadata: dict[str, list[Any]] = {}
        self._indices: dict[tuple[str, Any], int] = {}
        self._types: dict[int, str] = {}
        self._printed: list[ast.Type] = []  # keeps what _types knows by address alive

    def add_meta(self, value: Any) -> str:
        """Add ``value`` to the metadata, once; return the reference to it."""
        if isinstance(value, (ast.Attrs, ast.DimVar, ast.Opaque)):
            key = value.type_key
        elif isinstance(value, ast.Imm):
            key = "FloatImm" if "float" in value.dtype else "IntImm"
        else:
            key = "Map" if isinstance(value, Mapping) else META_KEYS[type(value)]
        by_value = isinstance(value, (str, ast.VirtualDevice, ast.Imm))
        mark = (key, value if by_value else id(value))
        entries = self.metadata.setdefault(key, [])
        if mark not in self._indices:
            self._indices[mark] = len(entries)
            entries.append(value)
        return f"meta[{key}][{self._indices[mark]}]"

    # Types

    def format_type(self, type_: ast.Type) -> str:
        """A type."""
        known = self._types.get(id(type_))
        if known is None:
            known = self._types[id(type_)] = self._format_type(type_)
            self._printed.append(type_)
        return known

    def _format_type(self, type_: ast.Type) -> str:
        if isinstance(type_, ast.TensorType):
            if not type_.shape:
                return type_.dtype
            return f"Tensor[({', '.join(map(self._format_dim, type_.shape))}), {type_.dtype}]"
        if isinstance(type_, ast.TupleType):
            return _format_tuple([self.format_type(t) for t in type_.fields])
        if isinstance(type_, ast.FuncType):
            generics = self.format_generics(type_.type_params)
            args = ", ".join(map(self.format_type, type_.args))
            return f"fn {generics}({args}) -> {self.format_type(type_.ret)}"
        if isinstance(type_, ast.TypeCall):
            func = self.format_type(type_.func)
            return f"{func}[{', '.join(map(self.format_type, type_.args))}]"
        if isinstance(type_, ast.RefType):
            return f"ref({self.format_type(type_.value)})"
        if isinstance(type_, (ast.TypeVar, ast.GlobalTypeVar)):
            return type_.name if self.like_tvm else make_readable(type_.name)
        return "_"

    def _format_dim(self, dim: ast.Dim) -> str:
        if dim is None:
            return "?"
        return str(dim) if isinstance(dim, int) else self.add_meta(dim)

    def format_generics(self, params: Sequence[ast.TypeVar]) -> str:
        """Type parameters with their brackets, if there are any."""
        return f"[{', '.join(self.format_type(p) for p in params)}]" if params else ""

    def format_annotation(self, type_: ast.Type | None, before: str = ": ") -> str:
        """``: type``; nothing for the types TVM prints and cannot read, which it infers."""
        if type_ is None or (not self.like_tvm and _has_ref(type_)):
            return ""
        return before + self.format_type(type_)

    # Attributes

    def format_call_attrs(self, call: ast.Call) -> list[str]:
        """The attributes of a call as printed after its operands, except ``arange``'s."""
        attrs = call.attrs
        if attrs is None:
            return []
        to_op = isinstance(call.op, ast.Op)
        if to_op and attrs.type_key and attrs.type_key != registry.attrs_key(call.op.name):  # type: ignore[attr-defined]
            return [self.add_meta(attrs)]
        shown = [
            f"{self._format_name(name)}={self.format_value(value)}"
            for name, value in attrs.values.items()
            if not (self.like_tvm and _is_nearly_default(attrs.type_key, name, value))
        ]
        if not to_op:
            shown.append(f'attrs_type_key="{attrs.type_key}"')
        return shown

    def format_function_attrs(self, function: ast.Function) -> list[str]:
        """The attributes of a function as printed after its parameters."""
        shown = [
            f"{self._format_name(n)}={self.format_value(v)}" for n, v in function.attrs.items()
        ]
        if function.device is not None:
            shown.append(f"virtual_device={self.add_meta(function.device)}")
        return shown

    def _format_name(self, name: str) -> str:
        return name if self.like_tvm else require_dotted(name)

    def format_value(self, value: Any) -> str:
        """The value of an attribute."""
        if value is None or isinstance(value, (bool, int)):
            return str(value)
        if isinstance(value, float):
            return self._format_digits(value) + "f"
        if isinstance(value, str):
            return f'"{value}"' if self.like_tvm or '"' not in value else self.add_meta(value)
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.format_value, value))}]"
        if isinstance(value, ast.AnyDim):
            return "?"
        if isinstance(value, ast.Imm):
            return self._format_imm(value)
        return self.add_meta(value)

    def _format_imm(self, value: ast.Imm) -> str:
        if value.dtype not in SUFFIXES:
            return str(value.value) if self.like_tvm else self.add_meta(value)
        if "float" in value.dtype and self.like_tvm:
            return self._format_digits(float(value.value)) + SUFFIXES[value.dtype]
        return format_number(value.value, value.dtype) or self.add_meta(value)

    def _format_digits(self, value: float) -> str:
        """All digits of a float, which TVM holds in 64 bits whatever its type; or six, as TVM."""
        return f"{value:g}" if self.like_tvm or not math.isfinite(value) else format_float(value)


def _format_tuple(fields: list[str]) -> str:
    return f"({', '.join(fields)}{',' if len(fields) == 1 else ''})"


def _is_nearly_default(type_key: str, name: str, value: Any) -> bool:
    """Whether TVM takes a float for the default."""
    if not isinstance(value, float):
        return False
    field = (registry.fields(type_key) or {}).get(name)
    default = None if field is None else field.default
    return isinstance(default, float) and abs(value - default) < NEAR


def _has_ref(type_: ast.Type) -> bool:
    if isinstance(type_, ast.TupleType):
        return any(map(_has_ref, type_.fields))
    if isinstance(type_, ast.FuncType):
        return any(map(_has_ref, (*type_.args, type_.ret)))
    if isinstance(type_, ast.TypeCall):
        return any(map(_has_ref, type_.args))
    return isinstance(type_, ast.RefType)
