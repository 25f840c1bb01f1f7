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
CASTS = frozenset({"float", "contiguous", "to", "type_as", "clone", "detach"})
MODULES = frozenset({"torch", "F", "nn"})
RESHAPE = "(_unsafe_)?view|reshape|flatten|squeeze"  # what exporters call another shape
RESHAPES = frozenset({"view", "reshape", "flatten", "squeeze"})
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


# What exporters call the operators that two values are operands of.
USES: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub|rsub", ast.Mult: "mul", ast.Div: "div", ast.MatMult: "matmul|mm",
}  # fmt: skip
SIGNED = frozenset({"add", "sub", "rsub", "mul", "div"})


class Step(NamedTuple):
    """One call of an expression, what an exporter calls its result, and its inverse."""

    op: str
    args: tuple[Any, ...]
    result: str
    undo: Callable[[Array], Array]


class Expression(NamedTuple):
    """The calls that compute a constant of ``member`` of ``root``, the innermost first; none for a
    copy.

    ``use`` is what an exporter calls the operator that reads the result, "" where that is not told.
    """

    member: tuple[str, ...]
    steps: tuple[Step, ...]
    use: str = ""
    copy: str = ""  # what an exporter calls the array itself, where there are no steps
    root: str = "self"

    @property
    def row(self) -> int | None:
        """The number of the row that the expression begins with, if it does."""
        step = self.steps[0] if self.steps else None
        return int(step.args[1]) if step is not None and step.result == "select" else None

    def is_like(self, other: Expression) -> bool:
        """Whether both compute the same."""
        steps = [[(step.op, step.args) for step in e.steps] for e in (self, other)]
        return self.member == other.member and steps[0] == steps[1]

    def computes(self, name: str) -> bool:
        """Whether the result is what an exporter would call ``name``."""
        result = self.steps[-1].result if self.steps else self.copy
        return re.fullmatch(rf"({result})(_\d+)?", name) is not None

    def is_read_by(self, operator: str) -> bool:
        """Whether a call of ``operator``, "" where that is not known, may read the result.

        Others than those of signs may be what PyTorch makes of one that the line has.
        """
        is_told = bool(self.use) and operator in SIGNED
        return not is_told or re.fullmatch(self.use, operator) is not None

    def is_moved(self) -> bool:
        """Whether the constant has the array's own elements."""
        return all(step.result in ("unsqueeze", "select", TRANSPOSED) for step in self.steps)

    def is_reshaped(self) -> bool:
        """Whether the constant has the array's elements in their order, in another shape."""
        results = {step.result for step in self.steps}
        return bool(results) and results <= {RESHAPE, "unsqueeze"}

    def is_transposed(self) -> bool:
        """Whether the constant is a matrix with its axes turned."""
        return [step.result for step in self.steps] == [TRANSPOSED]

    def undo(self, array: Array) -> list[Array]:
        """What each step is computed of, the innermost first."""
        values = [array if self.is_moved() else array.astype(np.float64)]
        with np.errstate(all="ignore"):
            for step in reversed(self.steps):
                values.append(np.asarray(step.undo(values[-1])))
        return [v.astype(array.dtype) for v in reversed(values[1:])]


def find_expressions(line: str) -> Iterator[Expression]:
    """The expressions of one member and numbers in a line of the source.

    A member is an attribute of any name, which a source need not call ``self``: whether there is
    such an array, and whether the name is the module's, is for the caller to tell.
    """
    return (e for e in list_uses(line) if isinstance(e, Expression))


def list_uses(line: str) -> Iterator[Expression | tuple[str, ...]]:
    """The expressions of members in a line; the names of members in one that is not known."""
    tree = _parse(line.strip().removeprefix("el"))
    if tree is None:
        return
    parents = _find_parents(tree)
    for node in parents:
        root, *member = _read_member(node) or [""]
        if member and not _read_member(parents[node]):
            climbed = _climb(node, parents, root)
            if climbed is None:
                yield tuple(member)
            elif climbed[0] or climbed[1]:
                steps, copy, use = climbed
                yield Expression(tuple(member), steps, use, copy, root)


def _find_parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """What each part of a tree is in, in the order in which they are computed."""
    parents: dict[ast.AST, ast.AST] = {}
    visited: list[ast.AST] = []
    for_later = [tree]
    while for_later:
        node = for_later.pop()
        visited.append(node)
        children = [*ast.iter_child_nodes(node)]
        parents.update(dict.fromkeys(children, node))
        for_later += children
    return {node: parents[node] for node in reversed(visited) if node in parents}


def _parse(text: str) -> ast.Module | None:
    """The statements of a line, which may be the head of others."""
    for source in (text, f"{text} pass"):
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _read_member(node: ast.AST) -> list[str]:
    """The names of ``self.a.b``; none for anything else, and for what is called of an array."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and node.attr not in (
        "T",
        *FUNCTIONS,
        *CASTS,
        *RESHAPES,
        "unsqueeze",
    ):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) and names else []


def _climb(
    node: ast.AST, parents: dict[ast.AST, ast.AST], root: str
) -> tuple[tuple[Step, ...], str, str] | None:
    """The steps from a member up to what depends on other values, what the member itself is
    called, and the operator that reads the result; None where a step is not known."""
    steps: list[Step] = []
    copy = ""
    parent: ast.AST | None = None
    while isinstance(parent := parents.get(node), ast.expr):
        method = parents[parent] if isinstance(parent, ast.Attribute) else None
        if isinstance(method, ast.Call):
            parent = method
        names = {n.id for n in ast.walk(parent) if isinstance(n, ast.Name)}
        if names - MODULES - {root} and not _is_cast(parent, node):
            break
        step = _read_step(parent, node)
        if step is None:
            return None
        if steps and step and step[0].result == "select":
            return None
        if not steps and not step:
            copy = parent.func.attr  # type: ignore[attr-defined]
        steps += step
        node = parent
    return tuple(steps), copy, _read_use(parent, node)


def _read_use(reader: ast.AST | None, node: ast.AST) -> str:
    """What an exporter calls the operator that reads a node: a sign, or a method of its own."""
    if isinstance(reader, (ast.BinOp, ast.AugAssign)):
        return USES.get(type(reader.op), "")
    method = reader.func if isinstance(reader, ast.Call) else None
    return method.attr if isinstance(method, ast.Attribute) and method.value is node else ""


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
            if value is node and name in RESHAPES:
                return [Step(".reshape", (X,), RESHAPE, _flatten)]
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


def _flatten(y: Array) -> Array:
    """A vector that has more axes; numbers that no array has for anything else."""
    return y.reshape(-1) if sum(size != 1 for size in y.shape) < 2 else np.full_like(y, np.nan)


def _read_axis(tree: ast.expr) -> list[Step] | None:
    try:
        axis = ast.literal_eval(tree)
    except ValueError:
        return None
    if type(axis) is not int:
        return None
    return [Step(".unsqueeze", (X, axis), "unsqueeze", lambda y: np.squeeze(y, axis))]


def _read_index(index: ast.expr) -> list[Step] | None:
    """An index that adds axes, ``[None, :, None]``, or a number of a row."""
    if isinstance(index, ast.Constant) and type(index.value) is int:
        return [Step("[]", (X, index.value), "select", lambda y: y)]
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
