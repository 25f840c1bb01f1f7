"""TVM's types as the IR has them: element types, shapes, and what a file declares of a value."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import require
from serde.ir.graph import DType, Shape, Value

from .. import ast

BOOLEANS = {"bool": DType.BOOL, "uint1": DType.BOOL}


def dtype_of(name: str) -> DType:
    """The element type TVM calls ``name``."""
    dtype = BOOLEANS.get(name)
    if dtype is None:
        require(
            "x" not in name and "custom" not in name, f"the element type {name} is not supported"
        )
        dtype = DType.of(name)
    return dtype


def shape_of(dims: Sequence[ast.Dim], stem: str) -> Shape:
    """The shape of an input; unnamed dynamic dimensions get names that begin with ``stem``."""
    return tuple(
        d if isinstance(d, int) else d.name if isinstance(d, ast.DimVar) else f"{stem}_{at}"
        for at, d in enumerate(dims)
    )


def static_shape_of(dims: Sequence[ast.Dim]) -> Shape:
    """The shape of a computed value; None for each dynamic dimension."""
    return tuple(d if isinstance(d, int) else None for d in dims)


def set_declared_type(value: Value, type_: ast.Type | None) -> None:
    """Give a computed value the type that the file declares."""
    if isinstance(type_, ast.TensorType):
        value.dtype, value.shape = dtype_of(type_.dtype), static_shape_of(type_.shape)


def flatten_type(type_: ast.Type | None) -> list[ast.TensorType] | None:
    """The tensor types in ``type_``, depth first; None where it holds any other type."""
    types: list[ast.TensorType] = []
    stack: list[ast.Type | None] = [type_]
    while stack:
        top = stack.pop()
        if isinstance(top, ast.TensorType):
            types.append(top)
        elif isinstance(top, ast.TupleType):
            stack.extend(reversed(top.fields))
        else:
            return None
    return types


def merge_shapes(a: Shape | None, b: Shape | None) -> Shape | None:
    """The dimensions that two shapes agree on; None for the others."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))
