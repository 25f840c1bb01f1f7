"""Whether two modules are the same, up to the names and numbers of variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from serde.formats.relay import ast
from serde.formats.relay.ast_walk import operands

LEAVES = (ast.Constant, ast.Op, ast.GlobalVar, ast.Constructor)
SIX_DIGITS = 2e-5


def difference(a: ast.Module, b: ast.Module, digits: float = 0.0, types: bool = True) -> str | None:
    """What differs first, or None. ``digits`` is the relative difference floats may have.

    ``types``: what TVM inferred is compared too, wherever both modules tell it; if not, variables
    and results may be annotated in only one of them.
    """
    if set(a.functions) != set(b.functions):
        return f"functions {sorted(set(a.functions) ^ set(b.functions))}"
    if set(a.types) != set(b.types):
        return f"types {sorted(set(a.types) ^ set(b.types))}"
    comparison = _Comparison(digits, types)
    for name, left in a.types.items():
        if diff := comparison.definition(left, b.types[name]):
            return f"type {name}: {diff}"
    for name, function in a.functions.items():
        if diff := comparison.expr(function, b.functions[name]):
            return f"@{name}: {diff}"
    return None


class _Comparison:
    def __init__(self, digits: float, types: bool) -> None:
        self.digits, self.types = digits, types
        self.same: dict[Any, Any] = {}
        self.back: dict[Any, Any] = {}

    def pair(self, a: Any, b: Any) -> bool:
        """Whether ``a`` has always been met where ``b`` was."""
        return self.same.setdefault(a, b) is b and self.back.setdefault(b, a) is a

    def definition(self, a: ast.TypeDef, b: ast.TypeDef) -> str | None:
        for x, y in zip(a.type_params, b.type_params, strict=True):
            self.pair(x, y)
        for x, y in zip(a.constructors, b.constructors, strict=True):
            if x.name != y.name or not self.all(x.inputs, y.inputs):
                return f"{x.name}{x.inputs} and {y.name}{y.inputs}"
        return None

    def expr(self, a: ast.Expr, b: ast.Expr) -> str | None:
        stack = [(a, b)]
        while stack:
            x, y = stack.pop()
            if type(x) is not type(y):
                return f"{_show(x)} and {_show(y)}"
            if not isinstance(x, LEAVES):
                met = x in self.same
                if not self.pair(x, y):
                    return f"{_show(x)} is shared otherwise"
                if met:
                    continue
            if diff := self.node(x, y):
                return f"{diff} in {_show(x)} and {_show(y)}"
            stack.extend(zip(operands(x), operands(y), strict=True))
        return None

    def node(self, x: Any, y: Any) -> str | None:
        """What differs between two nodes, what is inside them apart."""
        if len(operands(x)) != len(operands(y)):
            return "number of operands"
        shown = isinstance(x, (ast.Var, ast.Constant, ast.Call, ast.Tuple, ast.Function))
        if self.types and shown and x.type and y.type and not self.value(x.type, y.type):
            return f"type {x.type} and {y.type}"
        if (x.device or None) != (y.device or None) and not self.value(x.device, y.device):
            return f"device {x.device} and {y.device}"
        for name in ("name", "index", "complete", "annotation", "ret_type", "type_params"):
            if name == "name" and isinstance(x, ast.Var):
                continue
            if name == "type_params" and isinstance(x, ast.Function):
                for p, q in zip(x.type_params, y.type_params, strict=True):
                    self.pair(p, q)
            left, right = getattr(x, name, None), getattr(y, name, None)
            if name in ("ret_type", "annotation") and not self.types and None in (left, right):
                continue  # inferred
            if not self.value(left, right):
                return f"{name} {left} and {right}"
        if isinstance(x, ast.Constant):
            return None if self.tensor(x.tensor, y.tensor) else "value"
        if isinstance(x, ast.Match):
            for c, d in zip(x.clauses, y.clauses, strict=True):
                if not self.value(c.pattern, d.pattern):
                    return f"pattern {c.pattern} and {d.pattern}"
        if isinstance(x, ast.Function) and not self.value(x.attrs, y.attrs):
            return f"attributes {dict(x.attrs)} and {dict(y.attrs)}"
        if isinstance(x, ast.Call):
            left = x.attrs.values if x.attrs else {}
            right = y.attrs.values if y.attrs else {}
            if not self.value(left, right):
                return f"attributes {dict(left)} and {dict(right)}"
        return None

    def tensor(self, a: Any, b: Any) -> bool:
        if a.dtype is not b.dtype or a.shape != b.shape:
            return False
        if not self.digits or a.dtype.kind != "f":
            return bool(a.load().tobytes() == b.load().tobytes())
        left, right = np.asarray(a.load(), np.float64), np.asarray(b.load(), np.float64)
        return bool(np.allclose(left, right, rtol=self.digits, atol=0, equal_nan=True))

    def all(self, a: Any, b: Any) -> bool:
        return len(a) == len(b) and all(map(self.value, a, b))

    def value(self, a: Any, b: Any) -> bool:
        """Whether two types, patterns or attribute values are the same."""
        if isinstance(a, (ast.TypeVar, ast.DimVar, ast.Var)):
            return type(a) is type(b) and self.pair(a, b)
        if isinstance(a, ast.Constant) and isinstance(b, ast.Constant):
            return self.tensor(a.tensor, b.tensor)
        if isinstance(a, ast.Constructor) and isinstance(b, ast.Constructor):
            return (a.of, a.name) == (b.of, b.name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            return set(a) == set(b) and all(self.value(v, b[k]) for k, v in a.items())
        if isinstance(a, tuple) and isinstance(b, tuple):
            return self.all(a, b)
        if isinstance(a, float) and type(b) is float:
            return a == b or bool(np.isclose(a, b, rtol=self.digits, atol=0, equal_nan=True))
        if type(a) is not type(b):
            return False
        if hasattr(a, "__dataclass_fields__"):
            return all(self.value(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__)
        return bool(a == b)


def _show(expr: ast.Expr) -> str:
    where = f" at line {expr.span.line}" if expr.span else ""
    op = getattr(expr, "op", None)
    return f"{type(expr).__name__} {getattr(expr, 'name', getattr(op, 'name', ''))}{where}"
