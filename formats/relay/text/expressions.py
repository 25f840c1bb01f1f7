"""Expressions. What may nest without bound is parsed by tasks (``walk.run``), not by recursion."""

from __future__ import annotations

from typing import Any

from serde.errors import MalformedFile
from serde.ir.graph import DType

from .. import ast
from ..ast_walk import Task
from ..ndarray import dtype_named
from .attributes import EQUALS, Attributes
from .literals import LiteralError, read_number, scalar

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

    # Values that are no calls

    def atom(self) -> ast.Expr | None:
        """A name, a number or an entry of the metadata, if one is next; go on behind it."""
        lex = self.lex
        kind = lex.kind
        if kind in ("graph", "local", "global"):
            return self.reference()
        if kind == "word":
            return self._word()
        if kind == "number":
            return self._number()
        if kind == "meta":
            at, found = lex.start, self._entry()
            if isinstance(found, ast.Attrs):
                raise lex.error("attributes stand where an expression has to", at)
            return found
        return None

    def reference(self) -> ast.Expr:
        lex = self.lex
        kind, value = lex.kind, lex.value
        found: ast.Expr | None
        if kind == "graph":
            bound = self.graph.get(int(value)) if len(value) < 20 else None
            found = bound[0] if bound is not None else None
        elif kind == "local":
            found = self.vars.get(value)
            if lex.odd_lengths:
                self._check_projection(value)
        else:
            found = self._named.get("@" + value)
            if found is None:
                self._named["@" + value] = found = ast.GlobalVar(value)
                self.called.setdefault(value, lex.start)
        if found is None:
            raise lex.error(f"{lex.shown()} is not defined before it is used")
        lex.advance()
        return found

    def _check_projection(self, name: str) -> None:
        tuple_ = self.lex.ambiguous(name)
        if tuple_ is None:
            return
        var = self.vars[tuple_]
        if not isinstance(var.annotation or var.type, (ast.TensorType, ast.FuncType)):
            raise self.lex.error(f"%{name} is a variable, and could be a field of %{tuple_}")

    def _word(self) -> ast.Expr:
        lex = self.lex
        name = lex.value
        if name in ("True", "False"):
            lex.advance()
            return ast.Constant(scalar(name == "True", DType.BOOL), type=self.noted()[0])
        found: ast.Expr | None = self.constructors.get(name)
        if found is None:
            found = self._named.get(name)
        if found is None:
            self._named[name] = found = ast.Op(name)
        lex.advance()
        return found

    def _number(self) -> ast.Expr:
        lex = self.lex
        text, at = lex.value, lex.start
        lex.advance()
        if text in self.constructors and lex.kind == "(":  # Defunctionalization names them so
            return self.constructors[text]
        checked, span = self.noted()
        told = None  # before TVM 0.9 only the comment tells int64 from int32
        if isinstance(checked, ast.TensorType) and checked.dtype in WITHOUT_SUFFIX:
            told = None if checked.shape else checked.dtype
        try:
            value, name = read_number(text, told)
        except LiteralError as error:
            raise lex.error(str(error), at) from None
        dtype = dtype_named(name)
        if dtype is None:
            raise lex.error(f"there are no constants of {name}", at)
        return ast.Constant(scalar(value, dtype), type=checked, span=span or self._span(at))

    # Expressions

    def body(self, inner: bool = False) -> Task[ast.Expr]:
        """Bindings, and the expression they are for.

        ``inner``: this is the value of a ``let`` without brackets round it, which TVM prints. The
        first expression that is no binding ends it.
        """
        lex, mark = self.lex, self.vars.enter()
        lets: list[tuple[ast.Var, ast.Expr, int]] = []
        while True:
            at = self.lex.start
            if lex.kind == "graph" and lex.follows(EQUALS):
                yield self._bind_graph()
            elif lex.kind == "let":
                lex.advance()
                var = self.variable()
                self.take("=")
                lets.append((var, (yield self._let_value()), at))
                self.take(";")
            elif lex.kind == "free_var":
                lex.advance()
                self._free_variable()
            else:
                result = yield self.expression()
                if inner or not self.skip(";"):
                    break
                while self.skip(";"):
                    pass
                lets.append((ast.Var(""), result, at))
        for var, value, at in reversed(lets):
            result = ast.Let(var, value, result, span=self._span(at))
        self.vars.leave(mark)
        return result  # type: ignore[no-any-return]

    def _let_value(self) -> Task[ast.Expr]:
        return self.body(inner=True) if self.lex.kind == "let" else self.expression()

    def _bind_graph(self) -> Task[None]:
        lex = self.lex
        number, at = int(lex.value[:20]), lex.start
        lex.advance()
        lex.advance()
        value = yield self._let_value()
        self.take(";")
        bound = self.graph.get(number)
        if bound is not None and bound[1] == self.function:
            raise lex.error(f"%{number} is bound twice, and TVM would keep the first value", at)
        self.graph[number] = value, self.function

    def _free_variable(self) -> None:
        if self.lex.kind != "local":
            raise self.lex.expected("a variable's name")
        name = self.lex.declare()
        annotation = self.type() if self.skip(":") else None
        var = ast.Var(name, annotation, type=self.noted()[0])
        self.vars[name] = var  # to the end of the text
        self.free.append(var)
        self.take(";")

    def expression(self, first: ast.Expr | None = None) -> Task[ast.Expr]:
        """Operands and infix operators. ``first`` has been read already."""
        lex = self.lex
        at = self.lex.start
        operands = [(yield self.operand(first))]
        waiting: list[tuple[int, str]] = []
        while True:
            rule = INFIX.get(lex.kind)
            while waiting and (rule is None or rule[0] <= waiting[-1][0]):
                right, left = operands.pop(), operands.pop()
                op = self._named.setdefault(waiting[-1][1], ast.Op(waiting[-1][1]))
                operands.append(ast.Call(op, (left, right), span=self._span(at)))
                waiting.pop()
            if rule is None:
                return operands[0]  # type: ignore[no-any-return]
            lex.advance()
            waiting.append(rule)
            operands.append((yield self.operand(None)))

    def operand(self, expr: ast.Expr | None) -> Task[ast.Expr]:
        """An atom or a bracketed expression, and the calls and projections behind it."""
        lex = self.lex
        at = self.lex.start
        if expr is None:
            expr = self.atom()
        if expr is None:
            expr = yield self._compound()
        while True:
            if lex.kind == "(":
                expr = yield self._call(expr, at)
            elif isinstance(expr, ast.Constructor) and not expr.inputs:
                expr = ast.Call(expr, (), **self._notes(at))
            elif lex.kind == "field":
                index = int(lex.value[1:10])
                lex.advance()
                expr = ast.TupleGetItem(expr, index, **self._notes(at))
            elif lex.kind == "^":  # TVM 0.6
                lex.advance()
                expr = ast.RefRead(expr, span=self._span(at))
            else:
                return expr  # type: ignore[no-any-return]

    def _call(self, op: ast.Expr, at: int) -> Task[ast.Expr]:
        lex = self.lex
        lex.advance()
        args: list[ast.Expr] = []
        unnamed: list[tuple[int, str]] = []
        values: dict[str, Any] = {}
        attrs: ast.Attrs | None = None
        while lex.kind != ")":
            if self.at_attribute():
                values = self.attributes()
                break
            if lex.kind == "string":  # TVM 0.6: cast(%x, "int8")
                unnamed.append((lex.start, lex.value[1:-1]))
                lex.advance()
            else:
                arg = self._entry() if lex.kind == "meta" else self.atom()
                if isinstance(arg, ast.Attrs):
                    attrs = arg
                    break
                if arg is None or lex.kind not in (",", ")") or isinstance(arg, ast.Constructor):
                    arg = yield self.expression(arg)
                args.append(arg)
            if not self.skip(",") and lex.kind != ")":
                raise lex.expected("',' or ')'")
        self.take(")")
        if attrs is None:
            attrs = self.call_attrs(op, values, unnamed)
        return ast.Call(op, tuple(args), attrs, **self._notes(at))

    def _entry(self) -> ast.Expr | ast.Attrs:
        """The current entry of the metadata: an operand, or all attributes of a call."""
        at, found = self.lex.start, self.meta()
        if not isinstance(found, (ast.Expr, ast.Attrs)):
            raise self.lex.error("the metadata entry is no expression", at)
        return found

    def _compound(self) -> Task[ast.Expr]:
        lex = self.lex
        starts = {
            "(": self._brackets, "{": self.block, "if": self._if, "match": self._match,
            "ref": self._ref, "ref_read": self._ref, "ref_write": self._ref, "-": self._negative,
        }  # fmt: skip
        if lex.kind == "fn":
            lex.advance()
            return self.function_literal()
        if lex.kind in starts:
            return starts[lex.kind]()
        raise self._no_expression()

    def _no_expression(self) -> MalformedFile:
        return self.lex.expected("an expression")

    def _brackets(self) -> Task[ast.Expr]:
        """A tuple, or an expression in brackets."""
        lex, at = self.lex, self.lex.start
        lex.advance()
        fields: list[ast.Expr] = []
        while lex.kind != ")":
            quick = lex.kind == "local" or (lex.kind == "graph" and not lex.follows(EQUALS))
            field = self.atom() if quick else None
            if field is None or lex.kind not in (",", ")"):
                field = yield (self.body() if field is None else self.expression(field))
            fields.append(field)
            if lex.kind == ")" and len(fields) == 1:
                lex.advance()
                return fields[0]
            if lex.kind == ":=" and len(fields) == 1:  # TVM 0.6
                lex.advance()
                value = yield self.expression()
                self.take(")")
                return ast.RefWrite(fields[0], value, span=self._span(at))
            if not self.skip(",") and lex.kind != ")":
                raise lex.expected("',' or ')'")
        lex.advance()
        return ast.Tuple(tuple(fields), **self._notes(at))

    def block(self) -> Task[ast.Expr]:
        """``{ … }``."""
        self.take("{")
        result = yield self.body()
        self.take("}")
        return result  # type: ignore[no-any-return]

    def _if(self) -> Task[ast.Expr]:
        at = self.lex.start
        self.take("if")
        self.take("(")
        cond = yield self.body()
        self.take(")")
        then = yield self.block()
        self.take("else")
        otherwise = yield (self._if() if self.lex.kind == "if" else self.block())
        return ast.If(cond, then, otherwise, span=self._span(at))

    def _match(self) -> Task[ast.Expr]:
        at = self.lex.start
        self.take("match")
        complete = not self.skip("?")
        data = yield self.operand(None)
        clauses = []
        self.take("{")
        while self.lex.kind != "}":
            mark = self.vars.enter()
            pattern = self.pattern()
            self.take("=>")
            clauses.append(ast.Clause(pattern, (yield self.body())))
            self.vars.leave(mark)
            if not self.skip(",") and self.lex.kind != "}":
                raise self.lex.expected("',' or '}'")
        self.take("}")
        return ast.Match(data, tuple(clauses), complete, span=self._span(at))

    def _ref(self) -> Task[ast.Expr]:
        at, kind = self.lex.start, self.lex.kind
        self.lex.advance()
        self.take("(")
        ref = yield self.body()
        result: ast.Expr
        if kind == "ref_write":
            self.take(",")
            result = ast.RefWrite(ref, (yield self.body()), span=self._span(at))
        else:
            result = (ast.RefCreate if kind == "ref" else ast.RefRead)(ref, span=self._span(at))
        self.take(")")
        return result

    def _negative(self) -> Task[ast.Expr]:
        at = self.lex.start
        self.take("-")
        return ast.Call(ast.Op("negative"), ((yield self.operand(None)),), span=self._span(at))

    def function_literal(self) -> Task[ast.Function]:
        """``[A](%x: A, Primitive=1) -> A { … }``."""
        lex, at = self.lex, self.lex.start
        mark, type_mark = self.vars.enter(), self.type_vars.enter()
        generics = self.generics()
        self.take("(")
        params: list[ast.Var] = []
        values: dict[str, Any] = {}
        while lex.kind != ")":
            if self.at_attribute():
                values = self.attributes()
                break
            if lex.kind != "local":
                raise lex.expected("a parameter or ')'")
            params.append(self.variable())
            if not self.skip(",") and lex.kind != ")":
                raise lex.expected("',' or ')'")
        self.take(")")
        ret = self.type() if self.skip("->") else None
        body = yield self.block()
        attrs, device = self.function_attrs(values)
        notes = self._notes(at)
        self.vars.leave(mark)
        self.type_vars.leave(type_mark)
        return ast.Function(tuple(params), body, ret, generics, attrs, device=device, **notes)

    def _span(self, at: int) -> ast.Span:
        return ast.Span(self.lex.path, *self.lex.place(at))

    def _notes(self, at: int) -> dict[str, Any]:
        """Type and span for the expression that has just been read, from offset ``at``."""
        checked, noted = self.noted()
        return {"type": checked, "span": noted or self._span(at)}
