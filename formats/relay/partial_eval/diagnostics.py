"""What is refused while a module is evaluated: noted, so that all of it is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from serde.errors import ConversionError, Problem, Unconvertible
from serde.ir.graph import Node

from .. import ast
from .values import REFUSED, ReadsRefused, Refused

STAGE = "relay → graph"
Refusal = Callable[[Node], ConversionError | None]
FEWEST_STEPS = 400_000  # that any module may take
MOST_GROWTH = 64  # steps for each expression of a larger one


class Budget:
    """Bounds the work of an evaluation, which a small module can make endless.

    ``size`` counts the module's expressions; it is asked for only where the steps come to many.
    """

    def __init__(self, size: Callable[[], int]) -> None:
        self.size, self.left, self.is_final = size, FEWEST_STEPS, False

    def charge(self, function: str, steps: int = 1) -> None:
        """Take steps from the budget.

        Raises:
            Unconvertible: where none are left. Nothing goes on behind that.
        """
        self.left -= steps
        if self.left >= 0:
            return
        if not self.is_final:
            self.left += max(0, MOST_GROWTH * self.size() - FEWEST_STEPS)
            self.is_final = True
        if self.left < 0:
            reason = (
                "its functions, tuples or recursion expand to a graph out of proportion to the "
                "module. Simplify it in TVM first (relay.transform), or export a smaller part"
            )
            raise Unconvertible(STAGE, [Problem("function", {}, reason, (f"@{function}",), STAGE)])


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
