"""The fields of Relay's objects that name other nodes, and what these have to be.

Objects that hold nothing else are read and written by this table; the others have builders in
``objects`` and methods of the encoders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import ast

TYPES = (
    ast.TensorType, ast.TupleType, ast.TypeVar, ast.FuncType, ast.RefType, ast.GlobalTypeVar,
    ast.TypeCall, ast.IncompleteType,
)  # fmt: skip
PATTERNS = (ast.PatternWildcard, ast.PatternVar, ast.PatternConstructor, ast.PatternTuple)


@dataclass(frozen=True)
class Part:
    """What a field names: an object of one of ``kinds``, or with ``many`` an array of such."""

    kinds: tuple[type[Any], ...]
    many: bool = False
    optional: bool = False


def one(*kinds: type[Any]) -> Part:
    """A field that names an object."""
    return Part(kinds)


def each(*kinds: type[Any]) -> Part:
    """A field that names an array of objects."""
    return Part(kinds, many=True)


def maybe(*kinds: type[Any]) -> Part:
    """A field that names an object, or null."""
    return Part(kinds, optional=True)


EXPR = one(ast.Expr)
COMMON = {  # of every expression
    "virtual_device_": maybe(ast.VirtualDevice),
    "span": maybe(ast.Span),
    "_checked_type_": maybe(*TYPES),
}
# By type of node the class, and its fields in the order of the class's parameters
LAYOUTS: dict[str, tuple[type[Any], Mapping[str, Part]]] = {
    "relay.Tuple": (ast.Tuple, {"fields": each(ast.Expr)}),
    "relay.Let": (ast.Let, {"var": one(ast.Var), "value": EXPR, "body": EXPR}),
    "relay.If": (ast.If, {"cond": EXPR, "true_branch": EXPR, "false_branch": EXPR}),
    "relay.RefCreate": (ast.RefCreate, {"value": EXPR}),
    "relay.RefRead": (ast.RefRead, {"ref": EXPR}),
    "relay.RefWrite": (ast.RefWrite, {"ref": EXPR, "value": EXPR}),
    "relay.Clause": (ast.Clause, {"lhs": one(*PATTERNS), "rhs": EXPR}),
    "relay.PatternWildcard": (ast.PatternWildcard, {}),
    "relay.PatternVar": (ast.PatternVar, {"var": one(ast.Var)}),
    "relay.PatternConstructor": (
        ast.PatternConstructor,
        {"constructor": one(ast.Constructor), "patterns": each(*PATTERNS)},
    ),
    "relay.PatternTuple": (ast.PatternTuple, {"patterns": each(*PATTERNS)}),
    "TupleType": (ast.TupleType, {"fields": each(*TYPES)}),
    "FuncType": (
        ast.FuncType,
        {"arg_types": each(*TYPES), "ret_type": one(*TYPES), "type_params": each(ast.TypeVar)},
    ),
    "relay.RefType": (ast.RefType, {"value": one(*TYPES)}),
    "TypeCall": (ast.TypeCall, {"func": one(*TYPES), "args": each(*TYPES)}),
    "IncompleteType": (ast.IncompleteType, {}),
    "tir.Any": (ast.AnyDim, {}),
}
KEYS = {cls: key for key, (cls, _) in LAYOUTS.items()}
