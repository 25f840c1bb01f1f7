"""Parses expressions; those that nest without bound by tasks (``ast_walk.run``)."""

from __future__ import annotations

from typing import Any

from serde.ir.graph import DType

from .. import ast
from ..ast_walk import Task
from ..ndarray import find_dtype
from .attributes import EQUALS, Attributes
from .literals import LiteralError, make_scalar, read_number

# Operators by how strongly they bind, and what they call
INFIX = {
    "*": (12, "multiply"), "/": (12, "divide"), "+": (10, "add"), "-": (10, "subtract"),
    "<": (8, "less"), ">": (8, "greater"), "<=": (8, "less_equal"), ">=": (8, "greater_equal"),
    "==": (7, "equal"), "!=": (7, "not_equal"),
}  # fmt: skip
WITHOUT_SUFFIX = ("int8", "int16", "int32", "int64", "float64")
OMITTED = "the constants were left out when the text was printed: print it with its metadata"


class Expressions(Attributes):
    """The parser of expressions."""

    def __init__(self, text: str, path: str, at: int) -> None:
        super().__init__(text, path, at)
        self.graph: dict[int, tuple[ast.Expr, int]] = {}  # %0: its value and the function it is in
        self.function = 0  # counts the definitions
        self.called: dict[str, int] = {}  # functions, and where each is first used
        self.free: list[ast.Var] = []
        self._named: dict[str, ast.Expr] = {}

    # Values other than calls

    def parse_atom(self) -> ast.Expr | None:
        """A name, a number or an entry of the metadata, if one is next; advance past it."""
        lex = self.lex
        kind = lex.kind
        if kind in ("graph", "local", "global"):
            return self.parse_reference()
        if kind == "word":
            return self._parse_word()
        if kind == "number":
            return self._parse_number()
        if kind == "meta":
            at, entry = lex.start, self._parse_entry()
            if isinstance(entry, ast.Attrs):
                raise lex.error("attributes in place of an expression", at)
            return entry
        return None

    def parse_reference(self) -> ast.Expr:
        lex = self.lex
        kind, value = lex.kind, lex.value
        expr: ast.Expr | None
        if kind == "graph":
            bound = self.graph.get(int(value)) if len(value) < 20 else None
            expr = bound[0] if bound is not None else None
        elif kind == "local":
            expr = self.vars.get(value)
            if lex.odd_lengths:
                self._check_projection(value)
        else:
            expr = self._named.get("@" + value)
            if expr is None:
                self._named["@" + value] = expr = ast.GlobalVar(value)
                self.called.setdefault(value, lex.start)
        if expr is None:
            raise lex.error(f"{lex.describe_token()} is not defined before it is used")
        lex.advance()
        return expr

    def _check_projection(self, name: str) -> None:
        tuple_ = self.lex.find_tuple_of(name)
        if tuple_ is None:
            return
        var = self.vars[tuple_]
        if not isinstance(var.annotation or var.type, (ast.TensorType, ast.FuncType)):
            raise self.lex.error(f"%{name} is a variable, and could be a field of %{tuple_}")

    def _parse_word(self) -> ast.Expr:
        lex = self.lex
        name = lex.value
        if name in ("True", "False"):
            lex.advance()
            return ast.Constant(
                make_scalar(name == "True", DType.BOOL), type=self.read_comment()[0]
            )
        expr: ast.Expr | None = self.constructors.get(name)
        if expr is None:
            expr = self._named.get(name)
        if expr is None:
            self._named[name] = expr = ast.Op(name)
        lex.advance()
        return expr

    def _parse_number(self) -> ast.Expr:
        lex = self.lex
        text, at = lex.value, lex.start
        lex.advance()
        if text in self.constructors and lex.kind == "(":  # Defunctionalization names them so
            return self.constructors[text]
        checked, span = self.read_comment()
        declared = None  # before TVM 0.9 only the comment tells int64 from int32
        if isinstance(checked, ast.TensorType) and checked.dtype in WITHOUT_SUFFIX:
            declared = None if checked.shape else checked.dtype
        try:
            value, name = read_number(text, declared)
        except LiteralError as error:
            raise lex.error(str(error), at) from None
        dtype = find_dtype(name)
        if dtype is None:
            raise lex.error(f"there are no constants of {name}", at)
        return ast.Constant(
            make_scalar(value, dtype), type=checked, span=span or self._make_span(at)
        )

    # Expressions

    def parse_body(self, inner: bool = False) -> Task[ast.Expr]:
        """Bindings, and the expression they are for.

        ``inner``: this is the value of a ``let`` without brackets round it, which TVM prints. The
        first expression that is no binding ends it.
        """
        lex, mark = self.lex, self.vars.enter()
        lets: list[tuple[ast.Var, ast.Expr, int]] = []
        while True:
            at = self.lex.start
            if lex.kind == "graph" and lex.is_followed_by(EQUALS):
                yield self._bind_graph()
            elif lex.kind == "let":
                lex.advance()
                var = self.parse_variable()
                self.take("=")
                lets.append((var, (yield self._parse_let_value()), at))
                self.take(";")
            elif lex.kind == "free_var":
                lex.advance()
                self._parse_free_variable()
            else:
                result = yield self.parse_expression()
                if inner or not self.skip(";"):
                    break
                while self.skip(";"):
                    pass
                lets.append((ast.Var(""), result, at))
        for var, value, at in reversed(lets):
            result = ast.Let(var, value, result, span=self._make_span(at))
        self.vars.leave(mark)
        return result  # type: ignore[no-any-return]

    def _parse_let_value(self) -> Task[ast.Expr]:
        return self.parse_body(inner=True) if self.lex.kind == "let" else self.parse_expression()

    def _bind_graph(self) -> Task[None]:
        lex = self.lex
        number, at = int(lex.value[:20]), lex.start
        lex.advance()
        lex.advance()
        value = yield self._parse_let_value()
        self.take(";")
        bound = self.graph.get(number)
        if bound is not None and bound[1] == self.function:
            raise lex.error(f"%{number} is bound twice, and TVM would keep the first value", at)
        self.graph[number] = value, self.function

    def _parse_free_variable(self) -> None:
        if self.lex.kind != "local":
            raise self.lex.expected_error("a variable's name")
        name = self.lex.read_declared_name()
        annotation = self.parse_type() if self.skip(":") else None
        var = ast.Var(name, annotation, type=self.read_comment()[0])
        self.vars[name] = var  # to the end of the text
        self.free.append(var)
        self.take(";")

    def parse_expression(self, first: ast.Expr | None = None) -> Task[ast.Expr]:
        """Operands and infix operators. ``first`` has been read already."""
        lex = self.lex
        at = self.lex.start
        operands = [(yield self.parse_operand(first))]
        waiting: list[tuple[int, str]] = []
        while True:
            rule = INFIX.get(lex.kind)
            while waiting and (rule is None or rule[0] <= waiting[-1][0]):
                right, left = operands.pop(), operands.pop()
                op = self._named.setdefault(waiting[-1][1], ast.Op(waiting[-1][1]))
                operands.append(ast.Call(op, (left, right), span=self._make_span(at)))
                waiting.pop()
            if rule is None:
                return operands[0]  # type: ignore[no-any-return]
            lex.advance()
            waiting.append(rule)
            operands.append((yield self.parse_operand(None)))

    def parse_operand(self, expr: ast.Expr | None) -> Task[ast.Expr]:
        """An atom or a bracketed expression, and the calls and projections behind it."""
        lex = self.lex
        at = self.lex.start
        if expr is None:
            expr = self.parse_atom()
        if expr is None:
            expr = yield self._parse_compound()
        while True:
            if lex.kind == "(":
                expr = yield self._parse_call(expr, at)
            elif isinstance(expr, ast.Constructor) and not expr.inputs:
                expr = ast.Call(expr, (), **self._make_notes(at))
            elif lex.kind == "field":
                index = int(lex.value[1:10])
                lex.advance()
                expr = ast.TupleGetItem(expr, index, **self._make_notes(at))
            elif lex.kind == "^":  # TVM 0.6
                lex.advance()
                expr = ast.RefRead(expr, span=self._make_span(at))
            else:
                return expr  # type: ignore[no-any-return]

    def _parse_call(self, op: ast.Expr, at: int) -> Task[ast.Expr]:
        lex = self.lex
        lex.advance()
        args: list[ast.Expr] = []
        unnamed: list[tuple[int, str]] = []
        values: dict[str, Any] = {}
        attrs: ast.Attrs | None = None
        while lex.kind != ")":
            if self.is_at_attribute():
                values = self.parse_attributes()
                break
            if lex.kind == "string":  # TVM 0.6: cast(%x, "int8")
                unnamed.append((lex.start, lex.value[1:-1]))
                lex.advance()
            else:
                arg = self._parse_entry() if lex.kind == "meta" else self.parse_atom()
                if isinstance(arg, ast.Attrs):
                    attrs = arg
                    break
                if arg is None or lex.kind not in (",", ")") or isinstance(arg, ast.Constructor):
                    arg = yield self.parse_expression(arg)
                args.append(arg)
            if not self.skip(",") and lex.kind != ")":
                raise lex.expected_error("',' or ')'")
        self.take(")")
        if attrs is None:
            attrs = self.make_call_attrs(op, values, unnamed)
        return ast.Call(op, tuple(args), attrs, **self._make_notes(at))

    def _parse_entry(self) -> ast.Expr | ast.Attrs:
        """The current entry of the metadata: an operand, or all attributes of a call."""
        at, entry = self.lex.start, self.parse_meta()
        if not isinstance(entry, (ast.Expr, ast.Attrs)):
            raise self.lex.error("the metadata entry is no expression", at)
        return entry

    def _parse_compound(self) -> Task[ast.Expr]:
        lex = self.lex
        starts = {
            "(": self._parse_brackets, "{": self.parse_block, "if": self._parse_if,
            "match": self._parse_match, "ref": self._parse_ref, "ref_read": self._parse_ref,
            "ref_write": self._parse_ref, "-": self._parse_negative,
        }  # fmt: skip
        if lex.kind == "fn":
            lex.advance()
            return self.parse_function()
        if lex.kind in starts:
            return starts[lex.kind]()
        raise lex.expected_error("an expression")

    def _parse_brackets(self) -> Task[ast.Expr]:
        """A tuple, or an expression in brackets."""
        lex, at = self.lex, self.lex.start
        lex.advance()
        fields: list[ast.Expr] = []
        while lex.kind != ")":
            quick = lex.kind == "local" or (lex.kind == "graph" and not lex.is_followed_by(EQUALS))
            field = self.parse_atom() if quick else None
            if field is None or lex.kind not in (",", ")"):
                field = yield (self.parse_body() if field is None else self.parse_expression(field))
            fields.append(field)
            if lex.kind == ")" and len(fields) == 1:
                lex.advance()
                return fields[0]
            if lex.kind == ":=" and len(fields) == 1:  # TVM 0.6
                lex.advance()
                value = yield self.parse_expression()
                self.take(")")
                return ast.RefWrite(fields[0], value, span=self._make_span(at))
            if not self.skip(",") and lex.kind != ")":
                raise lex.expected_error("',' or ')'")
        lex.advance()
        return ast.Tuple(tuple(fields), **self._make_notes(at))

    def parse_block(self) -> Task[ast.Expr]:
        """``{ … }``."""
        self.take("{")
        result = yield self.parse_body()
        self.take("}")
        return result  # type: ignore[no-any-return]

    def _parse_if(self) -> Task[ast.Expr]:
        at = self.lex.start
        self.take("if")
        self.take("(")
        cond = yield self.parse_body()
        self.take(")")
        then = yield self.parse_block()
        self.take("else")
        otherwise = yield (self._parse_if() if self.lex.kind == "if" else self.parse_block())
        return ast.If(cond, then, otherwise, span=self._make_span(at))

    def _parse_match(self) -> Task[ast.Expr]:
        at = self.lex.start
        self.take("match")
        complete = not self.skip("?")
        data = yield self.parse_operand(None)
        clauses = []
        self.take("{")
        while self.lex.kind != "}":
            mark = self.vars.enter()
            pattern = self.parse_pattern()
            self.take("=>")
            clauses.append(ast.Clause(pattern, (yield self.parse_body())))
            self.vars.leave(mark)
            if not self.skip(",") and self.lex.kind != "}":
                raise self.lex.expected_error("',' or '}'")
        self.take("}")
        return ast.Match(data, tuple(clauses), complete, span=self._make_span(at))

    def _parse_ref(self) -> Task[ast.Expr]:
        at, kind = self.lex.start, self.lex.kind
        self.lex.advance()
        self.take("(")
        ref = yield self.parse_body()
        result: ast.Expr
        if kind == "ref_write":
            self.take(",")
            result = ast.RefWrite(ref, (yield self.parse_body()), span=self._make_span(at))
        else:
            result = (ast.RefCreate if kind == "ref" else ast.RefRead)(
                ref, span=self._make_span(at)
            )
        self.take(")")
        return result

    def _parse_negative(self) -> Task[ast.Expr]:
        at = self.lex.start
        self.take("-")
        return ast.Call(
            ast.Op("negative"), ((yield self.parse_operand(None)),), span=self._make_span(at)
        )

    def parse_function(self) -> Task[ast.Function]:
        """``[A](%x: A, Primitive=1) -> A { … }``."""
        lex, at = self.lex, self.lex.start
        mark, type_mark = self.vars.enter(), self.type_vars.enter()
        generics = self.parse_generics()
        self.take("(")
        params: list[ast.Var] = []
        values: dict[str, Any] = {}
        while lex.kind != ")":
            if self.is_at_attribute():
                values = self.parse_attributes()
                break
            if lex.kind != "local":
                raise lex.expected_error("a parameter or ')'")
            params.append(self.parse_variable())
            if not self.skip(",") and lex.kind != ")":
                raise lex.expected_error("',' or ')'")
        self.take(")")
        ret = self.parse_type() if self.skip("->") else None
        body = yield self.parse_block()
        attrs, device = self.make_function_attrs(values)
        notes = self._make_notes(at)
        self.vars.leave(mark)
        self.type_vars.leave(type_mark)
        return ast.Function(tuple(params), body, ret, generics, attrs, device=device, **notes)

    def _make_span(self, at: int) -> ast.Span:
        return ast.Span(self.lex.path, *self.lex.locate(at))

    def _make_notes(self, at: int) -> dict[str, Any]:
        """Type and span for the expression that has just been read, from offset ``at``."""
        checked, noted = self.read_comment()
        return {"type": checked, "span": noted or self._make_span(at)}
