"""Refusals of partial evaluation, which are collected and raised together, and its budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from serde.errors import ConversionError, Problem, Unconvertible
from serde.ir.budget import STEPS
from serde.ir.graph import Node

from .. import ast
from .values import FAILURE, DependsOnFailure, Failure

STAGE = "relay → graph"
Refusal = Callable[[Node], ConversionError | None]


class Budget:
    """Bounds the work of an evaluation, which a small module can make endless.

    ``size`` counts the module's expressions; it is called only where the steps come to many.
    """

    def __init__(self, size: Callable[[], int]) -> None:
        self.size, self.left, self.is_final = size, STEPS.least, False

    def charge(self, function: str, steps: int = 1) -> None:
        """Take steps from the budget.

        Raises:
            Unconvertible: where none are left; this ends the evaluation.
        """
        self.left -= steps
        if self.left >= 0:
            return
        if not self.is_final:
            self.left += max(0, STEPS.growth * self.size() - STEPS.least)
            self.is_final = True
        if self.left < 0:
            reason = (
                "its functions, tuples or recursion expand to a graph out of proportion to the "
                "module. Simplify it in TVM first (relay.transform), or export a smaller part"
            )
            raise Unconvertible(STAGE, [Problem("function", {}, reason, (f"@{function}",), STAGE)])


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Why one expression of a function is refused."""

    reason: str
    function: str
    span: ast.Span | None = None

    @property
    def place(self) -> str:
        """The function, with line and column where the module is text."""
        span = self.span
        place = f" (line {span.line}, column {span.column})" if span and span.line else ""
        return f"@{self.function}{place}"


@dataclass
class Diagnostics:
    """The diagnostics recorded so far."""

    recorded: list[Diagnostic] = field(default_factory=list)

    def record(
        self, error: ConversionError, function: str, expr: ast.Expr | None = None
    ) -> Failure:
        """Record why ``expr``, in ``function``, is refused; return the value it has instead."""
        if not isinstance(error, DependsOnFailure):
            span = expr.span if expr is not None else None
            self.recorded.append(Diagnostic(error.reason, function, span))
        return FAILURE

    def problems(self, nodes: Iterable[Node], refusal: Refusal) -> list[Problem]:
        """The diagnostics by reason, and what ``refusal`` says of the nodes emitted."""
        places: dict[str, dict[str, None]] = {}
        for diagnostic in self.recorded:
            places.setdefault(diagnostic.reason, {})[diagnostic.place] = None
        problems = [Problem("function", {}, r, tuple(at), STAGE) for r, at in places.items()]
        operators: dict[tuple[str, str], list[str]] = {}
        for node in dict.fromkeys(nodes):
            error = refusal(node)
            if error is not None:
                operators.setdefault((node.op, error.reason), []).append(node.name)
        return problems + [Problem(o, {}, r, tuple(n), STAGE) for (o, r), n in operators.items()]
