"""Decodes the objects of a node table, with a builder for each type of node that has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, TypeVar

from .. import ast, registry
from .layout import TYPES, Part
from .legacy_attrs import find_legacy_kind
from .node_table import Attributes, Table

Kind = TypeVar("Kind")
Builder = Callable[..., Any]
# For a type of node: the attributes that name other nodes, and what builds the object from these
Builders = dict[str, tuple[Mapping[str, Part], Builder]]

VALUES = (
    NoneType, bool, int, float, str, ast.Imm, ast.AnyDim, ast.DimVar, ast.VirtualDevice, ast.Attrs,
    ast.Opaque, ast.Var, ast.GlobalVar, ast.Constant, ast.Op, *TYPES,
)  # fmt: skip

# For objects that stay ``Opaque``, the attributes that name other nodes
_PARTS = {
    "Target": ("attrs", "features", "host", "keys", "kind", "tag"),
    "TargetKind": ("default_keys", "name"),
    **{
        f"tir.{name}": ("a", "b")
        for name in "Add Sub Mul Div Mod FloorDiv FloorMod Min Max".split()
    },
    "tir.Cast": ("value",),
}


class Decoder:
    """Decodes the objects of a node table."""

    def __init__(self, table: Table, builders: Builders) -> None:
        self.table, self.builders = table, builders
        self._constructors: dict[tuple[str, str], ast.Constructor] = {}
        self._kinds_declared: dict[tuple[str, str], str | None] = {}
        self._kinds: dict[int, dict[str, str]] = {}  # of the attributes of nodes being decoded

    def decode(self, root: int) -> Any:
        """The object of node ``root``."""
        return self.table.decode(root, self._list_references, self._build)

    def _list_references(self, at: int) -> Sequence[int]:
        table = self.table
        key, attrs = table.key(at), table.attributes(at)
        if key in ("Array", "Map"):
            return table.items(at)
        known = self.builders.get(key)
        if known is not None:
            names = known[0]
            if key == "IRModule":
                self._check_functions(at, attrs)
            return [table.index(attrs[n], n, at) if n in attrs else 0 for n in names]
        kinds = self._kinds[at] = {n: self._find_kind(at, key, n, v) for n, v in attrs.items()}
        return [table.index(attrs[n], n, at) for n, kind in kinds.items() if kind in "ofv"]

    def _build(self, at: int, inside: list[Any]) -> Any:
        table = self.table
        key, attrs = table.key(at), table.attributes(at)
        if key == "Array":
            return tuple(inside)
        if key == "Map":
            return self._build_map(at, inside)
        known = self.builders.get(key)
        if known is not None:
            parts, build = known
            fields = zip(parts.items(), inside, strict=True)
            return build(self, at, attrs, *(self._check(at, n, p, v) for (n, p), v in fields))
        kinds, values = self._kinds.pop(at), iter(inside)
        if registry.fields(key) is not None or "attrs." in key:
            return self._build_attrs(at, attrs, kinds, values)
        objects = {n: next(values) for n, kind in kinds.items() if kind in "ofv"}
        plain = {n: v for n, v in attrs.items() if n not in objects}
        if "repr_str" in table.nodes[at]:
            plain["repr_str"] = table.text(at)
        return ast.Opaque(key, MappingProxyType(plain), MappingProxyType(objects))

    def _find_kind(self, at: int, key: str, name: str, value: str) -> str:
        """How node ``at`` holds attribute ``name``; see ``registry.Field``."""
        if (key, name) not in self._kinds_declared:
            self._kinds_declared[key, name] = self._find_declared_kind(key, name)
        kind = self._kinds_declared[key, name]
        if kind is None:
            return self._guess_kind(at, value)
        if kind in "ofv" and value != "null" and not value.isdigit():
            return "s"  # a text in place, as releases before the type became an object have it
        return kind

    def _find_declared_kind(self, key: str, name: str) -> str | None:
        before = find_legacy_kind(key, name, self.table.version)
        if before is not None:
            return before
        known = registry.fields(key)
        if known is not None and name in known:
            return known[name].kind
        if key in _PARTS:
            return "o" if name in _PARTS[key] else "s"
        return None

    def _guess_kind(self, at: int, value: str) -> str:
        """Of a type no release declared: objects are numbered after the first that names them."""
        if not value.isdigit() or len(value) > 9:
            return "s"
        index = int(value)
        return "o" if at < index < len(self.table.nodes) else "s"

    def _build_map(self, at: int, inside: list[Any]) -> Mapping[Any, Any]:
        keys: Sequence[Any] | None = self.table.keys(at)
        values: Sequence[Any] = inside
        if keys is None:
            keys, values = inside[::2], inside[1::2]
        try:
            mapping = dict(zip(keys, values, strict=True))
        except (ValueError, TypeError):
            raise self.table.error(at, "its keys and values do not pair up") from None
        return MappingProxyType(mapping)

    def _build_attrs(
        self, at: int, attrs: Attributes, kinds: Mapping[str, str], parts: Iterator[Any]
    ) -> ast.Attrs:
        table, key = self.table, self.table.key(at)
        values: dict[str, Any] = {}
        for name, text in attrs.items():
            kind = kinds[name]
            if kind in "ofv":
                values[name] = self._take_attribute(at, name, next(parts))
            elif kind == "i":
                values[name] = table.integer(at, name, attrs)
            elif kind == "b":
                values[name] = table.integer(at, name, attrs) != 0
            elif kind == "d":
                values[name] = table.number(at, name, attrs)
            else:
                values[name] = text
        again = registry.OPERANDS_OF_ARANGE if key == registry.ARANGE else ()
        repeated = {name: values.pop(name) for name in again if name in values}
        mapping = MappingProxyType(registry.drop_defaults(key, values))
        return ast.Attrs(key, mapping, MappingProxyType(repeated))

    def _take_attribute(self, at: int, name: str, value: Any) -> Any:
        if value == ast.VirtualDevice():
            return None
        if self.table.key(at) != registry.ARANGE:
            self.check_value(at, name, value)
        return value

    def check_value(self, at: int, name: str, value: Any) -> None:
        """Refuse what no attribute can be."""
        if isinstance(value, tuple):
            for item in value:
                self.check_value(at, name, item)
        elif isinstance(value, MappingProxyType):
            for pair in value.items():
                self.check_value(at, name, pair)
        elif not isinstance(value, VALUES):
            raise self.table.error(at, f"attribute {name} is {_describe(value)}")

    def _check_functions(self, at: int, attrs: Attributes) -> None:
        """Refuse a module of other functions than Relay's, with a message that names their kind."""
        table = self.table
        items = table.items(table.index(attrs.get("functions", "0"), "functions", at))
        for name, function in zip(items[::2], items[1::2], strict=False):
            key = table.key(function)
            if key in ("relay.Function", ""):
                continue
            label = table.string(name, "name_hint", {"name_hint": "", **table.attributes(name)})
            if key == "tir.PrimFunc":
                reason = f"@{label} is compiled to loops already: only Relay functions are read"
            elif key.startswith("relax."):
                reason = f"@{label} is a function of Relax, TVM's later language, not of Relay"
            else:
                reason = f"@{label} is no Relay function but {key}"
            raise table.error(function, reason)

    def _check(self, at: int, name: str, part: Part, value: Any) -> Any:
        """What a field names; a missing array is empty."""
        if value is None and (part.many or part.optional):
            return () if part.many else None
        for item in self.require(at, name, value, tuple) if part.many else (value,):
            self.require(at, name, item, *part.kinds)
        return value

    def require(self, at: int, what: str, value: Any, *kinds: type[Kind]) -> Kind:
        """``value``, which has to be of one of ``kinds``."""
        if isinstance(value, kinds):
            return value
        raise self.table.error(at, f"its {what} is {_describe(value)}")

    def add_constructor(
        self, at: int, name: str, inputs: tuple[ast.Type, ...], of: str, tag: int
    ) -> ast.Constructor:
        """One object for each constructor: TVM writes several equal ones."""
        if (of, name) not in self._constructors:
            self._constructors[of, name] = ast.Constructor(name, inputs, of, tag)
        return self._constructors[of, name]


def _describe(value: Any) -> str:
    if value is None:
        return "missing"
    return f"a {value.type_key if isinstance(value, ast.Opaque) else type(value).__name__}"
