"""How texts, numbers, places and types are made from their nodes. See ``json_objects``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from .. import ast
from ..text.literals import DTYPE
from .node_table import Attributes

if TYPE_CHECKING:
    from .reader import Decoder

TYPES = (
    ast.TensorType, ast.TupleType, ast.TypeVar, ast.FuncType, ast.RefType, ast.GlobalTypeVar,
    ast.TypeCall, ast.IncompleteType,
)  # fmt: skip

Builder = Callable[..., Any]
BUILDERS: dict[str, tuple[tuple[str, ...], Builder]] = {}


def builds(key: str, *names: str) -> Callable[[Builder], Builder]:
    """Register the builder of one type of node, given the objects its ``names`` refer to."""

    def register(builder: Builder) -> Builder:
        BUILDERS[key] = (names, builder)
        return builder

    return register


def some_type(d: Decoder, at: int, what: str, value: Any) -> ast.Type:
    """``value``, which has to be a type."""
    return cast(ast.Type, d.one(at, what, value, *TYPES))


def some_types(d: Decoder, at: int, what: str, value: Any) -> tuple[ast.Type, ...]:
    """``value``, which has to be an array of types."""
    return cast(tuple[ast.Type, ...], d.several(at, what, value, *TYPES))


def maybe_type(d: Decoder, at: int, what: str, value: Any) -> ast.Type | None:
    """``value``, a type or nothing."""
    return None if value is None else some_type(d, at, what, value)


# Texts, numbers, places


@builds("")
def _null(d: Decoder, at: int, attrs: Attributes) -> None:
    return None


@builds("runtime.String")
def _string(d: Decoder, at: int, attrs: Attributes) -> str:
    return d.table.text(at)


@builds("SourceName")
def _source_name(d: Decoder, at: int, attrs: Attributes) -> str:
    return d.table.text(at)


@builds("Span", "source_name", "source")
def _span(d: Decoder, at: int, attrs: Attributes, name: Any, source: Any) -> ast.Span:
    line = d.table.integer(at, "line" if "line" in attrs else "lineno", attrs)
    column = d.table.integer(at, "column" if "column" in attrs else "col_offset", attrs)
    text = source if name is None else name
    return ast.Span(d.optional(at, "source", text, str) or "", line, column)


@builds("SequentialSpan", "spans")
def _spans(d: Decoder, at: int, attrs: Attributes, spans: Any) -> ast.Span | None:
    found = d.several(at, "spans", spans, ast.Span)
    return found[0] if found else None


@builds("runtime.BoxInt")
def _box_int(d: Decoder, at: int, attrs: Attributes) -> int:
    return d.table.integer(at, "value", {"value": d.table.text(at)})


@builds("runtime.BoxBool")
def _box_bool(d: Decoder, at: int, attrs: Attributes) -> bool:
    return d.table.text(at) == "true"


@builds("runtime.BoxFloat")
def _box_float(d: Decoder, at: int, attrs: Attributes) -> float:
    return d.table.number(at, "value", {"value": d.table.text(at)})


@builds("IntImm")
def _int_imm(d: Decoder, at: int, attrs: Attributes) -> Any:
    value, dtype = d.table.integer(at, "value", attrs), attrs.get("dtype", "")
    if dtype in ("bool", "uint1"):
        return value != 0
    return value if dtype == "int32" else ast.Imm(value, dtype)


@builds("FloatImm")
def _float_imm(d: Decoder, at: int, attrs: Attributes) -> Any:
    value, dtype = d.table.number(at, "value", attrs), attrs.get("dtype", "")
    return value if dtype == "float32" else ast.Imm(value, dtype)


@builds("tir.StringImm")
def _string_imm(d: Decoder, at: int, attrs: Attributes) -> str:
    return d.table.string(at, "value", attrs)


@builds("tir.Any")
def _any(d: Decoder, at: int, attrs: Attributes) -> ast.AnyDim:
    return ast.AnyDim()


def _dim_var(is_size: bool, d: Decoder, at: int, attrs: Attributes) -> ast.DimVar:
    return ast.DimVar(d.table.string(at, "name", attrs), attrs.get("dtype", "int32"), is_size)


builds("tir.Var")(partial(_dim_var, False))
builds("tir.SizeVar")(partial(_dim_var, True))


@builds("DictAttrs", "__dict__")
def _dict_attrs(d: Decoder, at: int, attrs: Attributes, held: Any) -> Any:
    found = (
        MappingProxyType({}) if held is None else d.one(at, "dictionary", held, MappingProxyType)
    )
    if not all(isinstance(name, str) for name in found):
        raise d.table.bad(at, "the name of an attribute is no text")
    d.check_value(at, "value", found)
    return found


@builds("VirtualDevice", "memory_scope", "target")
def _virtual_device(
    d: Decoder, at: int, attrs: Attributes, scope: Any, target: Any
) -> ast.VirtualDevice:
    return ast.VirtualDevice(
        d.table.integer(at, "device_type_int", attrs, -1),
        d.table.integer(at, "virtual_device_id", attrs, -1),
        d.optional(at, "target", target, ast.Opaque),
        d.optional(at, "memory scope", scope, str) or "",
    )


# Types


@builds("relay.TensorType", "shape")
def _tensor_type(d: Decoder, at: int, attrs: Attributes, shape: Any) -> ast.TensorType:
    dims = d.several(at, "shape", shape, int, ast.Imm, ast.AnyDim, ast.DimVar, ast.Opaque)
    dtype = attrs.get("dtype", "")
    if DTYPE.fullmatch(dtype) is None:
        raise d.table.bad(at, f"there is no element type {dtype[:40]!r}")
    return ast.TensorType(tuple(map(_dim, dims)), dtype)


def _dim(dim: Any) -> ast.Dim:
    if isinstance(dim, ast.AnyDim):
        return None
    if isinstance(dim, ast.Imm):
        return ast.LongDim(dim.value) if dim.dtype == "int64" else int(dim.value)
    return cast(ast.Dim, dim)


@builds("TupleType", "fields")
def _tuple_type(d: Decoder, at: int, attrs: Attributes, fields: Any) -> ast.TupleType:
    return ast.TupleType(some_types(d, at, "fields", fields))


@builds("FuncType", "arg_types", "ret_type", "type_params")
def _func_type(d: Decoder, at: int, attrs: Attributes, args: Any, ret: Any, params: Any) -> Any:
    return ast.FuncType(
        some_types(d, at, "argument types", args),
        some_type(d, at, "result", ret),
        d.several(at, "type parameters", params, ast.TypeVar),
    )


@builds("relay.RefType", "value")
def _ref_type(d: Decoder, at: int, attrs: Attributes, value: Any) -> ast.RefType:
    return ast.RefType(some_type(d, at, "value", value))


@builds("TypeVar", "var")
def _type_var(d: Decoder, at: int, attrs: Attributes, var: Any) -> ast.TypeVar:
    kind = d.table.integer(at, "kind", attrs)
    if var is not None:  # TVM 0.6
        return ast.TypeVar(d.one(at, "variable", var, ast.DimVar).name, kind)
    return ast.TypeVar(d.table.string(at, "name_hint", attrs), kind)


@builds("GlobalTypeVar", "var")
def _global_type_var(d: Decoder, at: int, attrs: Attributes, var: Any) -> ast.GlobalTypeVar:
    if var is not None:
        return ast.GlobalTypeVar(d.one(at, "variable", var, ast.DimVar).name)
    return ast.GlobalTypeVar(d.table.string(at, "name_hint", attrs))


@builds("TypeCall", "func", "args")
def _type_call(d: Decoder, at: int, attrs: Attributes, func: Any, args: Any) -> ast.TypeCall:
    return ast.TypeCall(some_type(d, at, "function", func), some_types(d, at, "arguments", args))


@builds("IncompleteType")
def _incomplete(d: Decoder, at: int, attrs: Attributes) -> ast.IncompleteType:
    return ast.IncompleteType()
