"""Types, patterns and the scopes of names: the part of the grammar that nests little."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from serde.errors import MalformedFile

from .. import ast
from ..ndarray import DTYPE
from .lexer import Lexer
from .literals import LiteralError, read_number

DEPTH = 100  # types in types, patterns in patterns, attributes in attributes
COMMENT = re.compile(r"\s*ty=(.*?)(?:\s+span=(.*):(\d+):(\d+))?\s*", re.DOTALL)
PLAIN_TENSOR = re.compile(r"Tensor\[\(([\d ,?]*)\), ?(\w+)\]", re.ASCII)
Item = TypeVar("Item")


class Scope(dict[str, Any]):
    """Names in scope. What a block declares is forgotten at its end."""

    def __init__(self) -> None:
        super().__init__()
        self._trail: list[tuple[str, Any]] = []

    def bind(self, name: str, value: Any) -> None:
        """Declare ``name`` until the scope is left."""
        self._trail.append((name, self.get(name)))
        self[name] = value

    def enter(self) -> int:
        """A mark to leave to."""
        return len(self._trail)

    def leave(self, mark: int) -> None:
        """Forget what was bound since ``mark``."""
        while len(self._trail) > mark:
            name, value = self._trail.pop()
            if value is None:
                del self[name]
            else:
                self[name] = value


class Types:
    """The parser of types and patterns; what it declares is in ``types`` and ``constructors``."""

    def __init__(self, text: str, path: str, at: int) -> None:
        self.lex = Lexer(text, path, at)
        self.lex.find_globals()
        self.vars = Scope()
        self.lex.locals = self.vars
        self.type_vars = Scope()
        self.constructors: dict[str, ast.Constructor] = {}
        self._tensors: dict[str, ast.TensorType] = {}
        self._met_type_var = False
        self._comments: dict[str, tuple[ast.Type | None, ast.Span | None]] = {}

    # Helpers

    def take(self, kind: str, what: str = "") -> str:
        """The value of the current token, which has to be a ``kind``; go on behind it."""
        lex = self.lex
        if lex.kind != kind:
            raise lex.expected_error(what or repr(kind))
        value = lex.value
        lex.advance()
        return value

    def skip(self, kind: str) -> bool:
        """Go on behind the current token if it is a ``kind``."""
        if self.lex.kind == kind:
            self.lex.advance()
            return True
        return False

    def parse_sequence(
        self, opening: str, closing: str, item: Callable[[], Item]
    ) -> tuple[Item, ...]:
        """Items between brackets, separated by commas; one may follow the last."""
        self.take(opening)
        items = []
        while self.lex.kind != closing:
            items.append(item())
            if not self.skip(",") and self.lex.kind != closing:
                raise self.lex.expected_error(f"',' or {closing!r}")
        self.lex.advance()
        return tuple(items)

    def parse_integer(self, what: str) -> int:
        """An integer."""
        at = self.lex.start
        text = self.take("number", what)
        try:
            number, _ = read_number(text)
        except LiteralError as error:
            raise self.lex.error(str(error), at) from None
        if not isinstance(number, int):
            raise self.lex.error(f"{what} was expected, not '{text[:40]}'", at)
        return number

    def parse_meta(self) -> Any:
        """The object of the metadata section that the current token names."""
        raise NotImplementedError

    # Types

    def parse_type(self, depth: int = 0) -> ast.Type:
        """A type."""
        lex = self.lex
        if depth > DEPTH:
            raise lex.error(f"types nest more than {DEPTH} deep")
        kind = lex.kind
        if kind == "word":
            return self._parse_named_type(depth)
        if kind == "(":
            return ast.TupleType(self.parse_sequence("(", ")", lambda: self.parse_type(depth + 1)))
        if kind == "fn":
            lex.advance()
            return self._parse_function_type(depth)
        if kind == "ref":
            lex.advance()
            (value,) = self._require_one(
                self.parse_sequence("(", ")", lambda: self.parse_type(depth + 1))
            )
            return ast.RefType(value)
        if kind == "meta":
            return self._parse_meta_type()
        raise lex.expected_error("a type")

    def _parse_named_type(self, depth: int) -> ast.Type:
        lex = self.lex
        name = lex.value
        if name == "Tensor":
            return self._parse_tensor_type()
        known = self.type_vars.get(name)
        if known is None and DTYPE.fullmatch(name):
            lex.advance()
            return self._make_tensor_type((), name)
        lex.advance()
        if name == "_":
            return ast.IncompleteType()
        args: tuple[ast.Type, ...] | None = None
        if lex.kind == "[":
            args = self.parse_sequence("[", "]", lambda: self.parse_type(depth + 1))
        self._met_type_var = self._met_type_var or known is not None
        if known is not None and args is None:
            return known  # type: ignore[no-any-return]
        return ast.TypeCall(known or ast.GlobalTypeVar(name), args or ())

    def _parse_tensor_type(self) -> ast.TensorType:
        lex = self.lex
        match = PLAIN_TENSOR.match(lex.text, lex.start)
        if match is not None:
            text = match[0]
            if text not in self._tensors:
                dims = [d.strip() for d in match[1].split(",") if d.strip()]
                if DTYPE.fullmatch(match[2]) and all(
                    d == "?" or (d.isdigit() and len(d) < 20) for d in dims
                ):
                    sizes = tuple(None if d == "?" else int(d) for d in dims)
                    self._tensors[text] = ast.TensorType(sizes, match[2])
            if text in self._tensors:
                lex.jump(match.end())
                return self._tensors[text]
        lex.advance()
        self.take("[")
        shape = self.parse_sequence("(", ")", self._parse_dim)
        self.take(",")
        if DTYPE.fullmatch(lex.value) is None:
            raise lex.expected_error("an element type")
        dtype = self.take("word")
        self.take("]")
        return self._make_tensor_type(shape, dtype)

    def _make_tensor_type(self, shape: tuple[ast.Dim, ...], dtype: str) -> ast.TensorType:
        if shape:
            return ast.TensorType(shape, dtype)
        if dtype not in self._tensors:
            self._tensors[dtype] = ast.TensorType((), dtype)
        return self._tensors[dtype]

    def _parse_dim(self) -> ast.Dim:
        if self.skip("?"):
            return None
        at = self.lex.start
        dim = self.parse_meta() if self.lex.kind == "meta" else self.parse_integer("a dimension")
        if isinstance(dim, ast.AnyDim):
            return None
        if isinstance(dim, ast.Imm):
            dim = dim.value
        if isinstance(dim, bool) or not isinstance(dim, (int, ast.DimVar, ast.Opaque)):
            raise self.lex.error("the metadata entry is no dimension", at)
        if isinstance(dim, int) and dim < 0:
            raise self.lex.error(ast.NEGATIVE_SIZE.format(dim), at)
        return dim

    def _parse_function_type(self, depth: int) -> ast.FuncType:
        mark = self.type_vars.enter()
        params = self.parse_generics()
        args = self.parse_sequence("(", ")", lambda: self.parse_type(depth + 1))
        self.take("->")
        ret = self.parse_type(depth + 1)
        self.type_vars.leave(mark)
        return ast.FuncType(args, ret, params)

    def _parse_meta_type(self) -> ast.Type:
        at, entry = self.lex.start, self.parse_meta()
        if isinstance(entry, (ast.RefType, ast.TensorType, ast.TupleType, ast.FuncType)):
            return entry
        raise self.lex.error("the metadata entry is no type", at)

    def _require_one(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        if len(items) != 1:
            raise self.lex.error(f"one type was expected, not {len(items)}")
        return items

    def parse_generics(self) -> tuple[ast.TypeVar, ...]:
        """Type parameters, ``[A, B]``, if there are any; they are in scope from here."""
        return self.parse_sequence("[", "]", self._parse_generic) if self.lex.kind == "[" else ()

    def _parse_generic(self) -> ast.TypeVar:
        var = ast.TypeVar(self.take("word", "a type parameter"))
        self.type_vars.bind(var.name, var)
        return var

    def read_comment(self) -> tuple[ast.Type | None, ast.Span | None]:
        """Type and span of the comment before the current token: ``/* ty=… span=a.py:3:1 */``."""
        text = self.lex.comment
        if text in self._comments:
            return self._comments[text]
        match = COMMENT.fullmatch(text)
        if match is None:
            return None, None
        span = None
        if match[2] is not None:
            span = ast.Span(match[2], int(match[3][:9]), int(match[4][:9]))
        self._met_type_var = False
        noted = self._parse_comment_type(match[1]), span
        if not self._met_type_var:  # otherwise the text means another type in another scope
            self._comments[text] = noted
        return noted

    def _parse_comment_type(self, text: str) -> ast.Type | None:
        lex, self.lex = self.lex, Lexer(text, self.lex.path)
        try:
            self.lex.advance()
            type_ = self.parse_type()
            return None if self.lex.kind else type_
        except MalformedFile:  # it is a comment, after all
            return None
        finally:
            self.lex = lex

    # Variables and patterns

    def parse_variable(self) -> ast.Var:
        """Declare the variable that is named here, with its annotation if it has one."""
        name = self.lex.read_declared_name()
        device = None
        if self.lex.kind == "{":
            device = self._parse_device()
        annotation = self.parse_type() if self.skip(":") else None
        checked, span = self.read_comment()
        var = ast.Var(name, annotation, device=device, type=checked, span=span)
        self.vars.bind(name, var)
        return var

    def _parse_device(self) -> ast.VirtualDevice | None:
        self.lex.advance()
        name, at = self.take("word", "virtual_device"), self.lex.start
        self.take("=")
        device = self.parse_meta() if self.lex.kind == "meta" else None
        if name != "virtual_device" or not isinstance(device, ast.VirtualDevice):
            raise self.lex.error("a virtual device of the metadata was expected", at)
        self.take("}")
        return device

    def parse_pattern(self, depth: int = 0) -> ast.Pattern:
        """A pattern; its variables are in scope from here."""
        lex = self.lex
        if depth > DEPTH:
            raise lex.error(f"patterns nest more than {DEPTH} deep")
        if lex.kind == "local":
            return ast.PatternVar(self.parse_variable())
        if lex.kind == "word" and lex.value == "_":
            lex.advance()
            return ast.PatternWildcard()
        if lex.kind in ("word", "number"):
            constructor = self.constructors.get(lex.value)
            if constructor is None:
                raise lex.error(f"no data type has a constructor {lex.value!r}")
            lex.advance()
            inside = self._parse_patterns(depth) if lex.kind == "(" else ()
            return ast.PatternConstructor(constructor, inside)
        if lex.kind == "(":
            return ast.PatternTuple(self._parse_patterns(depth))
        raise lex.expected_error("a pattern")

    def _parse_patterns(self, depth: int) -> tuple[ast.Pattern, ...]:
        return self.parse_sequence("(", ")", lambda: self.parse_pattern(depth + 1))
