"""How each object of Relay is made from its node: the fields that name other nodes, and a builder.

Fields by release are in TVM's VisitAttrs; those missing from a file are null here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from .. import ast
from .node_table import Attributes
from .values import BUILDERS, builds, maybe_type, some_types

if TYPE_CHECKING:
    from .reader import Decoder

__all__ = ["BUILDERS"]  # complete once this module has been read
PATTERNS = (ast.PatternWildcard, ast.PatternVar, ast.PatternConstructor, ast.PatternTuple)
EXPR = ("virtual_device_", "span", "_checked_type_")


def _common(d: Decoder, at: int, device: Any, span: Any, checked: Any) -> dict[str, Any]:
    if device is span is checked is None:
        return {}
    if device == ast.VirtualDevice():
        device = None
    return {
        "device": d.optional(at, "device", device, ast.VirtualDevice),
        "span": d.optional(at, "span", span, ast.Span),
        "type": maybe_type(d, at, "type", checked),
    }


@builds("relay.Id")
def _id(d: Decoder, at: int, attrs: Attributes) -> ast.VarId:
    return ast.VarId(d.table.string(at, "name_hint", attrs))


@builds("relay.Var", "vid", "type_annotation", *EXPR)
def _var(d: Decoder, at: int, attrs: Attributes, vid: Any, type_: Any, *common: Any) -> ast.Var:
    annotation = maybe_type(d, at, "annotation", type_)
    shared = d.one(at, "name", vid, ast.VarId)
    return ast.Var(shared.name, annotation, shared, **_common(d, at, *common))


@builds("GlobalVar", *EXPR)
def _global_var(d: Decoder, at: int, attrs: Attributes, *common: Any) -> ast.GlobalVar:
    return ast.GlobalVar(d.table.string(at, "name_hint", attrs), **_common(d, at, *common))


@builds("Op")
def _op(d: Decoder, at: int, attrs: Attributes) -> ast.Op:
    return ast.Op(d.table.text(at))


@builds("relay.Constructor", "inputs", "belong_to")
def _constructor(d: Decoder, at: int, attrs: Attributes, inputs: Any, of: Any) -> Any:
    types = some_types(d, at, "inputs", inputs)
    owner = d.one(at, "data type", of, ast.GlobalTypeVar)
    tag = d.table.integer(at, "tag", attrs)
    return d.constructor(at, d.table.string(at, "name_hint", attrs), types, owner.name, tag)


@builds("relay.Constant", *EXPR)
def _constant(d: Decoder, at: int, attrs: Attributes, *common: Any) -> ast.Constant:
    return ast.Constant(d.table.tensor(at, attrs), **_common(d, at, *common))


@builds("relay.Tuple", "fields", *EXPR)
def _tuple(d: Decoder, at: int, attrs: Attributes, fields: Any, *common: Any) -> ast.Tuple:
    return ast.Tuple(d.several(at, "fields", fields, ast.Expr), **_common(d, at, *common))


@builds("relay.TupleGetItem", "tuple_value", *EXPR)
def _get_item(d: Decoder, at: int, attrs: Attributes, of: Any, *common: Any) -> ast.TupleGetItem:
    index = d.table.integer(at, "index", attrs, -1)
    if index < 0:
        raise d.table.bad(at, f"the tuple has no field {index}")
    return ast.TupleGetItem(d.one(at, "tuple", of, ast.Expr), index, **_common(d, at, *common))


@builds("relay.Call", "op", "args", "attrs", "type_args", *EXPR)
def _call(
    d: Decoder, at: int, attrs: Attributes, op: Any, args: Any, own: Any, types: Any, *common: Any
) -> ast.Call:
    if isinstance(own, MappingProxyType):  # DictAttrs
        own = ast.Attrs("DictAttrs", own)
    return ast.Call(
        d.one(at, "operator", op, ast.Expr),
        d.several(at, "arguments", args, ast.Expr),
        d.optional(at, "attributes", own, ast.Attrs),
        some_types(d, at, "type arguments", types),
        **_common(d, at, *common),
    )


@builds("relay.Function", "params", "body", "ret_type", "type_params", "attrs", *EXPR)
def _function(
    d: Decoder, at: int, attrs: Attributes, params: Any, body: Any, ret: Any, types: Any, own: Any,
    *common: Any,
) -> ast.Function:  # fmt: skip
    return ast.Function(
        d.several(at, "parameters", params, ast.Var),
        d.one(at, "body", body, ast.Expr),
        maybe_type(d, at, "result type", ret),
        d.several(at, "type parameters", types, ast.TypeVar),
        d.optional(at, "attributes", own, MappingProxyType) or ast.NOTHING,
        **_common(d, at, *common),
    )


@builds("relay.Let", "var", "value", "body", *EXPR)
def _let(
    d: Decoder, at: int, attrs: Attributes, var: Any, value: Any, body: Any, *common: Any
) -> ast.Let:
    return ast.Let(
        d.one(at, "variable", var, ast.Var),
        d.one(at, "value", value, ast.Expr),
        d.one(at, "body", body, ast.Expr),
        **_common(d, at, *common),
    )


@builds("relay.If", "cond", "true_branch", "false_branch", *EXPR)
def _if(
    d: Decoder, at: int, attrs: Attributes, cond: Any, then: Any, otherwise: Any, *common: Any
) -> ast.If:
    return ast.If(
        d.one(at, "condition", cond, ast.Expr),
        d.one(at, "true branch", then, ast.Expr),
        d.one(at, "false branch", otherwise, ast.Expr),
        **_common(d, at, *common),
    )


@builds("relay.RefCreate", "value", *EXPR)
def _ref_create(d: Decoder, at: int, attrs: Attributes, value: Any, *common: Any) -> Any:
    return ast.RefCreate(d.one(at, "value", value, ast.Expr), **_common(d, at, *common))


@builds("relay.RefRead", "ref", *EXPR)
def _ref_read(d: Decoder, at: int, attrs: Attributes, ref: Any, *common: Any) -> ast.RefRead:
    return ast.RefRead(d.one(at, "reference", ref, ast.Expr), **_common(d, at, *common))


@builds("relay.RefWrite", "ref", "value", *EXPR)
def _ref_write(
    d: Decoder, at: int, attrs: Attributes, ref: Any, value: Any, *common: Any
) -> ast.RefWrite:
    return ast.RefWrite(
        d.one(at, "reference", ref, ast.Expr),
        d.one(at, "value", value, ast.Expr),
        **_common(d, at, *common),
    )


@builds("relay.Match", "data", "clauses", *EXPR)
def _match(d: Decoder, at: int, attrs: Attributes, data: Any, clauses: Any, *common: Any) -> Any:
    return ast.Match(
        d.one(at, "data", data, ast.Expr),
        d.several(at, "clauses", clauses, ast.Clause),
        d.table.integer(at, "complete", attrs, 1) != 0,
        **_common(d, at, *common),
    )


@builds("relay.Clause", "lhs", "rhs")
def _clause(d: Decoder, at: int, attrs: Attributes, pattern: Any, body: Any) -> ast.Clause:
    checked = cast(ast.Pattern, d.one(at, "pattern", pattern, *PATTERNS))
    return ast.Clause(checked, d.one(at, "body", body, ast.Expr))


@builds("relay.PatternWildcard")
def _wildcard(d: Decoder, at: int, attrs: Attributes) -> ast.PatternWildcard:
    return ast.PatternWildcard()


@builds("relay.PatternVar", "var")
def _pattern_var(d: Decoder, at: int, attrs: Attributes, var: Any) -> ast.PatternVar:
    return ast.PatternVar(d.one(at, "variable", var, ast.Var))


@builds("relay.PatternConstructor", "constructor", "patterns")
def _pattern_constructor(d: Decoder, at: int, attrs: Attributes, made: Any, inside: Any) -> Any:
    constructor = d.one(at, "constructor", made, ast.Constructor)
    return ast.PatternConstructor(constructor, d.several(at, "patterns", inside, *PATTERNS))


@builds("relay.PatternTuple", "patterns")
def _pattern_tuple(d: Decoder, at: int, attrs: Attributes, inside: Any) -> ast.PatternTuple:
    return ast.PatternTuple(d.several(at, "patterns", inside, *PATTERNS))


# Modules


@builds("relay.TypeData", "header", "type_vars", "constructors")
def _type_data(
    d: Decoder, at: int, attrs: Attributes, header: Any, params: Any, constructors: Any
) -> ast.TypeDef:
    return ast.TypeDef(
        d.one(at, "name", header, ast.GlobalTypeVar).name,
        d.several(at, "type parameters", params, ast.TypeVar),
        d.several(at, "constructors", constructors, ast.Constructor),
    )


@builds("IRModule", "functions", "type_definitions", "attrs")
def _module(
    d: Decoder, at: int, attrs: Attributes, functions: Any, types: Any, own: Any
) -> ast.Module:
    named = {
        d.one(at, "function's name", name, ast.GlobalVar).name: d.one(
            at, "function", function, ast.Function
        )
        for name, function in d.one(
            at, "functions", functions or {}, dict, MappingProxyType
        ).items()
    }
    given = d.one(at, "types", types or {}, dict, MappingProxyType).values()
    defined = [d.one(at, "type", t, ast.TypeDef) for t in given]
    return ast.Module(
        MappingProxyType(named),
        MappingProxyType({t.name: t for t in defined}),
        d.optional(at, "attributes", own, MappingProxyType) or ast.NOTHING,
        d.table.tvm,
    )
