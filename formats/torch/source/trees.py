"""Trees of Python's own ``ast`` for what rules and members say."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from serde.ir.graph import DType, Value


def literal(value: Any) -> ast.expr:
    """A constant argument: a number, a text, an element type, or a tuple of those."""
    if isinstance(value, DType):
        return ast.Attribute(ast.Name("torch"), value.value)
    if isinstance(value, tuple):
        return ast.Tuple([literal(v) for v in value])
    return ast.Constant(value)


def dtype_option(value: Value) -> list[ast.keyword]:
    """The argument that says an element type other than PyTorch's default."""
    is_default = value.dtype is DType.FLOAT32
    return [] if is_default else [ast.keyword("dtype", literal(value.dtype))]


def spell_name(name: str) -> ast.expr:
    """A name with dots in it."""
    first, *rest = name.split(".")
    tree: ast.expr = ast.Name(first)
    for part in rest:
        tree = ast.Attribute(tree, part)
    return tree


def list_elements(value: Value) -> ast.Call:
    """A small constant with its elements."""

    def nest(items: Any) -> ast.expr:
        return (
            ast.List([nest(i) for i in items]) if isinstance(items, list) else ast.Constant(items)
        )

    array = value.array()
    is_short = value.type in (DType.FLOAT16, DType.FLOAT32)
    elements = [float(str(e)) if is_short else e.item() for e in array.reshape(-1)]
    nested = np.array(elements, object).reshape(array.shape).tolist()
    dtype = [ast.keyword("dtype", literal(value.dtype))]
    return ast.Call(spell_name("torch.tensor"), [nest(nested)], dtype)


def return_last(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return what the last assignment computes, where that is the result."""
    match statements[-2:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value), ast.Return(ast.Name(id=other))]:
            return [*statements[:-2], ast.Return(value)] if name == other else statements
    return statements
