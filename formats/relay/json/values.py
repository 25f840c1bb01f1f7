"""How strings, numbers, spans and types are built from their nodes. See ``objects``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from .. import ast
from ..ndarray import DTYPE
from .decoder import Builder, Decoder
from .node_table import Attributes

BUILDERS: dict[str, tuple[tuple[str, ...], Builder]] = {}  # ``objects`` adds its own


def builds(key: str, *names: str) -> Callable[[Builder], Builder]:
    """Register the builder of one type of node, given the objects its ``names`` refer to."""

    def register(builder: Builder) -> Builder:
        BUILDERS[key] = (names, builder)
        return builder

    return register


# Strings, numbers, spans


@builds("")
def _build_null(d: Decoder, at: int, attrs: Attributes) -> None:
    return None


@builds("runtime.String")
def _build_string(d: Decoder, at: int, attrs: Attributes) -> str:
    return d.table.text(at)


@builds("SourceName")
def _build_source_name(d: Decoder, at: int, attrs: Attributes) -> str:
    return d.table.text(at)


@builds("Span", "source_name", "source")
def _build_span(d: Decoder, at: int, attrs: Attributes, name: Any, source: Any) -> ast.Span:
    line = d.table.integer(at, "line" if "line" in attrs else "lineno", attrs)
    column = d.table.integer(at, "column" if "column" in attrs else "col_offset", attrs)
    text = source if name is None else name
    return ast.Span(d.require_optional(at, "source", text, str) or "", line, column)


@builds("SequentialSpan", "spans")
def _build_spans(d: Decoder, at: int, attrs: Attributes, spans: Any) -> ast.Span | None:
    found = d.require_each(at, "spans", spans, ast.Span)
    return found[0] if found else None


@builds("runtime.BoxInt")
def _build_box_int(d: Decoder, at: int, attrs: Attributes) -> int:
    return d.table.integer(at, "value", {"value": d.table.text(at)})


@builds("runtime.BoxBool")
def _build_box_bool(d: Decoder, at: int, attrs: Attributes) -> bool:
    return d.table.text(at) == "true"


@builds("runtime.BoxFloat")
def _build_box_float(d: Decoder, at: int, attrs: Attributes) -> float:
    return d.table.number(at, "value", {"value": d.table.text(at)})


@builds("IntImm")
def _build_int_imm(d: Decoder, at: int, attrs: Attributes) -> Any:
    value, dtype = d.table.integer(at, "value", attrs), attrs.get("dtype", "")
    if dtype in ("bool", "uint1"):
        return value != 0
    return value if dtype == "int32" else ast.Imm(value, dtype)


@builds("FloatImm")
def _build_float_imm(d: Decoder, at: int, attrs: Attributes) -> Any:
    value, dtype = d.table.number(at, "value", attrs), attrs.get("dtype", "")
    return value if dtype == "float32" else ast.Imm(value, dtype)


@builds("tir.StringImm")
def _build_string_imm(d: Decoder, at: int, attrs: Attributes) -> str:
    return d.table.string(at, "value", attrs)


@builds("tir.Any")
def _build_any(d: Decoder, at: int, attrs: Attributes) -> ast.AnyDim:
    return ast.AnyDim()


def _build_dim_var(is_size: bool, d: Decoder, at: int, attrs: Attributes) -> ast.DimVar:
    return ast.DimVar(d.table.string(at, "name", attrs), attrs.get("dtype", "int32"), is_size)


builds("tir.Var")(partial(_build_dim_var, False))
builds("tir.SizeVar")(partial(_build_dim_var, True))


@builds("DictAttrs", "__dict__")
def _build_dict_attrs(d: Decoder, at: int, attrs: Attributes, items: Any) -> Any:
    found = (
        MappingProxyType({})
        if items is None
        else d.require(at, "dictionary", items, MappingProxyType)
    )
    if not all(isinstance(name, str) for name in found):
        raise d.table.error(at, "the name of an attribute is no string")
    d.check_value(at, "value", found)
    return found


@builds("VirtualDevice", "memory_scope", "target")
def _build_virtual_device(
    d: Decoder, at: int, attrs: Attributes, scope: Any, target: Any
) -> ast.VirtualDevice:
    return ast.VirtualDevice(
        d.table.integer(at, "device_type_int", attrs, -1),
        d.table.integer(at, "virtual_device_id", attrs, -1),
        d.require_optional(at, "target", target, ast.Opaque),
        d.require_optional(at, "memory scope", scope, str) or "",
    )


# Types


@builds("relay.TensorType", "shape")
def _build_tensor_type(d: Decoder, at: int, attrs: Attributes, shape: Any) -> ast.TensorType:
    dims = d.require_each(at, "shape", shape, int, ast.Imm, ast.AnyDim, ast.DimVar, ast.Opaque)
    dtype = attrs.get("dtype", "")
    if DTYPE.fullmatch(dtype) is None:
        raise d.table.error(at, f"there is no element type {dtype[:40]!r}")
    return ast.TensorType(tuple(map(_to_dim, dims)), dtype)


def _to_dim(dim: Any) -> ast.Dim:
    if isinstance(dim, ast.AnyDim):
        return None
    if isinstance(dim, ast.Imm):
        return ast.LongDim(dim.value) if dim.dtype == "int64" else int(dim.value)
    return cast(ast.Dim, dim)


@builds("TupleType", "fields")
def _build_tuple_type(d: Decoder, at: int, attrs: Attributes, fields: Any) -> ast.TupleType:
    return ast.TupleType(d.require_types(at, "fields", fields))


@builds("FuncType", "arg_types", "ret_type", "type_params")
def _build_func_type(
    d: Decoder, at: int, attrs: Attributes, args: Any, ret: Any, params: Any
) -> Any:
    return ast.FuncType(
        d.require_types(at, "argument types", args),
        d.require_type(at, "result", ret),
        d.require_each(at, "type parameters", params, ast.TypeVar),
    )


@builds("relay.RefType", "value")
def _build_ref_type(d: Decoder, at: int, attrs: Attributes, value: Any) -> ast.RefType:
    return ast.RefType(d.require_type(at, "value", value))


@builds("TypeVar", "var")
def _build_type_var(d: Decoder, at: int, attrs: Attributes, var: Any) -> ast.TypeVar:
    kind = d.table.integer(at, "kind", attrs)
    if var is not None:  # TVM 0.6
        return ast.TypeVar(d.require(at, "variable", var, ast.DimVar).name, kind)
    return ast.TypeVar(d.table.string(at, "name_hint", attrs), kind)


@builds("GlobalTypeVar", "var")
def _build_global_type_var(d: Decoder, at: int, attrs: Attributes, var: Any) -> ast.GlobalTypeVar:
    if var is not None:
        return ast.GlobalTypeVar(d.require(at, "variable", var, ast.DimVar).name)
    return ast.GlobalTypeVar(d.table.string(at, "name_hint", attrs))


@builds("TypeCall", "func", "args")
def _build_type_call(d: Decoder, at: int, attrs: Attributes, func: Any, args: Any) -> ast.TypeCall:
    return ast.TypeCall(
        d.require_type(at, "function", func), d.require_types(at, "arguments", args)
    )


@builds("IncompleteType")
def _build_incomplete(d: Decoder, at: int, attrs: Attributes) -> ast.IncompleteType:
    return ast.IncompleteType()
