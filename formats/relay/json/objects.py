"""How each object of Relay is built from its node: the fields that name other nodes, and a builder.

Fields by release are in TVM's VisitAttrs; those missing from a file are null here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, cast

from .. import ast
from .decoder import Decoder
from .node_table import Attributes
from .values import BUILDERS, builds

__all__ = ["BUILDERS"]
PATTERNS = (ast.PatternWildcard, ast.PatternVar, ast.PatternConstructor, ast.PatternTuple)
EXPR = ("virtual_device_", "span", "_checked_type_")


def _read_common(d: Decoder, at: int, device: Any, span: Any, checked: Any) -> dict[str, Any]:
    if device is span is checked is None:
        return {}
    if device == ast.VirtualDevice():
        device = None
    return {
        "device": d.require_optional(at, "device", device, ast.VirtualDevice),
        "span": d.require_optional(at, "span", span, ast.Span),
        "type": d.require_optional_type(at, "type", checked),
    }


@builds("relay.Id")
def _build_id(d: Decoder, at: int, attrs: Attributes) -> ast.VarId:
    return ast.VarId(d.table.string(at, "name_hint", attrs))


@builds("relay.Var", "vid", "type_annotation", *EXPR)
def _build_var(
    d: Decoder, at: int, attrs: Attributes, vid: Any, type_: Any, *common: Any
) -> ast.Var:
    annotation = d.require_optional_type(at, "annotation", type_)
    shared = d.require(at, "name", vid, ast.VarId)
    return ast.Var(shared.name, annotation, shared, **_read_common(d, at, *common))


@builds("GlobalVar", *EXPR)
def _build_global_var(d: Decoder, at: int, attrs: Attributes, *common: Any) -> ast.GlobalVar:
    return ast.GlobalVar(d.table.string(at, "name_hint", attrs), **_read_common(d, at, *common))


@builds("Op")
def _build_op(d: Decoder, at: int, attrs: Attributes) -> ast.Op:
    return ast.Op(d.table.text(at))


@builds("relay.Constructor", "inputs", "belong_to")
def _build_constructor(d: Decoder, at: int, attrs: Attributes, inputs: Any, of: Any) -> Any:
    types = d.require_types(at, "inputs", inputs)
    owner = d.require(at, "data type", of, ast.GlobalTypeVar)
    tag = d.table.integer(at, "tag", attrs)
    return d.add_constructor(at, d.table.string(at, "name_hint", attrs), types, owner.name, tag)


@builds("relay.Constant", *EXPR)
def _build_constant(d: Decoder, at: int, attrs: Attributes, *common: Any) -> ast.Constant:
    return ast.Constant(d.table.tensor(at, attrs), **_read_common(d, at, *common))


@builds("relay.Tuple", "fields", *EXPR)
def _build_tuple(d: Decoder, at: int, attrs: Attributes, fields: Any, *common: Any) -> ast.Tuple:
    return ast.Tuple(d.require_each(at, "fields", fields, ast.Expr), **_read_common(d, at, *common))


@builds("relay.TupleGetItem", "tuple_value", *EXPR)
def _build_get_item(
    d: Decoder, at: int, attrs: Attributes, of: Any, *common: Any
) -> ast.TupleGetItem:
    index = d.table.integer(at, "index", attrs, -1)
    if index < 0:
        raise d.table.error(at, f"the tuple has no field {index}")
    return ast.TupleGetItem(
        d.require(at, "tuple", of, ast.Expr), index, **_read_common(d, at, *common)
    )


@builds("relay.Call", "op", "args", "attrs", "type_args", *EXPR)
def _build_call(
    d: Decoder, at: int, attrs: Attributes, op: Any, args: Any, own: Any, types: Any, *common: Any
) -> ast.Call:
    if isinstance(own, MappingProxyType):  # DictAttrs
        own = ast.Attrs("DictAttrs", own)
    return ast.Call(
        d.require(at, "operator", op, ast.Expr),
        d.require_each(at, "arguments", args, ast.Expr),
        d.require_optional(at, "attributes", own, ast.Attrs),
        d.require_types(at, "type arguments", types),
        **_read_common(d, at, *common),
    )


@builds("relay.Function", "params", "body", "ret_type", "type_params", "attrs", *EXPR)
def _build_function(
    d: Decoder, at: int, attrs: Attributes, params: Any, body: Any, ret: Any, types: Any, own: Any,
    *common: Any,
) -> ast.Function:  # fmt: skip
    return ast.Function(
        d.require_each(at, "parameters", params, ast.Var),
        d.require(at, "body", body, ast.Expr),
        d.require_optional_type(at, "result type", ret),
        d.require_each(at, "type parameters", types, ast.TypeVar),
        d.require_optional(at, "attributes", own, MappingProxyType) or ast.NOTHING,
        **_read_common(d, at, *common),
    )


@builds("relay.Let", "var", "value", "body", *EXPR)
def _build_let(
    d: Decoder, at: int, attrs: Attributes, var: Any, value: Any, body: Any, *common: Any
) -> ast.Let:
    return ast.Let(
        d.require(at, "variable", var, ast.Var),
        d.require(at, "value", value, ast.Expr),
        d.require(at, "body", body, ast.Expr),
        **_read_common(d, at, *common),
    )


@builds("relay.If", "cond", "true_branch", "false_branch", *EXPR)
def _build_if(
    d: Decoder, at: int, attrs: Attributes, cond: Any, then: Any, otherwise: Any, *common: Any
) -> ast.If:
    return ast.If(
        d.require(at, "condition", cond, ast.Expr),
        d.require(at, "true branch", then, ast.Expr),
        d.require(at, "false branch", otherwise, ast.Expr),
        **_read_common(d, at, *common),
    )


@builds("relay.RefCreate", "value", *EXPR)
def _build_ref_create(d: Decoder, at: int, attrs: Attributes, value: Any, *common: Any) -> Any:
    return ast.RefCreate(d.require(at, "value", value, ast.Expr), **_read_common(d, at, *common))


@builds("relay.RefRead", "ref", *EXPR)
def _build_ref_read(d: Decoder, at: int, attrs: Attributes, ref: Any, *common: Any) -> ast.RefRead:
    return ast.RefRead(d.require(at, "reference", ref, ast.Expr), **_read_common(d, at, *common))


@builds("relay.RefWrite", "ref", "value", *EXPR)
def _build_ref_write(
    d: Decoder, at: int, attrs: Attributes, ref: Any, value: Any, *common: Any
) -> ast.RefWrite:
    return ast.RefWrite(
        d.require(at, "reference", ref, ast.Expr),
        d.require(at, "value", value, ast.Expr),
        **_read_common(d, at, *common),
    )


@builds("relay.Match", "data", "clauses", *EXPR)
def _build_match(
    d: Decoder, at: int, attrs: Attributes, data: Any, clauses: Any, *common: Any
) -> Any:
    return ast.Match(
        d.require(at, "data", data, ast.Expr),
        d.require_each(at, "clauses", clauses, ast.Clause),
        d.table.integer(at, "complete", attrs, 1) != 0,
        **_read_common(d, at, *common),
    )


@builds("relay.Clause", "lhs", "rhs")
def _build_clause(d: Decoder, at: int, attrs: Attributes, pattern: Any, body: Any) -> ast.Clause:
    checked = cast(ast.Pattern, d.require(at, "pattern", pattern, *PATTERNS))
    return ast.Clause(checked, d.require(at, "body", body, ast.Expr))


@builds("relay.PatternWildcard")
def _build_wildcard(d: Decoder, at: int, attrs: Attributes) -> ast.PatternWildcard:
    return ast.PatternWildcard()


@builds("relay.PatternVar", "var")
def _build_pattern_var(d: Decoder, at: int, attrs: Attributes, var: Any) -> ast.PatternVar:
    return ast.PatternVar(d.require(at, "variable", var, ast.Var))


@builds("relay.PatternConstructor", "constructor", "patterns")
def _build_pattern_constructor(
    d: Decoder, at: int, attrs: Attributes, made: Any, inside: Any
) -> Any:
    constructor = d.require(at, "constructor", made, ast.Constructor)
    return ast.PatternConstructor(constructor, d.require_each(at, "patterns", inside, *PATTERNS))


@builds("relay.PatternTuple", "patterns")
def _build_pattern_tuple(d: Decoder, at: int, attrs: Attributes, inside: Any) -> ast.PatternTuple:
    return ast.PatternTuple(d.require_each(at, "patterns", inside, *PATTERNS))


# Modules


@builds("relay.TypeData", "header", "type_vars", "constructors")
def _build_type_data(
    d: Decoder, at: int, attrs: Attributes, header: Any, params: Any, constructors: Any
) -> ast.TypeDef:
    return ast.TypeDef(
        d.require(at, "name", header, ast.GlobalTypeVar).name,
        d.require_each(at, "type parameters", params, ast.TypeVar),
        d.require_each(at, "constructors", constructors, ast.Constructor),
    )


@builds("IRModule", "functions", "type_definitions", "attrs")
def _build_module(
    d: Decoder, at: int, attrs: Attributes, functions: Any, types: Any, own: Any
) -> ast.Module:
    named = {
        d.require(at, "function's name", name, ast.GlobalVar).name: d.require(
            at, "function", function, ast.Function
        )
        for name, function in d.require(
            at, "functions", functions or {}, dict, MappingProxyType
        ).items()
    }
    type_defs = d.require(at, "types", types or {}, dict, MappingProxyType).values()
    defined = [d.require(at, "type", t, ast.TypeDef) for t in type_defs]
    return ast.Module(
        MappingProxyType(named),
        MappingProxyType({t.name: t for t in defined}),
        d.require_optional(at, "attributes", own, MappingProxyType) or ast.NOTHING,
        d.table.tvm,
    )
