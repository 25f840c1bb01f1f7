"""What is refused while a module is evaluated: noted, so that all of it is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from serde.errors import ConversionError, Problem
from serde.graph import Node

from . import ast
from .elaborate_values import REFUSED, ReadsRefused, Refused

STAGE = "relay → graph"
Refusal = Callable[[Node], ConversionError | None]


class Problems:
    """Reasons, and the places each was met at."""

    def __init__(self) -> None:
        self.places: dict[str, dict[str, None]] = {}

    def __bool__(self) -> bool:
        return bool(self.places)

    def note(self, error: ConversionError, function: str, expr: ast.Expr | None = None) -> Refused:
        """Note why ``expr``, in ``function``, comes to nothing; what it comes to instead."""
        if not isinstance(error, ReadsRefused):
            span = expr.span if expr is not None else None
            place = f" (line {span.line}, column {span.column})" if span and span.line else ""
            self.places.setdefault(error.reason, {})[f"@{function}{place}"] = None
        return REFUSED

    def listing(self, nodes: Iterable[Node], refusal: Refusal) -> list[Problem]:
        """Those of the language, and what ``refusal`` says of the nodes there are."""
        found = [Problem("function", {}, r, tuple(at), STAGE) for r, at in self.places.items()]
        operators: dict[tuple[str, str], list[str]] = {}
        for node in dict.fromkeys(nodes):
            error = refusal(node)
            if error is not None:
                operators.setdefault((node.op, error.reason), []).append(node.name)
        return found + [Problem(o, {}, r, tuple(n), STAGE) for (o, r), n in operators.items()]
