"""What a node table is built of: nodes, types, and the values of attributes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from serde.errors import ConversionError
from serde.ir.graph import Tensor

from .. import ast, ndarray, registry

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

    def text(self, root: Index) -> Iterator[str]:
        """The JSON text, in pieces: tensors may be large."""
        last = len(self.nodes)  # numbers are given out from the end: the root is 1, as TVM's
        yield f'{{\n  "root": {last - root}, \n  "nodes": [\n    {{"type_key": ""}}'
        for node in reversed(self.nodes[1:]):
            yield ",\n    " + json.dumps(_numbered(node, last))
        yield '\n  ], \n  "b64ndarrays": ['
        for number, tensor in enumerate(self.tensors):
            yield ', \n    "' if number else '\n    "'
            yield from ndarray.to_base64(tensor)
            yield '"'
        yield f'], \n  "attrs": {{"tvm_version": "{TVM}"}}\n}}'

    # Nodes

    def node(self, key: str, **attrs: Index | str) -> Index:
        """Add a node with attributes."""
        return self.add({"type_key": key, **({"attrs": attrs} if attrs else {})})

    def add(self, node: dict[str, Any]) -> Index:
        """Add a node."""
        self.nodes.append(node)
        return Index(len(self.nodes) - 1)

    def array(self, items: Iterable[Index]) -> Index:
        """Add an array."""
        data = list(items)
        return self.add({"type_key": "Array", **({"data": data} if data else {})})

    def string_map(self, items: Mapping[str, Index]) -> Index:
        """Add a map by text."""
        if not items:
            return self.add({"type_key": "Map"})
        data = list(items.values())
        return self.add({"type_key": "Map", "keys": list(items), "data": data})

    def object_map(self, items: Iterable[tuple[Index, Index]]) -> Index:
        """Add a map by object."""
        data = [i for pair in items for i in pair]
        return self.add({"type_key": "Map", **({"data": data} if data else {})})

    def once(self, mark: Any, make: Callable[[], Index]) -> Index:
        """The node known as ``mark``, made the first time."""
        if mark not in self.known:
            self.known[mark] = make()
        return self.known[mark]

    def by_identity(self, thing: Any, make: Callable[[], Index]) -> Index:
        """The node of one object, made the first time."""
        mark = id(thing)
        if mark not in self.known:
            self.known[mark] = make()
            self._alive.append(thing)
        return self.known[mark]

    def string(self, text: str) -> Index:
        """A text as an object."""
        node = {"type_key": "runtime.String", **({"repr_str": text} if text else {})}
        return self.once(("", text), lambda: self.add(node))

    # Types

    def type(self, type_: ast.Type | None) -> Index:
        """A type; null for none."""
        return NULL if type_ is None else self.by_identity(type_, lambda: self._type(type_))

    def types(self, types: Iterable[ast.Type]) -> Index:
        """An array of types."""
        return self.array([self.type(t) for t in types])

    def _type(self, t: ast.Type) -> Index:
        if isinstance(t, ast.TensorType):
            shape = self.array([self._dim(d) for d in t.shape])
            return self.node("relay.TensorType", dtype=t.dtype, shape=shape, span=NULL)
        if isinstance(t, ast.TupleType):
            return self.node("TupleType", fields=self.types(t.fields), span=NULL)
        if isinstance(t, ast.FuncType):
            return self.node(
                "FuncType", arg_types=self.types(t.args), ret_type=self.type(t.ret), span=NULL,
                type_constraints=self.array(()), type_params=self.types(t.type_params),
            )  # fmt: skip
        if isinstance(t, ast.TypeCall):
            return self.node("TypeCall", args=self.types(t.args), func=self.type(t.func), span=NULL)
        if isinstance(t, ast.RefType):
            return self.node("relay.RefType", span=NULL, value=self.type(t.value))
        if isinstance(t, ast.TypeVar):
            return self.node("TypeVar", kind=str(t.kind), name_hint=self.string(t.name), span=NULL)
        if isinstance(t, ast.GlobalTypeVar):
            return self.global_type(t.name)
        return self.node("IncompleteType", kind=NULL, span=NULL)

    def global_type(self, name: str) -> Index:
        """The name of a data type."""
        return self.once(
            ("type", name),
            lambda: self.node("GlobalTypeVar", kind=ADT_HANDLE, name_hint=self.string(name)),
        )

    def _dim(self, dim: ast.Dim) -> Index:
        return self.value(ast.AnyDim() if dim is None else dim)

    # Attributes

    def value(self, value: Any) -> Index:
        """The value of an attribute, as an object."""
        if value is None:
            return NULL
        if isinstance(value, bool):
            return self._number("IntImm", "bool", str(int(value)))
        if isinstance(value, ast.LongDim):
            return self._number("IntImm", "int64", str(int(value)))
        if isinstance(value, int):
            return self._number("IntImm", "int32" if value in INT32 else "int64", str(value))
        if isinstance(value, float):
            return self._number("FloatImm", "float32", _double(value))
        if isinstance(value, ast.Imm):
            if isinstance(value.value, float):
                return self._number("FloatImm", value.dtype, _double(value.value))
            return self._number("IntImm", value.dtype, str(value.value))
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, tuple):
            return self.array([self.value(v) for v in value])
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, ast.Expr):
            return self.expr(value)
        if isinstance(value, ast.AnyDim):
            return self.once(value, lambda: self.node("tir.Any", dtype="int32", span=NULL))
        if isinstance(value, ast.VirtualDevice):
            return self.once(value, lambda: self._device(value))
        return self.by_identity(value, lambda: self._object(value))

    def _mapping(self, value: Mapping[Any, Any]) -> Index:
        if all(isinstance(k, str) for k in value):
            return self.string_map({k: self.value(v) for k, v in value.items()})
        return self.object_map([(self.value(k), self.value(v)) for k, v in value.items()])

    def _number(self, key: str, dtype: str, text: str) -> Index:
        mark = (key, dtype, text)
        return self.once(mark, lambda: self.node(key, dtype=dtype, span=NULL, value=text))

    def _device(self, device: ast.VirtualDevice) -> Index:
        return self.node(
            "VirtualDevice", device_type_int=str(device.device_type),
            memory_scope=self.string(device.memory_scope), target=self.value(device.target),
            virtual_device_id=str(device.device_id),
        )  # fmt: skip

    def _object(self, value: Any) -> Index:
        if isinstance(value, ast.Attrs):
            return self.attrs(value, ())
        if isinstance(value, ast.DimVar):
            name = self.string(value.name)
            return self.node(
                value.type_key, dtype=value.dtype, name=name, span=NULL, type_annotation=NULL
            )
        if not isinstance(value, ast.Opaque):
            return self.type(value)
        if "repr_str" in value.fields:
            return self.add({"type_key": value.type_key, "repr_str": value.fields["repr_str"]})
        parts = {name: self.value(part) for name, part in value.parts.items()}
        return self.node(value.type_key, **value.fields, **parts)

    def attrs(self, attrs: ast.Attrs, args: tuple[ast.Expr, ...]) -> Index:
        """Attributes with the defaults TVM leaves out of the text.

        Raises:
            ConversionError: for a type TVM 0.17 lacks, or one that is not complete.
        """
        key, values = attrs.type_key, dict(attrs.values)
        if key == "DictAttrs":
            return self.dict_attrs(values)
        declared = registry.fields(key)
        if declared is None:
            raise ConversionError(
                f"TVM 0.17 has no attributes of type {key!r}"
                if key else f"what type the attributes {', '.join(values)} have is not known"
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
                raise ConversionError(f"{key} needs {name}, which is not given")
            if value is not None or field.kind in "ofv":
                written[name] = self._field(field, value)
        return self.node(key, **written)

    def _field(self, field: registry.Field, value: Any) -> Index | str:
        plain = value.value if isinstance(value, ast.Imm) else value
        if field.kind in "ib":
            return str(int(plain))
        if field.kind == "d":
            return _double(float(plain))
        if field.kind in "st":
            return str(value)
        if field.kind == "v":
            value = value or ast.VirtualDevice()
        elif field.kind == "f":
            value = _floats(value)
        return self.value(value)

    def dict_attrs(self, values: Mapping[str, Any]) -> Index:
        """A dictionary as attributes."""
        return self.node("DictAttrs", __dict__=self._mapping(values))

    def expr(self, root: ast.Expr) -> Index:
        """An expression and all there is inside it."""
        raise NotImplementedError


def _numbered(node: dict[str, Any], last: int) -> dict[str, Any]:
    """``node`` with the numbers of nodes as they are written."""
    found = dict(node)
    if "attrs" in node:
        found["attrs"] = {
            name: str(last - value if value else 0) if isinstance(value, Index) else value
            for name, value in node["attrs"].items()
        }
    if "data" in node:
        found["data"] = [last - i if i else 0 for i in node["data"]]
    return found


def _double(value: float) -> str:
    return f"{value:.17g}"


def _floats(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_floats, value))
    return float(value) if isinstance(value, int) else value
