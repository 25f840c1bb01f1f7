"""Relay modules as text that TVM 0.8 to 0.19 reads.

The layout, and which values get a number, follow TVM's own printer (src/relay/printer), so that its
files come out as they went in. Different by default, because TVM's parser does not read it or reads
something else: names are changed, floats keep all their digits, NaN goes to the metadata, a
``let`` as the value of a ``let`` has brackets, ``main`` keeps the names of its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from .. import ast, registry
from ..ast_walk import Task, operands, run, uses
from ..json.writer import stream_metadata
from ..ndarray import name_of
from .literals import SCALARS, format_number
from .print_parts import Names, Parts, make_readable, require_dotted

HEADER = '#[version = "0.0.5"]'
DEEPEST = 40  # levels of indentation; deeper blocks are not indented further
LINE, IN, OUT = object(), object(), object()  # a new line; what follows is indented more, less
Doc = list[Any]  # strings, marks and further Docs
Handlers = Mapping[type[ast.Expr], Callable[[Any, Any], Any]]
TEXT = {str}

INLINE = (ast.GlobalVar, ast.Constant, ast.Op, ast.Var, ast.Constructor)
COMMENTED = (ast.Constant, ast.Call, ast.Var, ast.Function, ast.Tuple, ast.TupleGetItem)


def print_text(module: ast.Module, *, types: bool = True, like_tvm: bool = False) -> str:
    """The text of ``module``.

    ``types``: print inferred types in comments, where the module has them. ``like_tvm``: just as
    TVM prints it, to compare with its output: floats lose digits, and TVM may not read it back.

    Raises:
        ConversionError: for names of operators and attributes the text form cannot hold, and
            constants of types TVM lacks.
    """
    return "".join(stream_text(module, types=types, like_tvm=like_tvm))


def stream_text(module: ast.Module, *, types: bool = True, like_tvm: bool = False) -> Iterator[str]:
    """The text of ``module``, in pieces; options as of ``print_text``."""
    printer = _Printer(types, like_tvm)
    code = [HEADER, LINE, printer.print_module(module)]
    yield from _indent(code)
    if printer.parts.metadata:
        yield "\n#[metadata]\n"
        yield from stream_metadata(printer.parts.metadata)


def _indent(doc: Doc) -> Iterator[str]:
    """The strings of ``doc``, its lines indented."""
    level = 0
    stack: list[Iterator[Any]] = [iter(doc)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, str):
                yield item
            elif item is LINE:
                yield "\n" + "  " * min(level, DEEPEST)
            elif item is IN or item is OUT:
                level += 1 if item is IN else -1
            else:
                stack.append(iter(item))
                break
        else:
            stack.pop()


class _Printer:
    """Prints a module. Expressions are done by tasks: they nest deeper than Python recurses."""

    def __init__(self, types: bool, like_tvm: bool) -> None:
        self.types, self.like_tvm = types, like_tvm
        self.parts = Parts(like_tvm)
        self.names, self.global_names = Names(like_tvm), Names(like_tvm)
        self.globals: dict[str, str] = {}
        self.printed: dict[ast.Expr, Any] = {}  # an expression's text, or the name it got
        self.reserved: dict[ast.Expr, str] = {}  # of variables that are not declared yet
        self.free: dict[ast.Expr, Doc] = {}
        self.named: set[ast.Expr] = set()
        self.noted: set[ast.Expr] = set()
        self.uses: dict[ast.Expr, int] = {}
        self.stand_ins: dict[Any, ast.Constant] = {}
        self.count = 0
        self.scopes: list[Doc] = []

    # Modules

    def print_module(self, module: ast.Module) -> Doc:
        if "main" in module.functions and not self.like_tvm:
            self.global_names.claim("main", "v")
            self.globals["main"] = "main"
            for param in module.functions["main"].params:
                self.reserved[param] = "%" + self.names.claim(param.name, "v")
        for name in sorted(module.functions, key=str.encode):
            self._global_name(name)
        functions = {self.globals[name]: f for name, f in module.functions.items()}
        types = sorted(module.types.values(), key=lambda t: t.name.encode())
        parts: list[Doc] = [self._print_type_def(t) for t in types]
        for name, function in sorted(functions.items(), key=lambda item: item[0].encode()):
            self.uses = uses(function)
            parts.append([f"def @{name}", run(self._print_signature_and_body(function))])
        return [[*(() if i == 0 else (LINE,)), part, LINE] for i, part in enumerate(parts)]

    def _print_type_def(self, type_: ast.TypeDef) -> Doc:
        name = self.parts.format_type(ast.GlobalTypeVar(type_.name))
        doc: Doc = [f"type {name}{self.parts.format_generics(type_.type_params)} {{", IN]
        for constructor in type_.constructors:
            inputs = ", ".join(map(self.parts.format_type, constructor.inputs))
            doc += [LINE, self._constructor_name(constructor), f"({inputs})," if inputs else ","]
        return [*doc, OUT, LINE, "}"] if type_.constructors else [*doc, OUT, "}"]

    def _constructor_name(self, constructor: ast.Constructor) -> str:
        return constructor.name if self.like_tvm else make_readable(constructor.name)

    def _global_name(self, name: str) -> str:
        if name not in self.globals:
            self.globals[name] = name if self.like_tvm else self.global_names.claim(name, "v")
        return self.globals[name]

    # Expressions

    def print_scope(self, expr: ast.Expr) -> Task[Doc]:
        """The values that have to be named first, and ``expr``."""
        self.scopes.append([])
        last = yield self.print_expr(expr, True)
        return [self.scopes.pop(), last]

    def print_expr(self, expr: ast.Expr, inline: bool = False) -> Task[Any]:
        """``expr``, or the name it gets in the current scope."""
        if expr not in self.printed:
            yield self._visit(expr)
        return self.emit(expr, inline)

    def _visit(self, expr: ast.Expr) -> Task[None]:
        """Print ``expr`` and the calls and tuples inside it, innermost first."""
        printed, stack = self.printed, [(expr, False)]
        while stack:
            top, ready = stack.pop()
            if top in printed:
                continue
            leaf = self.LEAVES.get(type(top))
            if leaf is None:
                doc = yield self.BLOCKS[type(top)](self, top)
                printed.setdefault(top, doc)
            elif ready:
                doc = leaf(self, top)
                printed.setdefault(top, doc)
            else:
                stack.append((top, True))
                stack.extend((e, False) for e in reversed(operands(top)) if e not in printed)

    def emit(self, expr: ast.Expr, inline: bool = False) -> Any:
        """The text for ``expr``, which has been visited, where it is read; name it if needed."""
        doc = self.printed[expr]
        if isinstance(expr, ast.Var):
            if expr in self.free:
                self.scopes[-1] += ["free_var ", self.free.pop(expr), ";", LINE]
            return doc
        if expr in self.named:
            return doc
        note = self._make_comment(expr)
        if isinstance(expr, INLINE) or (inline and self.uses.get(expr, 0) <= 1):
            if note:
                doc = self.printed[expr] = [doc, note]
            return doc
        if isinstance(expr, ast.Let):
            doc = self._add_brackets(doc)
        name = f"%{self.count}"
        self.count += 1
        self.named.add(expr)
        self.printed[expr] = name
        self.scopes[-1] += [_concatenate(name, " = ", doc, note, ";"), LINE]
        return name

    def _add_brackets(self, doc: Any) -> Doc:
        return ["(", IN, LINE, doc, OUT, LINE, ")"]

    def _make_comment(self, expr: ast.Expr) -> str:
        """The comment behind an expression where it is first printed."""
        if not isinstance(expr, COMMENTED) or expr in self.noted:
            return ""
        self.noted.add(expr)
        type_ = f" ty={self.parts.format_type(expr.type)}" if self.types and expr.type else ""
        span = ""
        if expr.span is not None and self.like_tvm:
            span = f" span={expr.span.source}:{expr.span.line}:{expr.span.column}"
        return f" /*{type_}{span} */" if type_ or span else ""

    def declare(self, var: ast.Var) -> Doc:
        """A variable where it is bound."""
        name = self.reserved.pop(var, None) or "%" + self.names.claim(var.name, "v")
        self.printed[var] = name
        device = f" {{virtual_device={self.parts.add_meta(var.device)}}}" if var.device else ""
        return [name, device, self.parts.format_annotation(var.annotation), self._make_comment(var)]

    def _print_free_var(self, var: ast.Var) -> str:
        self.free[var] = self.declare(var)
        return str(self.printed[var])

    def _print_global_var(self, var: ast.GlobalVar) -> str:
        return f"@{self._global_name(var.name)}"

    def _print_op(self, op: ast.Op) -> str:
        return op.name if self.like_tvm else require_dotted(op.name)

    def _print_constant(self, constant: ast.Constant) -> str:
        tensor = constant.tensor
        dtype = name_of(tensor.dtype)
        if tensor.shape == () and dtype in SCALARS:
            value = tensor.load().item()
            if self.like_tvm and "float" in dtype:
                return f"{value:g}{(format_number(0, dtype) or '')[1:]}"
            literal = format_number(value, dtype)
            if literal is not None:
                return literal
        return self.parts.add_meta(constant)

    def _print_tuple(self, expr: ast.Tuple) -> Any:
        end = ",)" if len(expr.fields) == 1 else ")"
        return _concatenate("(", _join_with_commas([self.emit(f) for f in expr.fields]), end)

    def _print_get_item(self, expr: ast.TupleGetItem) -> Any:
        return _concatenate(self.emit(expr.tuple), f".{expr.index}")

    def _print_call(self, call: ast.Call) -> Any:
        args: list[Any] = [self.emit(a) for a in call.args]
        args += self._repeat_operands(call) + self.parts.format_call_attrs(call)
        if isinstance(call.op, ast.Constructor):
            name = self._constructor_name(call.op)
            return [name, "(", _join_with_commas(args), ")"] if call.op.inputs else [name]
        return _concatenate(self.emit(call.op), "(", _join_with_commas(args), ")")

    def _repeat_operands(self, call: ast.Call) -> list[Any]:
        """The operands of ``arange`` as attributes, where TVM wants them as well."""
        if call.attrs is None or call.attrs.type_key != registry.ARANGE:
            return []
        shown: list[Any] = []
        for name, arg in zip(registry.OPERANDS_OF_ARANGE, call.args, strict=False):
            if self.like_tvm:
                again: Any = self.parts.add_meta(arg)
            elif isinstance(arg, ast.Constant):
                again = self.parts.add_meta(self._make_stand_in(arg))
            else:
                again = self.emit(arg)
            shown.append([f"{name}=", again])
        return shown

    def _make_stand_in(self, constant: ast.Constant) -> ast.Constant:
        """The entry of the metadata for a constant that is read elsewhere in the text."""
        tensor = constant.tensor
        if tensor.shape != ():
            return constant
        mark = (tensor.dtype, tensor.load().tobytes())
        return self.stand_ins.setdefault(mark, ast.Constant(tensor))

    def _print_if(self, expr: ast.If) -> Task[Doc]:
        cond = yield self.print_expr(expr.cond)
        then = yield self._print_block(expr.then)
        return ["if (", cond, ") ", then, " else ", (yield self._print_block(expr.otherwise))]

    def _print_block(self, expr: ast.Expr) -> Task[Doc]:
        return ["{", IN, LINE, (yield self.print_scope(expr)), OUT, LINE, "}"]

    def _print_function(self, expr: ast.Function) -> Task[Doc]:
        return ["fn ", (yield self._print_signature_and_body(expr))]

    def _print_signature_and_body(self, expr: ast.Function) -> Task[Doc]:
        generics = self.parts.format_generics(expr.type_params)
        params = [self.declare(p) for p in expr.params]
        inside = _join_with_commas([*params, *self.parts.format_function_attrs(expr)])
        ret = self.parts.format_annotation(expr.ret_type, "-> ")
        body = yield self._print_block(expr.body)
        return [f"{generics}(", inside, f") {ret} " if ret else ") ", body]

    def _print_let(self, expr: ast.Let) -> Task[Doc]:
        depth, body = len(self.scopes), expr
        rest: ast.Expr = expr
        while isinstance(rest, ast.Let):
            body = rest
            var = self.declare(body.var)
            value = yield self.print_expr(body.value, True)
            if isinstance(body.value, ast.Let) and not self.like_tvm and not isinstance(value, str):
                value = self._add_brackets(value)
            self.scopes.append(["let ", var, " = ", value, ";", LINE])
            rest = body.body
        last = yield self.print_scope(rest)
        lets, self.scopes[depth:] = self.scopes[depth:], []
        return [*lets, last]

    def _print_ref(self, expr: Any) -> Task[Doc]:
        word = {ast.RefCreate: "ref(", ast.RefRead: "ref_read(", ast.RefWrite: "ref_write("}
        inside = []
        for operand in operands(expr):
            inside.append((yield self.print_expr(operand)))
        return [word[type(expr)], _join_with_commas(inside), ")"]

    def _print_match(self, expr: ast.Match) -> Task[Doc]:
        doc: Doc = [
            "match" if expr.complete else "match?",
            " (",
            (yield self.print_expr(expr.data)),
        ]
        doc += [") {", IN]
        for clause in expr.clauses:
            pattern = self._print_pattern(clause.pattern)
            body = yield self.print_scope(clause.body)
            doc += [LINE, pattern, " => {", IN, LINE, body, OUT, LINE, "},"]
        return [*doc, OUT, LINE, "}"]

    def _print_pattern(self, pattern: ast.Pattern) -> Doc:
        if isinstance(pattern, ast.PatternVar):
            return self.declare(pattern.var)
        if isinstance(pattern, ast.PatternWildcard):
            return ["_"]
        inside = _join_with_commas([self._print_pattern(p) for p in pattern.patterns])
        if isinstance(pattern, ast.PatternTuple):
            return ["(", inside, ")"]
        name = self._constructor_name(pattern.constructor)
        return [name, "(", inside, ")"] if pattern.patterns else [name]

    # What prints an expression of each kind: of the printer, not of one, which would hold itself.
    BLOCKS: ClassVar[Handlers] = {
        ast.If: _print_if, ast.Function: _print_function, ast.Let: _print_let,
        ast.Match: _print_match, ast.RefCreate: _print_ref, ast.RefRead: _print_ref,
        ast.RefWrite: _print_ref,
    }  # fmt: skip
    LEAVES: ClassVar[Handlers] = {
        ast.Var: _print_free_var, ast.Constant: _print_constant, ast.Call: _print_call,
        ast.Tuple: _print_tuple, ast.TupleGetItem: _print_get_item,
        ast.GlobalVar: _print_global_var, ast.Op: _print_op, ast.Constructor: _constructor_name,
    }  # fmt: skip


def _concatenate(*parts: Any) -> Any:
    """The parts one behind another: a string, if all of them are."""
    return "".join(parts) if set(map(type, parts)) <= TEXT else [*parts]


def _join_with_commas(items: list[Any]) -> Any:
    if set(map(type, items)) <= TEXT:
        return ", ".join(items)
    doc: Doc = []
    for item in items:
        doc += [", ", item] if doc else [item]
    return doc
