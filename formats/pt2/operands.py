"""Arguments of ATen operators: attributes in which operands stand for values."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, NamedTuple

LONGEST = 80  # letters of a size by name


class Operand(NamedTuple):
    """Stands in an attribute for an input of the node; ``is_number``: one that is no tensor."""

    place: int
    is_number: bool


class Number(NamedTuple):
    """A number that is computed, in a tensor of one element: it takes part in promotion as one."""

    value: Any


class Complex:
    """A complex tensor: two parts, or between nodes a pair of them along one more axis."""

    def __init__(self, g: Any, real: Any = None, imaginary: Any = None, pair: Any = None) -> None:
        self.g, self.parts = g, (real, imaginary)
        self._pair = pair

    @property
    def real(self) -> Any:
        """The real part."""
        return self._part(0)

    @property
    def imaginary(self) -> Any:
        """The imaginary part."""
        return self._part(1)

    def _part(self, at: int) -> Any:
        if self.parts[at] is not None:
            return self.parts[at]
        return self.g.Gather(self._pair, self.g.const(at), axis=self._pair.rank - 1)

    @property
    def pair(self) -> Any:
        """Both parts along the last axis."""
        if self._pair is None:
            a, b = self.parts
            shape = None if a.shape == b.shape else self.g.Shape(self.g.Add(a, b))
            a, b = (v if shape is None else self.g.Expand(v, shape) for v in (a, b))
            self._pair = self.g.stack([a, b], a.rank)
        return self._pair

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return int(self.parts[0].rank if self._pair is None else self._pair.rank - 1)


def symbol_text(size: Mapping[str, Any]) -> str | None:
    """The text of a size by name, None for expressions other than sums and products."""
    try:
        tree = ast.parse(str(size["as_expr"]["expr_str"])[:1000], mode="eval")
        text = _print(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return text if text and len(text) <= LONGEST else None


def _print(node: ast.expr, inner: bool = False) -> str:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError("no expression")
    name = node.func.id
    if name in ("Symbol", "Integer") and node.args and isinstance(node.args[0], ast.Constant):
        return str(node.args[0].value)
    if name not in ("Add", "Mul"):
        raise ValueError(name)
    text = {"Add": " + ", "Mul": "*"}[name].join(_print(a, name == "Mul") for a in node.args)
    return f"({text})" if inner and name == "Add" else text
