"""What an expression comes to: tensors of the graph, and the things that exist only before it.

Tuples are Python tuples. Functions, data of algebraic types and references have no form in a graph:
elaboration does away with them, and refuses where one would have to be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from serde.errors import ConversionError, require
from serde.ir.builder import Builder
from serde.ir.graph import DType, Shape, Value

from .. import ast

STEPS = 1024  # that are charged at once
OUTPUT_NAMES = "output_tensor_names"  # an attribute of a function


class GraphBuilder(Builder):
    """A builder of Relay's own operators that remembers what made a value."""

    domain = "relay"

    def __init__(self, name: str, opset: int = 0, outer: Builder | None = None) -> None:
        super().__init__(name, opset, outer)
        self.depth: int = outer.depth + 1 if isinstance(outer, GraphBuilder) else 0


@dataclass(eq=False, slots=True)
class Frame:
    """What is bound and computed in one call of a function, or in one branch inside it."""

    graph: GraphBuilder
    outer: Frame | None = None
    name: str = ""  # of the function, for the sources of nodes
    values: dict[ast.Expr, Symbolic] = field(default_factory=dict)

    def get(self, expr: ast.Expr) -> Symbolic | None:
        """What ``expr`` came to, here or around."""
        frame: Frame | None = self
        while frame is not None:
            found = frame.values.get(expr)
            if found is not None:
                return found
            frame = frame.outer
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Closure:
    """A function with the frame it was written in; ``itself`` is what its body calls it."""

    function: ast.Function
    frame: Frame | None
    name: str = ""
    itself: ast.Var | str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Primitive:
    """An operator or a constructor that is passed around."""

    target: ast.Op | ast.Constructor


@dataclass(frozen=True, eq=False, slots=True)
class Data:
    """A value of an algebraic data type: what made it, and of what."""

    constructor: str
    of: str
    fields: tuple[Symbolic, ...]


@dataclass(eq=False, slots=True)
class Cell:
    """A reference, and the graph level on which it was made."""

    content: Symbolic
    graph: GraphBuilder


class Refused:
    """What an expression comes to that was refused: that is said once, not where it is read."""


REFUSED = Refused()
Symbolic = Value | tuple[Any, ...] | Closure | Primitive | Data | Cell | Refused


class ReadsRefused(ConversionError):
    """Something reads what was refused."""

    def __init__(self) -> None:
        super().__init__("reads what was refused")


def tensors(
    value: Symbolic, what: str, charge: Callable[[int], None] = lambda steps: None
) -> list[Value]:
    """The tensors in ``value``, depth first; refuse what is none. ``charge`` counts the steps."""
    found: list[Value] = []
    stack = [value]
    steps = 0
    while stack:
        top = stack.pop()
        steps += 1
        if steps == STEPS:
            charge(steps)
            steps = 0
        if isinstance(top, Value):
            found.append(top)
        elif isinstance(top, tuple):
            stack.extend(reversed(top))
        elif isinstance(top, Data):
            stack.extend(reversed(top.fields))
        else:
            raise ConversionError(f"{what} is {named(top)}, which ONNX has no value for")
    return found


def rebuilt(like: Symbolic, parts: Iterator[Value]) -> Symbolic:
    """``like`` with ``parts`` in place of its tensors."""
    if isinstance(like, Value):
        return next(parts)
    if isinstance(like, tuple):
        return tuple(rebuilt(v, parts) for v in like)
    assert isinstance(like, Data)
    return Data(like.constructor, like.of, tuple(rebuilt(v, parts) for v in like.fields))


def alike(a: Symbolic, b: Symbolic) -> bool:
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


def named(value: Symbolic) -> str:
    """What to call a value in a refusal.

    Raises:
        ReadsRefused: there is no more to say of it.
    """
    if isinstance(value, Refused):
        raise ReadsRefused
    if isinstance(value, Data):
        return f"a {value.of}"
    kinds = {Value: "a tensor", Closure: "a function", Primitive: "a function", Cell: "a reference"}
    return kinds.get(type(value), "a tuple")


def require_count(given: Sequence[Any], wanted: Sequence[Any], what: str) -> None:
    """Refuse another number of arguments, or of a pattern's fields."""
    require(len(given) == len(wanted), f"{len(given)} {what} where {len(wanted)} belong")


def same_kind(values: Sequence[Symbolic]) -> bool:
    """Whether all of ``values`` hold tensors only."""
    try:
        for value in values:
            tensors(value, "")
    except ConversionError:
        return False
    return True


# Types

WIDTHS = {"bool": DType.BOOL, "uint1": DType.BOOL}


def dtype_of(name: str) -> DType:
    """The element type TVM calls ``name``."""
    found = WIDTHS.get(name)
    if found is None:
        require("x" not in name and "custom" not in name, f"elements of {name}")
        found = DType.of(name)
    return found


def shape_of(dims: Sequence[ast.Dim], stem: str) -> Shape:
    """A shape; each dimension TVM leaves open gets a name of its own."""
    return tuple(
        d if isinstance(d, int) else d.name if isinstance(d, ast.DimVar) else f"{stem}_{at}"
        for at, d in enumerate(dims)
    )


def declare(value: Value, type_: ast.Type | None) -> None:
    """Note what the file says of the type of a computed value."""
    if isinstance(type_, ast.TensorType):
        value.dtype = dtype_of(type_.dtype)
        value.shape = tuple(d if isinstance(d, int) else None for d in type_.shape)


def refuse_parameter(name: str, type_: ast.Type | None) -> None:
    """Refuse a parameter of ``main`` that no input can be."""
    kinds = {
        ast.FuncType: "a function",
        ast.RefType: "a reference",
        ast.TypeCall: "data of an algebraic type, of dynamic length",
        ast.GlobalTypeVar: "data of an algebraic type",
    }
    for kind, what in kinds.items():
        require(not isinstance(type_, kind), f"parameter %{name} is {what}")


def told_names(function: ast.Function, outputs: Sequence[Value]) -> list[str] | None:
    """Names of the outputs, where the module has them as TVM's frontends and ours enter them."""
    told = function.attrs.get(OUTPUT_NAMES)
    if not isinstance(told, tuple) or len(told) != len(outputs):
        return None
    distinct = len(set(zip(told, outputs, strict=True))) == len(set(told))  # one value for a name
    return list(told) if distinct and all(isinstance(n, str) and n for n in told) else None


def output_names(result: Symbolic) -> list[str]:
    """A name for each tensor of what a model returns."""
    found = []
    stack = [(result, "output")]
    while stack:
        value, name = stack.pop()
        if isinstance(value, Value):
            found.append(name)
        else:
            fields = value.fields if isinstance(value, Data) else value
            parts = [(f, f"{name}_{i}") for i, f in enumerate(fields)]  # type: ignore[arg-type]
            stack.extend(reversed(parts))
    return found


def common(a: Shape | None, b: Shape | None) -> Shape | None:
    """What two shapes agree on."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


def fits(pattern: ast.Pattern, data: Symbolic, frame: Frame) -> bool:
    """Whether ``data`` fits; binds the variables of the pattern."""
    stack: list[tuple[ast.Pattern, Symbolic]] = [(pattern, data)]
    while stack:
        top, value = stack.pop()
        if isinstance(top, ast.PatternVar):
            frame.values[top.var] = value
        elif isinstance(top, ast.PatternTuple):
            require(isinstance(value, tuple), f"matches {named(value)} with a tuple")
            assert isinstance(value, tuple)
            require_count(top.patterns, value, "patterns")
            stack.extend(zip(top.patterns, value, strict=True))
        elif isinstance(top, ast.PatternConstructor):
            require(isinstance(value, Data), f"matches {named(value)} with {top.constructor.name}")
            assert isinstance(value, Data)
            if value.constructor != top.constructor.name:
                return False
            require_count(top.patterns, value.fields, "patterns")
            stack.extend(zip(top.patterns, value.fields, strict=True))
    return True
