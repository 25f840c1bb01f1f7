"""What an expression evaluates to: tensors of the graph, and values that exist only before it.

Tuples are Python tuples. Functions, data of algebraic types and references have no form in a graph:
partial evaluation resolves them, and refuses where one would have to be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from serde.errors import ConversionError, require
from serde.ir.builder import Builder
from serde.ir.graph import DType, Value

from .. import ast

DEEPEST = 1000  # scopes in each other: a name is looked up in all of them
CHARGE_INTERVAL = 1024  # steps that are charged to the budget at once


class GraphBuilder(Builder):
    """A builder of nodes of Relay's own operators, which counts how deep its graph nests."""

    domain = "relay"

    def __init__(self, name: str, opset: int = 0, outer: Builder | None = None) -> None:
        super().__init__(name, opset, outer)
        self.depth: int = outer.depth + 1 if isinstance(outer, GraphBuilder) else 0

    def open_body(self, name: str) -> GraphBuilder:
        """The builder of a loop's body, with the inputs that every body has."""
        builder: GraphBuilder = self.child(name)  # type: ignore[assignment]
        builder.input("iteration", DType.INT64, ())
        builder.input("condition", DType.BOOL, ())
        return builder


@dataclass(eq=False, slots=True)
class Frame:
    """A scope of the environment: one call of a function, or one branch or loop body inside it."""

    builder: GraphBuilder  # of the graph that nodes of this scope are emitted to
    outer: Frame | None = None
    name: str = ""  # of the function, for the sources of nodes
    values: dict[ast.Expr, Symbolic] = field(default_factory=dict)
    depth: int = 0

    def __post_init__(self) -> None:
        if self.outer is not None:
            self.depth = self.outer.depth + 1
            require(self.depth <= DEEPEST, f"functions and branches nest more than {DEEPEST} deep")

    def get(self, expr: ast.Expr) -> Symbolic | None:
        """The value of ``expr``, from this scope or an outer one."""
        frame: Frame | None = self
        while frame is not None:
            value = frame.values.get(expr)
            if value is not None:
                return value
            frame = frame.outer
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Closure:
    """A function with the frame it was defined in.

    ``binding`` is what its body calls it by: a ``let`` variable, or the name of a global.
    """

    function: ast.Function
    frame: Frame | None
    name: str = ""
    binding: ast.Var | str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Primitive:
    """An operator or a constructor as a value."""

    target: ast.Op | ast.Constructor


@dataclass(frozen=True, eq=False, slots=True)
class Data:
    """A value of the algebraic data type ``of``, made by a constructor."""

    constructor: str
    of: str
    fields: tuple[Symbolic, ...]


@dataclass(eq=False, slots=True)
class Cell:
    """A reference, and the builder of the graph it was created in."""

    content: Symbolic
    builder: GraphBuilder


class Failure:
    """The value of an expression that was refused; its diagnostic is recorded already."""


FAILURE = Failure()
Symbolic = Value | tuple[Any, ...] | Closure | Primitive | Data | Cell | Failure


class DependsOnFailure(ConversionError):
    """An expression reads a value that was refused; this needs no diagnostic of its own."""

    def __init__(self) -> None:
        super().__init__("depends on what was refused")


def flatten(
    value: Symbolic, what: str, charge: Callable[[int], None] = lambda steps: None
) -> list[Value]:
    """The tensors in ``value``, depth first; a shared one counts each time.

    ``charge`` takes the steps from a budget.

    Raises:
        ConversionError: where ``value``, which is called ``what``, holds anything else.
    """
    values: list[Value] = []
    stack = [value]
    steps = 0
    while stack:
        top = stack.pop()
        steps += 1
        if steps == CHARGE_INTERVAL:
            charge(steps)
            steps = 0
        if isinstance(top, Value):
            values.append(top)
        elif isinstance(top, tuple):
            stack.extend(reversed(top))
        elif isinstance(top, Data):
            stack.extend(reversed(top.fields))
        else:
            raise ConversionError(f"{what} is {describe(top)}, which has no equivalent in ONNX")
    return values


def unflatten(like: Symbolic, tensors: Iterator[Value]) -> Symbolic:
    """A value of the structure of ``like`` that holds ``tensors``."""
    if isinstance(like, Value):
        return next(tensors)
    if isinstance(like, tuple):
        return tuple(unflatten(v, tensors) for v in like)
    assert isinstance(like, Data)
    return Data(like.constructor, like.of, tuple(unflatten(v, tensors) for v in like.fields))


def has_only_tensors(values: Sequence[Symbolic]) -> bool:
    """Whether ``flatten`` takes each of ``values``."""
    try:
        for value in values:
            flatten(value, "")
    except ConversionError:
        return False
    return True


def has_same_structure(a: Symbolic, b: Symbolic) -> bool:
    """Whether two values differ in their tensors only."""
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x is y or (isinstance(x, Value) and isinstance(y, Value)):
            continue
        if isinstance(x, Data) and isinstance(y, Data) and x.constructor == y.constructor:
            x, y = x.fields, y.fields
        if not isinstance(x, tuple) or not isinstance(y, tuple) or len(x) != len(y):
            return False
        stack.extend(zip(x, y, strict=True))
    return True


def describe(value: Symbolic) -> str:
    """What a message calls a value.

    Raises:
        DependsOnFailure: for one that was refused.
    """
    if isinstance(value, Failure):
        raise DependsOnFailure
    if isinstance(value, Data):
        return f"a {value.of}"
    kinds = {Value: "a tensor", Closure: "a function", Primitive: "a function", Cell: "a reference"}
    return kinds.get(type(value), "a tuple")


def require_count(args: Sequence[Any], params: Sequence[Any], what: str) -> None:
    """Refuse another number of arguments than parameters, or of patterns than fields."""
    require(len(args) == len(params), f"{len(args)} {what}, {len(params)} expected")


def match_pattern(pattern: ast.Pattern, data: Symbolic, frame: Frame) -> bool:
    """Whether ``data`` matches; the variables of the pattern are bound in ``frame``."""
    stack: list[tuple[ast.Pattern, Symbolic]] = [(pattern, data)]
    while stack:
        top, value = stack.pop()
        if isinstance(top, ast.PatternVar):
            frame.values[top.var] = value
        elif isinstance(top, ast.PatternTuple):
            require(isinstance(value, tuple), f"match: a tuple pattern for {describe(value)}")
            assert isinstance(value, tuple)
            require_count(top.patterns, value, "patterns")
            stack.extend(zip(top.patterns, value, strict=True))
        elif isinstance(top, ast.PatternConstructor):
            name = top.constructor.name
            require(isinstance(value, Data), f"match: the pattern {name} for {describe(value)}")
            assert isinstance(value, Data)
            if value.constructor != name:
                return False
            require_count(top.patterns, value.fields, "patterns")
            stack.extend(zip(top.patterns, value.fields, strict=True))
    return True
