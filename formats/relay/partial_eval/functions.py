"""What functions are called, and which of their calls stay calls where a file can say so."""

from __future__ import annotations

from collections.abc import Sequence

from serde.ir.graph import Call, Value

from .. import ast
from ..ast_walk import post_order
from .values import Closure, Symbolic, same_kind, tensors

MOST_IN_NAME = 8  # operators of a fusion that its name lists
NAMING = ("Composite", "global_symbol")  # what a pattern or a partition calls a function


def function_name(closure: Closure) -> str:
    """How the sources of nodes name a function."""
    return _declared(closure.function) or closure.name


def kept_call(closure: Closure, args: Sequence[Symbolic]) -> tuple[Call, ...]:
    """A call of tensors whose function has a name, or is a fusion's; nothing for others."""
    function = closure.function
    own = closure.name if closure.itself is not None else ""
    fused = bool(function.attrs.get("Primitive")) and not isinstance(closure.itself, str)
    name = _declared(function) or (fused_name(function) if fused else own)
    if not name or not same_kind(args):
        return ()
    given = [
        (value, param.name if isinstance(arg, Value) else f"{param.name}.{at}")
        for param, arg in zip(function.params, args, strict=True)
        for at, value in enumerate(tensors(arg, "an argument"))
    ]
    return (Call(name, tuple(given), fused and not _declared(function)),)


def _declared(function: ast.Function) -> str:
    found = (function.attrs.get(key) for key in NAMING)
    return next((str(name) for name in found if isinstance(name, str)), "")


def fused_name(function: ast.Function) -> str:
    """``fused_nn_conv2d_add_nn_relu``, as TVM calls the kernel."""
    calls = (e for e in post_order(function.body) if isinstance(e, ast.Call))
    ops = [c.op.name.replace(".", "_") for c in calls if isinstance(c.op, ast.Op)]
    return "_".join(["fused", *ops[:MOST_IN_NAME]])
