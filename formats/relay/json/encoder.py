"""Builds a node table: nodes, types, and the values of attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from serde.errors import ConversionError
from serde.io.json_text import dump_line
from serde.ir.graph import Tensor

from .. import ast, ndarray, registry
from .layout import KEYS, LAYOUTS, PATTERNS

TVM = "0.17.0"
ADT_HANDLE = "5"  # TypeKind::kAdtHandle
INT32 = range(-(1 << 31), 1 << 31)


class Index(int):
    """The number of a node, as opposed to any other number."""


NULL = Index(0)


class Encoder:
    """Builds a node table, what a node refers to before the node."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self.tensors: list[Tensor] = []
        self.known: dict[Any, Index] = {}
        self._alive: list[Any] = []  # what _known knows by address

    def render(self, root: Index) -> Iterator[str]:
        """The JSON text, in pieces: tensors may be large."""
        last = len(self.nodes)  # numbered from the end: the root is 1, as TVM's
        yield f'{{\n  "root": {last - root}, \n  "nodes": [\n    {{"type_key": ""}}'
        for node in reversed(self.nodes[1:]):
            yield ",\n    " + dump_line(_renumber(node, last))
        yield '\n  ], \n  "b64ndarrays": ['
        for number, tensor in enumerate(self.tensors):
            yield ', \n    "' if number else '\n    "'
            yield from ndarray.to_base64(tensor)
            yield '"'
        yield f'], \n  "attrs": {{"tvm_version": "{TVM}"}}\n}}'

    # Nodes

    def add_node(self, key: str, **attrs: Index | str) -> Index:
        """Add a node with attributes."""
        return self.append({"type_key": key, **({"attrs": attrs} if attrs else {})})

    def append(self, node: dict[str, Any]) -> Index:
        """Add a node."""
        self.nodes.append(node)
        return Index(len(self.nodes) - 1)

    def add_array(self, items: Iterable[Index]) -> Index:
        """Add an array."""
        data = list(items)
        return self.append({"type_key": "Array", **({"data": data} if data else {})})

    def add_string_map(self, items: Mapping[str, Index]) -> Index:
        """Add a map with strings as keys."""
        if not items:
            return self.append({"type_key": "Map"})
        data = list(items.values())
        return self.append({"type_key": "Map", "keys": list(items), "data": data})

    def add_object_map(self, items: Iterable[tuple[Index, Index]]) -> Index:
        """Add a map with objects as keys."""
        data = [i for pair in items for i in pair]
        return self.append({"type_key": "Map", **({"data": data} if data else {})})

    def add_once(self, mark: Any, make: Callable[[], Index]) -> Index:
        """The node of the key ``mark``, added the first time."""
        if mark not in self.known:
            self.known[mark] = make()
        return self.known[mark]

    def add_by_identity(self, thing: Any, make: Callable[[], Index]) -> Index:
        """The node of an object, added the first time."""
        mark = id(thing)
        if mark not in self.known:
            self.known[mark] = make()
            self._alive.append(thing)
        return self.known[mark]

    def add_string(self, text: str) -> Index:
        """Add a string."""
        node = {"type_key": "runtime.String", **({"repr_str": text} if text else {})}
        return self.add_once(("", text), lambda: self.append(node))

    # Types

    def add_type(self, type_: ast.Type | None) -> Index:
        """A type; null for none."""
        return NULL if type_ is None else self.add_by_identity(type_, lambda: self._add_type(type_))

    def add_types(self, types: Iterable[ast.Type]) -> Index:
        """An array of types."""
        return self.add_array([self.add_type(t) for t in types])

    def _add_type(self, t: ast.Type) -> Index:
        if isinstance(t, ast.TensorType):
            shape = self.add_array([self._add_dim(d) for d in t.shape])
            return self.add_node("relay.TensorType", dtype=t.dtype, shape=shape, span=NULL)
        if isinstance(t, ast.TypeVar):
            return self.add_node(
                "TypeVar", kind=str(t.kind), name_hint=self.add_string(t.name), span=NULL
            )
        if isinstance(t, ast.GlobalTypeVar):
            return self.add_global_type(t.name)
        more = {"kind": NULL} if isinstance(t, ast.IncompleteType) else {}
        if isinstance(t, ast.FuncType):
            more = {"type_constraints": self.add_array(())}
        return self.add_by_layout(t, span=NULL, **more)

    def add_by_layout(self, thing: Any, **more: Index) -> Index:
        """An object that the table of layouts has, and what it names before it."""
        key = KEYS[type(thing)]
        fields = [self.add_value(getattr(thing, n)) for n in thing.__match_args__]
        return self.add_node(key, **dict(zip(LAYOUTS[key][1], fields, strict=True)), **more)

    def add_global_type(self, name: str) -> Index:
        """The name of a data type."""
        return self.add_once(
            ("type", name),
            lambda: self.add_node(
                "GlobalTypeVar", kind=ADT_HANDLE, name_hint=self.add_string(name)
            ),
        )

    def _add_dim(self, dim: ast.Dim) -> Index:
        return self.add_value(ast.AnyDim() if dim is None else dim)

    # Attributes

    def add_value(self, value: Any) -> Index:
        """The value of an attribute, as an object."""
        if value is None:
            return NULL
        if isinstance(value, bool):
            return self._add_number("IntImm", "bool", str(int(value)))
        if isinstance(value, ast.LongDim):
            return self._add_number("IntImm", "int64", str(int(value)))
        if isinstance(value, int):
            return self._add_number("IntImm", "int32" if value in INT32 else "int64", str(value))
        if isinstance(value, float):
            return self._add_number("FloatImm", "float32", _format_double(value))
        if isinstance(value, ast.Imm):
            if isinstance(value.value, float):
                return self._add_number("FloatImm", value.dtype, _format_double(value.value))
            return self._add_number("IntImm", value.dtype, str(value.value))
        if isinstance(value, str):
            return self.add_string(value)
        if isinstance(value, tuple):
            return self.add_array([self.add_value(v) for v in value])
        if isinstance(value, Mapping):
            return self._add_mapping(value)
        if isinstance(value, ast.Expr):
            return self.add_expr(value)
        if isinstance(value, ast.AnyDim):
            return self.add_once(value, lambda: self.add_node("tir.Any", dtype="int32", span=NULL))
        if isinstance(value, ast.VirtualDevice):
            return self.add_once(value, lambda: self._add_device(value))
        return self.add_by_identity(value, lambda: self._add_object(value))

    def _add_mapping(self, value: Mapping[Any, Any]) -> Index:
        if all(isinstance(k, str) for k in value):
            return self.add_string_map({k: self.add_value(v) for k, v in value.items()})
        return self.add_object_map(
            [(self.add_value(k), self.add_value(v)) for k, v in value.items()]
        )

    def _add_number(self, key: str, dtype: str, text: str) -> Index:
        mark = (key, dtype, text)
        return self.add_once(mark, lambda: self.add_node(key, dtype=dtype, span=NULL, value=text))

    def _add_device(self, device: ast.VirtualDevice) -> Index:
        return self.add_node(
            "VirtualDevice", device_type_int=str(device.device_type),
            memory_scope=self.add_string(device.memory_scope), target=self.add_value(device.target),
            virtual_device_id=str(device.device_id),
        )  # fmt: skip

    def _add_object(self, value: Any) -> Index:
        if isinstance(value, ast.Attrs):
            return self.add_attrs(value, ())
        if isinstance(value, ast.DimVar):
            name = self.add_string(value.name)
            return self.add_node(
                value.type_key, dtype=value.dtype, name=name, span=NULL, type_annotation=NULL
            )
        if isinstance(value, PATTERNS):
            return self.add_by_layout(value, span=NULL)
        if not isinstance(value, ast.Opaque):
            return self._add_type(value)
        if "repr_str" in value.fields:
            return self.append({"type_key": value.type_key, "repr_str": value.fields["repr_str"]})
        parts = {name: self.add_value(part) for name, part in value.parts.items()}
        return self.add_node(value.type_key, **value.fields, **parts)

    def add_attrs(self, attrs: ast.Attrs, args: tuple[ast.Expr, ...]) -> Index:
        """Attributes with the defaults TVM leaves out of the text.

        Raises:
            ConversionError: for a type TVM 0.17 lacks, or one that is not complete.
        """
        key, values = attrs.type_key, dict(attrs.values)
        if key == "DictAttrs":
            return self.add_dict_attrs(values)
        declared = registry.fields(key)
        if declared is None:
            raise ConversionError(
                f"TVM 0.17 has no attributes of type {key!r}"
                if key else f"the type of the attributes {', '.join(values)} is unknown"
            )  # fmt: skip
        if key == registry.ARANGE:
            values |= attrs.operands or zip(registry.OPERANDS_OF_ARANGE, args, strict=False)
        unknown = sorted(set(values) - set(declared))
        if unknown:
            raise ConversionError(f"{key} of TVM 0.17 has no {', '.join(unknown)}")
        written: dict[str, Index | str] = {}
        for name, field in sorted(declared.items()):
            value = values.get(name, field.default)
            if value is registry.REQUIRED:
                raise ConversionError(f"{key}: the required attribute {name} is missing")
            if value is not None or field.kind in "ofv":
                written[name] = self._encode_field(field, value)
        return self.add_node(key, **written)

    def _encode_field(self, field: registry.Field, value: Any) -> Index | str:
        plain = value.value if isinstance(value, ast.Imm) else value
        if field.kind in "ib":
            return str(int(plain))
        if field.kind == "d":
            return _format_double(float(plain))
        if field.kind in "st":
            return str(value)
        if field.kind == "v":
            value = value or ast.VirtualDevice()
        elif field.kind == "f":
            value = _to_floats(value)
        return self.add_value(value)

    def add_dict_attrs(self, values: Mapping[str, Any]) -> Index:
        """A dictionary as attributes."""
        return self.add_node("DictAttrs", __dict__=self._add_mapping(values))

    def add_expr(self, root: ast.Expr) -> Index:
        """An expression and all there is inside it."""
        raise NotImplementedError


def _renumber(node: dict[str, Any], last: int) -> dict[str, Any]:
    """``node`` with the numbers of nodes as they are written."""
    copy = dict(node)
    if "attrs" in node:
        copy["attrs"] = {
            name: str(last - value if value else 0) if isinstance(value, Index) else value
            for name, value in node["attrs"].items()
        }
    if "data" in node:
        copy["data"] = [last - i if i else 0 for i in node["data"]]
    return copy


def _format_double(value: float) -> str:
    return f"{value:.17g}"


def _to_floats(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_to_floats, value))
    return float(value) if isinstance(value, int) else value
