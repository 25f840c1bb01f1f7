"""Expressions of an array in a line of the source, which an exporter has computed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..target import Slot

Array = np.ndarray  # type: ignore[type-arg]
X = Slot(0)
TRANSPOSED = r"permute|numpy_T|t|transpose"
CASTS = frozenset({"float", "contiguous", "to", "type_as", "clone"})
MODULES = frozenset({"torch", "F", "self", "nn"})
# Functions by name: as they are written, and what they undo.
FUNCTIONS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "exp": ("torch.exp", np.log), "neg": ("torch.neg", np.negative),
    "tanh": ("torch.tanh", np.arctanh), "sqrt": ("torch.sqrt", np.square),
    "sigmoid": ("torch.sigmoid", lambda y: np.log(y) - np.log1p(-y)),
    "softplus": ("F.softplus", lambda y: y + np.log(-np.expm1(-y))),
    "normalize": ("F.normalize", np.asarray),  # of what is normalized already
}  # fmt: skip
RESULTS = {"normalize": "div"}  # what exporters call results, where it is not the function's name
SIGNS: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "add"), ast.Sub: ("-", "sub"), ast.Mult: ("*", "mul"), ast.Div: ("/", "div"),
}  # fmt: skip


class Step(NamedTuple):
    """One call of an expression, what an exporter calls its result, and its inverse."""

    op: str
    args: tuple[Any, ...]
    result: str
    undo: Callable[[Array], Array]


class Expression(NamedTuple):
    """The calls that compute a constant of ``member``, the innermost first."""

    member: tuple[str, ...]
    steps: tuple[Step, ...]

    def computes(self, name: str) -> bool:
        """Whether the result is what an exporter would call ``name``."""
        return re.fullmatch(rf"({self.steps[-1].result})(_\d+)?", name) is not None

    def is_moved(self) -> bool:
        """Whether the constant has the array's own elements."""
        return all(step.result in ("unsqueeze", TRANSPOSED) for step in self.steps)

    def undo(self, array: Array) -> list[Array]:
        """What each step is computed of, the innermost first."""
        values = [array if self.is_moved() else array.astype(np.float64)]
        with np.errstate(all="ignore"):
            for step in reversed(self.steps):
                values.append(np.asarray(step.undo(values[-1])))
        return [v.astype(array.dtype) for v in reversed(values[1:])]


def find_expressions(line: str) -> Iterator[Expression]:
    """The expressions of one member and numbers in a line of the source."""
    text = line.strip()
    try:
        tree = ast.parse(text.removeprefix("return "))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in parents:
        member = _read_member(node)
        if member and not _read_member(parents[node]):
            steps = _climb(node, parents)
            if steps:
                yield Expression(member, steps)


def _read_member(node: ast.AST) -> tuple[str, ...]:
    """``a.b`` of ``self.a.b``; () for anything else, and where it is called or an attribute's."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and node.attr not in (
        "T",
        *FUNCTIONS,
        *CASTS,
        "unsqueeze",
    ):
        names.append(node.attr)
        node = node.value
    is_member = isinstance(node, ast.Name) and node.id == "self"
    return tuple(reversed(names)) if is_member else ()


def _climb(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> tuple[Step, ...] | None:
    """The steps from a member up to what depends on other values; None for one not known."""
    steps: list[Step] = []
    while isinstance(parent := parents.get(node), ast.expr):
        method = parents[parent] if isinstance(parent, ast.Attribute) else None
        if isinstance(method, ast.Call):
            parent = method
        names = {n.id for n in ast.walk(parent) if isinstance(n, ast.Name)}
        if names - MODULES and not _is_cast(parent, node):
            break
        step = _read_step(parent, node)
        if step is None:
            return None
        steps += step
        node = parent
    return tuple(steps)


def _is_cast(call: ast.AST, node: ast.AST) -> bool:
    return (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
            and call.func.value is node and call.func.attr in CASTS)  # fmt: skip


def _read_step(parent: ast.expr, node: ast.AST) -> list[Step] | None:
    """The step that ``parent`` is of ``node``: none for a cast, None for one not known."""
    match parent:
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in SIGNS:
            number = right if left is node else left
            if isinstance(number, ast.Constant) and isinstance(number.value, (int, float)):
                return [_compute(sign, float(number.value), left is node)]
        case ast.UnaryOp(op=ast.USub()):
            return [Step("torch.neg", (X,), "neg", np.negative)]
        case ast.Attribute(attr="T"):
            return [Step(".t", (X,), TRANSPOSED, np.transpose)]
        case ast.Subscript(slice=index):
            return _read_index(index)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=args, keywords=[]):
            if value is node and name in CASTS:
                return []
            if value is node and name == "unsqueeze" and len(args) == 1:
                return _read_axis(args[0])
            if name in FUNCTIONS and (args == [node] or (value is node and not args)):
                op, undo = FUNCTIONS[name]
                return [Step(op, (X,), RESULTS.get(name, name), undo)]
    return None


def _compute(sign: ast.operator, number: float, is_first: bool) -> Step:
    """A sum, or another operation, with a number."""
    text, result = SIGNS[type(sign)]
    undo: Callable[[Array], Array]
    if isinstance(sign, ast.Add):
        undo = lambda y: y - number  # noqa: E731
    elif isinstance(sign, ast.Mult):
        undo = lambda y: y / number  # noqa: E731
    elif isinstance(sign, ast.Sub):
        undo = (lambda y: y + number) if is_first else (lambda y: number - y)
        result = "sub|rsub"
    else:
        undo = (lambda y: y * number) if is_first else (lambda y: number / y)
        result = "div|reciprocal|mul"
    return Step(text, (X, number) if is_first else (number, X), result, undo)


def _read_axis(tree: ast.expr) -> list[Step] | None:
    try:
        axis = ast.literal_eval(tree)
    except ValueError:
        return None
    if type(axis) is not int:
        return None
    return [Step(".unsqueeze", (X, axis), "unsqueeze", lambda y: np.squeeze(y, axis))]


def _read_index(index: ast.expr) -> list[Step] | None:
    """An index that adds axes: ``[None, :, None]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    kinds: list[Any] = []
    for part in parts:
        if isinstance(part, ast.Constant) and part.value in (None, ...):
            kinds.append(part.value)
        elif isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None:
            kinds.append(slice(None))
        else:
            return None
    if None not in kinds:
        return None

    def undo(y: Array) -> Array:
        rest = y.ndim - sum(k is not ... for k in kinds)
        at = kinds.index(...) if ... in kinds else len(kinds)
        full = [*kinds[:at], *[slice(None)] * rest, *kinds[at + 1 :]]
        return np.squeeze(y, tuple(n for n, kind in enumerate(full) if kind is None))

    return [Step("[]", (X, *kinds), "unsqueeze", undo)]
