"""The names of functions, and which of their calls the sources of nodes tell."""

from __future__ import annotations

from collections.abc import Sequence

from serde.ir.graph import Call, Value

from .. import ast
from ..ast_walk import post_order
from .values import Closure, Symbolic, flatten, has_only_tensors

MOST_IN_NAME = 8  # operators of a fusion that its name lists
# Attributes that name a function: of a pattern (MergeComposite), of a partition
NAMING = ("Composite", "global_symbol")


def function_name(closure: Closure) -> str:
    """What the sources of nodes call a function."""
    return _declared_name(closure.function) or closure.name


def make_source_calls(closure: Closure, args: Sequence[Symbolic]) -> tuple[Call, ...]:
    """The call as nodes' sources tell it; none unless it has a name, or is a fusion, of tensors."""
    function = closure.function
    bound_name = closure.name if closure.binding is not None else ""
    is_fused = bool(function.attrs.get("Primitive")) and not isinstance(closure.binding, str)
    name = _declared_name(function) or (make_fused_name(function) if is_fused else bound_name)
    if not name or not has_only_tensors(args):
        return ()
    params = [
        (value, param.name if isinstance(arg, Value) else f"{param.name}.{at}")
        for param, arg in zip(function.params, args, strict=True)
        for at, value in enumerate(flatten(arg, "an argument"))
    ]
    return (Call(name, tuple(params), is_fused and not _declared_name(function)),)


def _declared_name(function: ast.Function) -> str:
    names = (function.attrs.get(key) for key in NAMING)
    return next((str(name) for name in names if isinstance(name, str)), "")


def make_fused_name(function: ast.Function) -> str:
    """``fused_nn_conv2d_add_nn_relu``, as TVM calls the kernel."""
    calls = (e for e in post_order(function.body) if isinstance(e, ast.Call))
    ops = [c.op.name.replace(".", "_") for c in calls if isinstance(c.op, ast.Op)]
    return "_".join(["fused", *ops[:MOST_IN_NAME]])
