"""The parameters and outputs of a model: what its inputs may be, and the names of its outputs."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import require
from serde.ir.budget import active_budget
from serde.ir.graph import Value

from .. import ast
from .values import Data, Symbolic

COPIES = 8  # of a name, in a graph and in a file
OUTPUT_NAMES = "output_tensor_names"  # the attribute of a function that TVM's frontends set


def refuse_parameter(name: str, type_: ast.Type | None) -> None:
    """Refuse a parameter whose type no input of a model can have."""
    kinds = {
        ast.FuncType: "a function",
        ast.RefType: "a reference",
        ast.TypeCall: "data of an algebraic type, of dynamic length",
        ast.GlobalTypeVar: "data of an algebraic type",
    }
    for kind, what in kinds.items():
        require(not isinstance(type_, kind), f"parameter %{name} is {what}")


def read_output_names(function: ast.Function, outputs: Sequence[Value]) -> list[str] | None:
    """The names of the outputs that the module declares; None where it has none that fit."""
    names = function.attrs.get(OUTPUT_NAMES)
    if not isinstance(names, tuple) or len(names) != len(outputs):
        return None
    distinct = len(set(zip(names, outputs, strict=True))) == len(set(names))  # one value for a name
    return list(names) if distinct and all(isinstance(n, str) and n for n in names) else None


def make_output_names(result: Symbolic) -> list[str]:
    """A name for each tensor in the result, by its position: ``output``, ``output_1_0``."""
    names = []
    stack = [(result, "output")]
    while stack:
        value, name = stack.pop()
        if isinstance(value, Value):
            active_budget().charge(len(name) * COPIES, "the names of nested outputs")
            names.append(name)
        else:
            fields = value.fields if isinstance(value, Data) else value
            parts = [(f, f"{name}_{i}") for i, f in enumerate(fields)]  # type: ignore[arg-type]
            stack.extend(reversed(parts))
    return names
