"""Which expression of the source each constant is that an exporter has computed."""

from __future__ import annotations

import re
from collections.abc import Callable

from .line_expressions import Expression, find_expressions, list_uses
from .scopes import Path, Scope

TARGET = re.compile(r"target=torch\.ops\.\w+\.(\w+)\.")  # the operator that a call is of
RESULT = re.compile(r"([a-zA-Z]+)(?:_(\d+))?")  # of a call, which may be numbered


class FoldedLines:
    """The constants that the calls of each line of the source read, by the exporter's names.

    ``is_array`` tells the paths of the checkpoint's arrays.
    """

    def __init__(self, is_array: Callable[[Path], bool]) -> None:
        self.is_array = is_array
        self.roots: set[tuple[str, str]] = set()  # what classes call the module itself
        self.calls: dict[tuple[Path, str], dict[str, str]] = {}
        self.matches: dict[tuple[Path, str], dict[str, Expression]] = {}

    def enter(self, name: str, scope: Scope) -> None:
        """Enter a constant with the operator of the call that reads it."""
        target = TARGET.search(scope.text)
        if RESULT.fullmatch(name) and scope.line:
            readers = self.calls.setdefault((scope.path, scope.line), {})
            readers.setdefault(name, target[1] if target else "")

    def enter_root(self, member: str, scope: Scope) -> None:
        """Let what a line reads ``member`` of, which a call reads as it is, be the module."""
        for root in re.findall(rf"\b(\w+)\.{re.escape(member)}\b", scope.line):
            self.roots.add((scope.class_name, root))

    def is_module(self, root: str, scope: Scope) -> bool:
        """Whether a name in a line is known to be that of the module: any other may hold what was
        computed of arrays of that name."""
        is_told = root == "self" or (scope.class_name, root) in self.roots
        return is_told or re.match(rf"def \w+\({re.escape(root)}\b", scope.line.strip()) is not None

    def find(self, name: str, scope: Scope) -> Expression | None:
        """The expression that a constant is, where the line of its reader leaves no doubt."""
        place = (scope.path, scope.line)
        if name not in self.calls.get(place, ()):
            return None
        if place not in self.matches:
            self.matches[place] = self._match(scope)
        return self.matches[place].get(name)

    def list_reshaped(self, scope: Scope) -> set[str]:
        """The arrays that the call reads in another shape, and the line nowhere otherwise."""
        target = TARGET.search(scope.text)
        uses = [*list_uses(scope.line)]
        unknown = {use for use in uses if not isinstance(use, Expression)}
        return {".".join((*scope.path, *e.member)) for e in uses if isinstance(e, Expression)
                and e.member not in unknown and e.is_reshaped() and self.is_module(e.root, scope)
                and e.is_read_by(target[1] if target else "")}  # fmt: skip

    def _match(self, scope: Scope) -> dict[str, Expression]:
        """Pair constants and expressions: results are numbered as they are computed."""
        expressions: list[Expression] = []
        for expression in find_expressions(scope.line):
            is_known = self.is_array((*scope.path, *expression.member)) and self.is_module(
                expression.root, scope
            )
            if is_known and not any(map(expression.is_like, expressions)):
                expressions.append(expression)
        readers = self.calls[scope.path, scope.line]
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
