"""Relay modules as plain data.

Expressions have identity: one object used in two places is one value computed once, which is what
``%0 = …;`` means in the text form and a repeated node index in JSON. Types, patterns and attribute
values are compared by content, type variables and dimension variables excepted.

Expressions nest without bound (a chain of ten thousand ``let``): walk them with ``ast_walk``, never
by recursion. The readers bound how deep everything else nests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from serde.ir.graph import Tensor

NOTHING: Mapping[str, Any] = MappingProxyType({})


def _nothing() -> Mapping[str, Any]:
    return NOTHING


@dataclass(frozen=True, slots=True)
class Span:
    """Where something was written: a file or, for imported models, the name of a layer."""

    source: str
    line: int
    column: int


@dataclass(frozen=True, eq=False, slots=True)
class Opaque:
    """An object of TVM's that is not Relay, unchanged: a target, a symbolic expression.

    ``fields`` holds raw strings as JSON has them; what they refer to is in ``parts``.
    """

    type_key: str
    fields: Mapping[str, str] = field(default_factory=_nothing)
    parts: Mapping[str, Any] = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class VirtualDevice:
    """Where a value lives: DLPack's device type and number, a target, a memory scope."""

    device_type: int = -1
    device_id: int = -1
    target: Opaque | None = None
    memory_scope: str = ""


# Types


@dataclass(frozen=True, eq=False, slots=True)
class DimVar:
    """A named dimension. Identity is the object."""

    name: str
    dtype: str = "int32"
    is_size: bool = False  # TVM's ``SizeVar``, which is not negative

    @property
    def type_key(self) -> str:
        """The name of TVM's class."""
        return "tir.SizeVar" if self.is_size else "tir.Var"


@dataclass(frozen=True, slots=True)
class AnyDim:
    """``?`` among attributes; in shapes it is None."""


class LongDim(int):
    """A size that TVM holds as an int64."""


NEGATIVE_SIZE = "a dimension of {} elements; write ? for a size that is not known"
Dim = int | DimVar | Opaque | None  # a size, a named size, an expression of such, or any (``?``)


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor of ``dtype`` (TVM's name); the shape ``()`` is a scalar's."""

    shape: tuple[Dim, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class TupleType:
    """A tuple."""

    fields: tuple[Type, ...]


@dataclass(frozen=True, eq=False, slots=True)
class TypeVar:
    """A type parameter. Identity is the object. ``kind`` is TVM's TypeKind, 0 for types."""

    name: str
    kind: int = 0


@dataclass(frozen=True, slots=True)
class FuncType:
    """A function."""

    args: tuple[Type, ...]
    ret: Type
    type_params: tuple[TypeVar, ...] = ()


@dataclass(frozen=True, slots=True)
class RefType:
    """A mutable cell."""

    value: Type


@dataclass(frozen=True, slots=True)
class GlobalTypeVar:
    """The name of an algebraic data type of the module."""

    name: str


@dataclass(frozen=True, slots=True)
class TypeCall:
    """An algebraic data type with its arguments: ``List[float32]``."""

    func: Type
    args: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class IncompleteType:
    """A type to be inferred, ``_`` in the text."""


Type = (
    TensorType
    | TupleType
    | TypeVar
    | FuncType
    | RefType
    | GlobalTypeVar
    | TypeCall
    | IncompleteType
)


# Attributes


@dataclass(frozen=True, slots=True)
class Imm:
    """A number whose width is not the usual one (int32, float32): ``3i64``."""

    value: int | float
    dtype: str


@dataclass(frozen=True, slots=True)
class Attrs:
    """Attributes of a call: those that differ from the defaults of TVM 0.14 to 0.19.

    Values are None, bool, int, float, str, Imm, AnyDim, DimVar, tuples and mappings of these, a
    VirtualDevice, another Attrs, an Opaque, or a Var or Constant. ``start``, ``stop`` and ``step``
    of ``arange`` are left out: TVM repeats the operands there. ``operands`` has them as a file
    repeats them, with other types than the operands, for JSON to be written as it was.
    """

    type_key: str
    values: Mapping[str, Any] = field(default_factory=_nothing)
    operands: Mapping[str, Any] = field(default_factory=_nothing)

    __hash__ = object.__hash__


# Expressions


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Expr:
    """Any expression. ``type`` is what TVM inferred, if the file has it."""

    type: Type | None = field(default=None, kw_only=True)
    span: Span | None = field(default=None, kw_only=True)
    device: VirtualDevice | None = field(default=None, kw_only=True)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class VarId:
    """What TVM's variables share that are one variable in different places of a module."""

    name: str


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Var(Expr):
    """A parameter or a variable of ``let`` or of a pattern; without an id it has its own."""

    name: str
    annotation: Type | None = None
    id: VarId | None = None


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class GlobalVar(Expr):
    """A function of the module, by name."""

    name: str


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Op(Expr):
    """A primitive operator, by name."""

    name: str


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Constructor(Expr):
    """A constructor of the algebraic data type ``of``. ``tag`` is TVM's number for it, if known."""

    name: str
    inputs: tuple[Type, ...]
    of: str
    tag: int | None = None


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Constant(Expr):
    """A constant tensor."""

    tensor: Tensor


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Tuple(Expr):
    """A tuple of values."""

    fields: tuple[Expr, ...]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class TupleGetItem(Expr):
    """One field of a tuple."""

    tuple: Expr
    index: int


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Call(Expr):
    """``op(args)``; ``op`` is an Op, a Constructor, or anything that is a function."""

    op: Expr
    args: tuple[Expr, ...]
    attrs: Attrs | None = None
    type_args: tuple[Type, ...] = ()


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Function(Expr):
    """A function, of the module or in place. ``attrs``: ``Primitive``, ``Compiler``, …"""

    params: tuple[Var, ...]
    body: Expr
    ret_type: Type | None = None
    type_params: tuple[TypeVar, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=_nothing)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Let(Expr):
    """``let var = value; body``. ``value`` may be a function that calls ``var``."""

    var: Var
    value: Expr
    body: Expr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class If(Expr):
    """A choice by a bool scalar."""

    cond: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class RefCreate(Expr):
    """A new mutable cell."""

    value: Expr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class RefRead(Expr):
    """The content of a cell."""

    ref: Expr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class RefWrite(Expr):
    """Put ``value`` into a cell; the result is ``()``."""

    ref: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class PatternWildcard:
    """``_``: anything."""


@dataclass(frozen=True, slots=True)
class PatternVar:
    """Anything, bound to a variable."""

    var: Var


@dataclass(frozen=True, slots=True)
class PatternConstructor:
    """A value made by ``constructor``."""

    constructor: Constructor
    patterns: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class PatternTuple:
    """A tuple."""

    patterns: tuple[Pattern, ...]


Pattern = PatternWildcard | PatternVar | PatternConstructor | PatternTuple


@dataclass(frozen=True, eq=False, slots=True)
class Clause:
    """One arm of a match."""

    pattern: Pattern
    body: Expr


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Match(Expr):
    """The first clause whose pattern fits. ``complete`` claims that one always does."""

    data: Expr
    clauses: tuple[Clause, ...]
    complete: bool = True


# Modules


@dataclass(frozen=True, eq=False, slots=True)
class TypeDef:
    """An algebraic data type."""

    name: str
    type_params: tuple[TypeVar, ...]
    constructors: tuple[Constructor, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Module:
    """Functions and data types by name. ``tvm`` is the version that wrote it, if known."""

    functions: Mapping[str, Function]
    types: Mapping[str, TypeDef] = field(default_factory=_nothing)
    attrs: Mapping[str, Any] = field(default_factory=_nothing)
    tvm: str = ""
