"""Which expression of the source each constant is that an exporter has computed."""

from __future__ import annotations

import re
from collections.abc import Callable

from .line_expressions import Expression, find_expressions
from .scopes import Path, Scope

TARGET = re.compile(r"target=torch\.ops\.\w+\.(\w+)\.")  # the operator that a call is of
RESULT = re.compile(r"([a-zA-Z]+)(?:_(\d+))?")  # of a call, which may be numbered


class FoldedLines:
    """The constants that the calls of each line of the source read, by the exporter's names.

    ``is_array`` tells the paths of the checkpoint's arrays.
    """

    def __init__(self, is_array: Callable[[Path], bool]) -> None:
        self.is_array = is_array
        self.calls: dict[tuple[Path, str], dict[str, str]] = {}
        self.matches: dict[tuple[Path, str], dict[str, Expression]] = {}

    def enter(self, name: str, scope: Scope) -> None:
        """Enter a constant with the operator of the call that reads it."""
        target = TARGET.search(scope.text)
        if RESULT.fullmatch(name) and scope.line:
            readers = self.calls.setdefault((scope.path, scope.line), {})
            readers.setdefault(name, target[1] if target else "")

    def find(self, name: str, scope: Scope) -> Expression | None:
        """The expression that a constant is, where the line of its reader leaves no doubt."""
        place = (scope.path, scope.line)
        if name not in self.calls.get(place, ()):
            return None
        if place not in self.matches:
            self.matches[place] = self._match(*place)
        return self.matches[place].get(name)

    def reads_otherwise(self, member: str, scope: Scope) -> bool:
        """Whether the line has an array's expressions, and other operators than this read them."""
        target = TARGET.search(scope.text)
        uses = [e for e in find_expressions(scope.line) if ".".join(e.member) == member]
        return bool(uses) and not any(e.is_read_by(target[1] if target else "") for e in uses)

    def _match(self, path: Path, line: str) -> dict[str, Expression]:
        """Pair constants and expressions: results are numbered as they are computed."""
        expressions: list[Expression] = []
        for expression in find_expressions(line):
            if self.is_array((*path, *expression.member)) and not any(
                map(expression.is_like, expressions)
            ):
                expressions.append(expression)
        readers = self.calls[path, line]
        names: dict[str, list[str]] = {}
        for name in sorted(readers, key=_read_number):
            names.setdefault(name.rpartition("_")[0] or name, []).append(name)
        matches: dict[str, Expression] = {}
        for listed in names.values():
            fitting = [e for e in expressions if e.computes(listed[0])]
            for at, name in enumerate(listed):
                some = fitting[at : at + 1] if len(fitting) == len(listed) else fitting
                readable = [e for e in some if e.is_read_by(readers[name])]
                if len(readable) == 1:
                    matches[name] = readable[0]
        return matches


def _read_number(name: str) -> int:
    match = RESULT.fullmatch(name)
    return int(match[2] or 0) if match else 0
