"""How each object of Relay is built from its node: the fields that name other nodes, and a builder.

Fields by release are in TVM's VisitAttrs; those missing from a file are null here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any, cast

from .. import ast
from ..ndarray import DTYPE
from .decoder import Builder, Builders, Decoder
from .layout import COMMON, EXPR, LAYOUTS, TYPES, Part, each, maybe, one
from .node_table import Attributes

BUILDERS: Builders = {}
MAPPING = maybe(MappingProxyType)


def builds(key: str, **parts: Part) -> Callable[[Builder], Builder]:
    """Register the builder of one type of node, given the objects its fields name, checked."""

    def register(builder: Builder) -> Builder:
        BUILDERS[key] = (parts, builder)
        return builder

    return register


def _build_expression(make: Builder, d: Decoder, at: int, attrs: Attributes, *inside: Any) -> Any:
    *fields, device, span, checked = inside
    if device is span is checked is None:
        return make(d, at, attrs, *fields)
    device = None if device == ast.VirtualDevice() else device
    return make(d, at, attrs, *fields, device=device, span=span, type=checked)


def builds_expression(key: str, **parts: Part) -> Callable[[Builder], Builder]:
    """Register the builder of an expression, which is given ``device``, ``span`` and ``type``."""

    def register(builder: Builder) -> Builder:
        builds(key, **parts, **COMMON)(partial(_build_expression, builder))
        return builder

    return register


def _build_by_layout(
    make: type[Any], d: Decoder, at: int, attrs: Attributes, *inside: Any, **common: Any
) -> Any:
    return make(*inside, **common)


for _key, (_make, _parts) in LAYOUTS.items():
    _register = builds_expression if issubclass(_make, ast.Expr) else builds
    _register(_key, **_parts)(partial(_build_by_layout, _make))

# Objects that name no others
PLAIN: dict[str, Builder] = {
    "": lambda d, at, attrs: None,
    "runtime.String": lambda d, at, attrs: d.table.text(at),
    "SourceName": lambda d, at, attrs: d.table.text(at),
    "runtime.BoxInt": lambda d, at, attrs: d.table.integer(
        at, "value", {"value": d.table.text(at)}
    ),
    "runtime.BoxBool": lambda d, at, attrs: d.table.text(at) == "true",
    "runtime.BoxFloat": lambda d, at, attrs: d.table.number(
        at, "value", {"value": d.table.text(at)}
    ),
    "tir.StringImm": lambda d, at, attrs: d.table.string(at, "value", attrs),
    "relay.Id": lambda d, at, attrs: ast.VarId(d.table.string(at, "name_hint", attrs)),
    "Op": lambda d, at, attrs: ast.Op(d.table.text(at)),
}
for _key, _builder in PLAIN.items():
    builds(_key)(_builder)


@builds("Span", source_name=maybe(str), source=maybe(str))
def _build_span(
    d: Decoder, at: int, attrs: Attributes, name: str | None, source: str | None
) -> ast.Span:
    line = d.table.integer(at, "line" if "line" in attrs else "lineno", attrs)
    column = d.table.integer(at, "column" if "column" in attrs else "col_offset", attrs)
    return ast.Span((source if name is None else name) or "", line, column)


@builds("SequentialSpan", spans=each(ast.Span))
def _build_spans(
    d: Decoder, at: int, attrs: Attributes, spans: tuple[ast.Span, ...]
) -> ast.Span | None:
    return spans[0] if spans else None


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


def _build_dim_var(is_size: bool, d: Decoder, at: int, attrs: Attributes) -> ast.DimVar:
    return ast.DimVar(d.table.string(at, "name", attrs), attrs.get("dtype", "int32"), is_size)


builds("tir.Var")(partial(_build_dim_var, False))
builds("tir.SizeVar")(partial(_build_dim_var, True))


@builds("DictAttrs", __dict__=MAPPING)
def _build_dict_attrs(d: Decoder, at: int, attrs: Attributes, items: Any) -> Any:
    mapping = MappingProxyType({}) if items is None else items
    if not all(isinstance(name, str) for name in mapping):
        raise d.table.error(at, "the name of an attribute is no string")
    d.check_value(at, "value", mapping)
    return mapping


@builds("VirtualDevice", memory_scope=maybe(str), target=maybe(ast.Opaque))
def _build_virtual_device(
    d: Decoder, at: int, attrs: Attributes, scope: str | None, target: ast.Opaque | None
) -> ast.VirtualDevice:
    kind = d.table.integer(at, "device_type_int", attrs, -1)
    number = d.table.integer(at, "virtual_device_id", attrs, -1)
    return ast.VirtualDevice(kind, number, target, scope or "")


# Types


@builds("relay.TensorType", shape=each(int, ast.Imm, ast.AnyDim, ast.DimVar, ast.Opaque))
def _build_tensor_type(
    d: Decoder, at: int, attrs: Attributes, shape: tuple[Any, ...]
) -> ast.TensorType:
    dtype = attrs.get("dtype", "")
    if DTYPE.fullmatch(dtype) is None:
        raise d.table.error(at, f"there is no element type {dtype[:40]!r}")
    for dim in shape:
        if isinstance(dim, bool) or (isinstance(dim, ast.Imm) and not isinstance(dim.value, int)):
            raise d.table.error(at, "a dimension is no integer")
    sizes = tuple(map(_to_dim, shape))
    if negative := [d for d in sizes if isinstance(d, int) and d < 0]:
        raise d.table.error(at, ast.NEGATIVE_SIZE.format(negative[0]))
    return ast.TensorType(sizes, dtype)


def _to_dim(dim: Any) -> ast.Dim:
    if isinstance(dim, ast.AnyDim):
        return None
    if isinstance(dim, ast.Imm):
        return ast.LongDim(dim.value) if dim.dtype == "int64" else int(dim.value)
    return cast(ast.Dim, dim)


def _name_of(d: Decoder, at: int, attrs: Attributes, var: ast.DimVar | None) -> str:
    """The name of a type, which TVM 0.6 put in a variable."""
    return d.table.string(at, "name_hint", attrs) if var is None else var.name


@builds("TypeVar", var=maybe(ast.DimVar))
def _build_type_var(d: Decoder, at: int, attrs: Attributes, var: ast.DimVar | None) -> ast.TypeVar:
    kind = d.table.integer(at, "kind", attrs)
    return ast.TypeVar(_name_of(d, at, attrs, var), kind)


@builds("GlobalTypeVar", var=maybe(ast.DimVar))
def _build_global_type_var(
    d: Decoder, at: int, attrs: Attributes, var: ast.DimVar | None
) -> ast.GlobalTypeVar:
    return ast.GlobalTypeVar(_name_of(d, at, attrs, var))


# Expressions


@builds_expression("relay.Var", vid=one(ast.VarId), type_annotation=maybe(*TYPES))
def _build_var(
    d: Decoder, at: int, attrs: Attributes, vid: ast.VarId, annotation: Any, **common: Any
) -> ast.Var:
    return ast.Var(vid.name, annotation, vid, **common)


@builds_expression("GlobalVar")
def _build_global_var(d: Decoder, at: int, attrs: Attributes, **common: Any) -> ast.GlobalVar:
    return ast.GlobalVar(d.table.string(at, "name_hint", attrs), **common)


@builds("relay.Constructor", inputs=each(*TYPES), belong_to=one(ast.GlobalTypeVar))
def _build_constructor(
    d: Decoder, at: int, attrs: Attributes, inputs: Any, of: ast.GlobalTypeVar
) -> Any:
    tag = d.table.integer(at, "tag", attrs)
    return d.add_constructor(at, d.table.string(at, "name_hint", attrs), inputs, of.name, tag)


@builds_expression("relay.Constant")
def _build_constant(d: Decoder, at: int, attrs: Attributes, **common: Any) -> ast.Constant:
    return ast.Constant(d.table.tensor(at, attrs), **common)


@builds_expression("relay.TupleGetItem", tuple_value=EXPR)
def _build_get_item(
    d: Decoder, at: int, attrs: Attributes, of: ast.Expr, **common: Any
) -> ast.TupleGetItem:
    index = d.table.integer(at, "index", attrs, -1)
    if index < 0:
        raise d.table.error(at, f"the tuple has no field {index}")
    return ast.TupleGetItem(of, index, **common)


@builds_expression(
    "relay.Call", op=EXPR, args=each(ast.Expr), attrs=maybe(ast.Attrs, MappingProxyType),
    type_args=each(*TYPES),
)  # fmt: skip
def _build_call(
    d: Decoder, at: int, attrs: Attributes, op: ast.Expr, args: Any, op_attrs: Any, types: Any,
    **common: Any,
) -> ast.Call:  # fmt: skip
    if isinstance(op_attrs, MappingProxyType):
        op_attrs = ast.Attrs("DictAttrs", op_attrs)
    return ast.Call(op, args, op_attrs, types, **common)


@builds_expression(
    "relay.Function", params=each(ast.Var), body=EXPR, ret_type=maybe(*TYPES),
    type_params=each(ast.TypeVar), attrs=MAPPING,
)  # fmt: skip
def _build_function(
    d: Decoder, at: int, attrs: Attributes, params: Any, body: ast.Expr, ret: Any, types: Any,
    function_attrs: Any, **common: Any,
) -> ast.Function:  # fmt: skip
    return ast.Function(params, body, ret, types, function_attrs or ast.NOTHING, **common)


@builds_expression("relay.Match", data=EXPR, clauses=each(ast.Clause))
def _build_match(
    d: Decoder, at: int, attrs: Attributes, data: ast.Expr, clauses: Any, **common: Any
) -> ast.Match:
    return ast.Match(data, clauses, d.table.integer(at, "complete", attrs, 1) != 0, **common)


# Modules


@builds(
    "relay.TypeData", header=one(ast.GlobalTypeVar), type_vars=each(ast.TypeVar),
    constructors=each(ast.Constructor),
)  # fmt: skip
def _build_type_data(
    d: Decoder, at: int, attrs: Attributes, header: ast.GlobalTypeVar, params: Any, ctors: Any
) -> ast.TypeDef:
    return ast.TypeDef(header.name, params, ctors)


@builds("IRModule", functions=MAPPING, type_definitions=MAPPING, attrs=MAPPING)
def _build_module(
    d: Decoder, at: int, attrs: Attributes, functions: Any, types: Any, module_attrs: Any
) -> ast.Module:
    named: dict[str, ast.Function] = {}
    for name, function in (functions or {}).items():
        key = d.require(at, "function's name", name, ast.GlobalVar).name
        named[key] = d.require(at, "function", function, ast.Function)
    defined = [d.require(at, "type", t, ast.TypeDef) for t in (types or {}).values()]
    return ast.Module(
        MappingProxyType(named),
        MappingProxyType({t.name: t for t in defined}),
        module_attrs or ast.NOTHING,
        d.table.tvm,
    )
