"""A graph of PyTorch expressions as the source of a class, and the arrays of its ``state_dict``."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from serde.ir.graph import DType, Graph, Node, Value
from serde.spec.weight_origins import names_in, origins_of

from ..target import ListOf, Module, Slot, WhileTrained
from . import names as naming
from .control import CONTROL, assign, emit_control
from .printer import SIGNS, WIDTH, print_expression, print_statement
from .variables import ALWAYS_INLINED, Variables, find_inlined, find_last_reads

INFIX: Mapping[str, type] = {
    text: sign for sign, text in SIGNS.items() if sign not in (ast.USub, ast.Invert)
}
COMPARISONS = frozenset((ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))
UNARY: Mapping[str, type] = {"neg": ast.USub, "invert": ast.Invert}
BODY = "        "  # of a method
LONGEST_NAME = 8  # letters of the usual variable, and of what stands around it


@dataclass
class Written:
    """What becomes of a model.

    ``state`` maps the keys of the ``state_dict`` to arrays; ``origins`` tells the arrays of the
    source by key, ``inputs`` the parameters of ``forward``.
    """

    class_name: str
    lines: list[str] = field(default_factory=list)
    state: dict[str, Value] = field(default_factory=dict)
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)


def write_class(graph: Graph, class_name: str, is_short: bool = True) -> Written:
    """The class of a model."""
    return _Writer(graph, class_name, is_short).write()


class _Writer:
    def __init__(self, graph: Graph, class_name: str, is_short: bool) -> None:
        self.graph = graph
        self.written = Written(class_name)
        self.origins: Mapping[Value, Value] = graph.source_info or {}  # type: ignore[assignment]
        self.members = naming.Scope(naming.RESERVED)
        self.init: list[ast.stmt] = []
        self.arrays: dict[Value, ast.expr] = {}  # constants that are members, as they are read
        self.modules: dict[Node, ast.expr] = {}
        self.shared: dict[Any, ast.expr] = {}
        self.weights: dict[Hashable, tuple[Value, ast.expr]] = {}  # and where they are first
        layers = [_layer_of(n) for n in graph.all_nodes() if "module" in n.attrs]
        self.short = naming.shorten(layers) if is_short else {n: n for n in layers}
        self.makers = {v: n for n in graph.all_nodes() for v in n.outputs}

    def write(self) -> Written:
        written = self.written
        scope = naming.Scope(naming.GLOBALS)
        inputs = {v: scope.claim(naming.to_identifier(v.name)) for v in self.graph.inputs}
        written.inputs = list(inputs.values())
        for node in self.graph.all_nodes():
            if "module" in node.attrs:
                self.modules[node] = self.construct(node)
        body = _Body(self, self.graph, Variables(inputs, tuple(naming.GLOBALS)))
        statements = list(body.statements())
        statements.append(self.results(body))
        written.lines += [f"class {written.class_name}(nn.Module):"]
        written.lines += ["    def __init__(self) -> None:", f"{BODY}super().__init__()"]
        for statement in self.init:
            written.lines += print_statement(statement, BODY)
        written.lines += ["", *_signature(written.inputs)]
        for statement in _return_last(statements):
            written.lines += print_statement(statement, BODY)
        return written

    def results(self, body: _Body) -> ast.stmt:
        values = [body.read(v) for v in self.graph.outputs]
        return ast.Return(values[0] if len(values) == 1 else ast.Tuple(values))

    def construct(self, node: Node) -> ast.expr:
        """The member that a module is; one for all calls that share its arrays."""
        module = node.attrs["module"]
        assert isinstance(module, Module)
        arrays = node.inputs[len(node.inputs) - len(module.parameters) :]
        key = (node.op, module.args, tuple(module.options.items()), arrays)
        if arrays and key in self.shared:
            return self.shared[key]
        layer = _layer_of(node)
        name = self.members.claim(naming.to_identifier(self.short[layer], "layer"))
        options = [ast.keyword(k, _literal(v)) for k, v in module.options.items()]
        call = ast.Call(naming.spell_name(node.op), [_literal(a) for a in module.args], options)
        member = ast.Attribute(ast.Name("self"), name)
        self.init.append(ast.Assign([member], call))
        for parameter, array in zip(module.parameters, arrays, strict=True):
            assert array is not None
            weight = ast.Attribute(member, parameter)
            if twin := self.find_twin(array, weight):  # two layers train one array
                array, first = twin
                self.init.append(ast.Assign([weight], first))
            self.enter(f"{name}.{parameter}", array)
            is_scale = parameter == "weight" and node.op.startswith("nn.BatchNorm")
            if is_scale and not origins_of(array):  # nothing that the source trains
                fixed = naming.spell_name(f"self.{name}.{parameter}.requires_grad_")
                self.init.append(ast.Expr(ast.Call(fixed, [ast.Constant(False)], [])))
        self.shared[key] = member
        return member

    def find_twin(self, value: Value, member: ast.expr) -> tuple[Value, ast.expr] | None:
        """The same weight in a member before this one, and that member."""
        if not origins_of(value):
            return None
        key = origins_of(value), value.dtype, value.shape
        first = self.weights.setdefault(key, (value, member))
        is_same = first[1] is not member and np.array_equal(first[0].array(), value.array())
        return first if is_same else None

    def enter(self, key: str, array: Value) -> None:
        """Enter an array under its key in the ``state_dict``."""
        self.written.state[key] = array
        names = names_in(origins_of(array), 0, array.tensor.size) if array.tensor else ()
        self.written.origins[key] = names or (self.origins.get(array, array).name,)

    def array(self, value: Value) -> ast.expr:
        """A constant as it is read: a parameter of its own or a buffer."""
        if value not in self.arrays:
            assert value.tensor is not None
            name = self.members.claim(naming.to_identifier(value.name, "constant"))
            member = ast.Attribute(ast.Name("self"), name)
            if twin := self.find_twin(value, member):
                self.arrays[value] = twin[1]
                return twin[1]
            size = ast.Call(
                naming.spell_name("torch.empty"), [_literal(tuple(value.tensor.shape))],
                _dtype_option(value),
            )  # fmt: skip
            if origins_of(value):
                call = ast.Call(naming.spell_name("nn.Parameter"), [size], [])
                self.init.append(ast.Assign([member], call))
            else:
                register = naming.spell_name("self.register_buffer")
                self.init.append(ast.Expr(ast.Call(register, [ast.Constant(name), size], [])))
            self.enter(name, value)
            self.arrays[value] = member
        return self.arrays[value]


class _Body:
    """The statements of ``forward``."""

    def __init__(self, writer: _Writer, graph: Graph, variables: Variables) -> None:
        self.writer, self.graph, self.variables = writer, graph, variables
        self.inlined = find_inlined(graph)
        self.last = find_last_reads(graph, self.inlined)
        made = (v for node in graph.nodes for v in node.outputs)
        self.made = {*graph.inputs, *made}  # here, so that their names can be given out again
        self.preferred: dict[Value, str] = {}  # what results of a block are called behind it
        self.expressions: dict[Value, ast.expr] = {}  # values that are no variables

    def statements(self) -> Iterator[ast.stmt]:
        for node in self.graph.nodes:
            if node not in self.inlined:
                yield from (emit_control if node.op in CONTROL else _Body.emit)(self, node)

    def enter(self, graph: Graph, inputs: Iterable[tuple[Value, str]]) -> _Body:
        """The body of a block, whose inputs are variables."""
        variables = self.variables.copy()
        variables.names.update(inputs)
        inner = _Body(self.writer, graph, variables)
        inner.expressions.update(self.expressions)
        return inner

    def leave(self, node: Node) -> None:
        """Free the names of what a node with blocks has read last."""
        for value in self.read_by(node):
            if self.last[value] is node and value in self.made:
                self.variables.release(value)
        for value in node.outputs:
            if value not in self.last:
                self.variables.release(value)

    def name_result(self, value: Value, node: Node) -> str:
        """The variable of what a node computes."""
        return self.variables.assign(value, self.preferred.get(value), _layer_of(node)[:20])

    def block(
        self, names: Sequence[str], results: Sequence[Value],
        rows: Sequence[tuple[str, Value]] = (),
    ) -> list[ast.stmt]:  # fmt: skip
        """The statements of a block that leave ``results`` in ``names``, and ``rows`` in lists."""
        for name, value in zip(names, results, strict=True):
            self.preferred.setdefault(value, name)
            if not any(self.variables.names.get(v) == name for v in self.graph.inputs):
                self.variables.free(name)
        statements = list(self.statements())
        for name, value in rows:
            append = ast.Call(naming.spell_name(f"{name}.append"), [self.read(value)], [])
            statements.append(ast.Expr(append))
        statements += assign(names, [self.read(v) for v in results])
        return statements

    def emit(self, node: Node) -> Iterator[ast.stmt]:
        """The statement of a node; where it is long, nested expressions have their own before."""
        value = self.expression(node)
        if len(BODY) + LONGEST_NAME + len(print_expression(value)) > WIDTH:
            for operand in dict.fromkeys(node.inputs):
                maker = None if operand is None else self.writer.makers.get(operand)
                if maker in self.inlined and maker.op not in ALWAYS_INLINED:
                    del self.inlined[maker]
                    self.last[maker.outputs[0]] = node
                    yield from self.emit(maker)
            value = self.expression(node)
        yield self.assign(node, value)

    def assign(self, node: Node, value: ast.expr) -> ast.stmt:
        released = [self.variables.release(v) for v in self.read_by(node)
                    if self.last[v] is node and v in self.made]  # fmt: skip
        free = next((n for n in released if n is not None), None)
        targets: list[ast.expr] = []
        for output in node.outputs:
            fallback = naming.to_identifier(
                self.writer.short.get(_layer_of(node), _layer_of(node))
            )[:20]
            if output not in self.last:
                targets.append(ast.Name("_"))
                continue
            wanted = self.preferred.get(output)
            is_free = wanted is not None and not self.variables.is_busy(wanted)
            name = self.variables.assign(output, wanted if is_free else free, fallback)
            targets.append(ast.Name(name))
            free = None if name == free else free
        if node.op == "nn.LSTM":  # whose states are a tuple
            states: ast.expr = ast.Tuple(targets[1:])
            used = any(v in self.last for v in node.outputs[1:])
            targets = [targets[0], states if used else ast.Name("_")]
        return ast.Assign([ast.Tuple(targets) if len(targets) > 1 else targets[0]], value)

    def read_by(self, node: Node) -> list[Value]:
        """The values that the statement of a node reads, those of nested expressions included."""
        values: list[Value] = []
        for value in node.inputs:
            if value is None:
                continue
            maker = self.writer.makers.get(value)
            values += self.read_by(maker) if maker in self.inlined else [value]  # type: ignore[arg-type]
        return list(dict.fromkeys(values))

    def read(self, value: Value) -> ast.expr:
        """A value where it is read."""
        if value in self.expressions:
            return self.expressions[value]
        if value in self.variables.names:
            return ast.Name(self.variables.names[value])
        if value.tensor is not None:
            return self.writer.array(value)
        return self.expression(self.writer.makers[value])

    def expression(self, node: Node) -> ast.expr:
        """What a node computes."""
        op, attrs = node.op, node.attrs
        given = attrs.get("args", (Slot(0),))  # an alias of an output has none
        args = [self.argument(a, node) for a in given]  # type: ignore[union-attr]
        options = [ast.keyword(k, self.argument(v, node)) for k, v in attrs.items()
                   if k not in ("args", "module")]  # fmt: skip
        if op in UNARY:
            return ast.UnaryOp(UNARY[op](), args[0])
        if op in INFIX:
            return _infix(INFIX[op], args)
        if op == "alias":
            return args[0]
        if op in ("device", "shape"):
            return ast.Attribute(args[0], op)
        if op == "size":
            return ast.Subscript(ast.Attribute(args[0], "shape"), args[1])
        if op == "[]":
            index = args[1:]
            return ast.Subscript(args[0], index[0] if len(index) == 1 else ast.Tuple(index))
        if "module" in attrs:
            return ast.Call(self.writer.modules[node], args, options)
        if op.startswith("."):
            return ast.Call(ast.Attribute(args[0], op[1:]), args[1:], options)
        return ast.Call(naming.spell_name(op), args, options)

    def argument(self, argument: Any, node: Node) -> ast.expr:
        if isinstance(argument, Slot):
            value = node.inputs[argument.operand]
            assert value is not None
            return self.read(value)
        if isinstance(argument, WhileTrained):
            rate, none = ast.Constant(argument.value), ast.Constant(0.0)
            return ast.IfExp(naming.spell_name("self.training"), rate, none)
        if isinstance(argument, ListOf):
            return ast.List([self.argument(a, node) for a in argument.items])
        if isinstance(argument, tuple):
            return ast.Tuple([self.argument(a, node) for a in argument])
        if isinstance(argument, slice):
            ends = argument.start, argument.stop, argument.step
            return ast.Slice(*[None if e is None else self.argument(e, node) for e in ends])
        return _literal(argument)


def _return_last(statements: list[ast.stmt]) -> list[ast.stmt]:
    """Return what the last assignment computes, where that is the result."""
    match statements[-2:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value), ast.Return(ast.Name(id=other))]:
            return [*statements[:-2], ast.Return(value)] if name == other else statements
    return statements


def _infix(sign: type, args: Sequence[ast.expr]) -> ast.expr:
    if sign in COMPARISONS:
        return ast.Compare(args[0], [sign()], [args[1]])
    return ast.BinOp(args[0], sign(), args[1])


def _literal(value: Any) -> ast.expr:
    """A constant argument: a number, a text, an element type, or a tuple of those."""
    if isinstance(value, DType):
        return ast.Attribute(ast.Name("torch"), value.value)
    if isinstance(value, tuple):
        return ast.Tuple([_literal(v) for v in value])
    return ast.Constant(value)


def _dtype_option(value: Value) -> list[ast.keyword]:
    """The argument that says an element type other than PyTorch's default."""
    is_default = value.dtype is DType.FLOAT32
    return [] if is_default else [ast.keyword("dtype", _literal(value.dtype))]


def _layer_of(node: Node) -> str:
    """The source's layer that a node is of."""
    return node.sources[0].name if node.sources and node.sources[0].name else node.name or node.op


def _signature(inputs: Sequence[str]) -> list[str]:
    line = f"    def forward(self, {', '.join(inputs)}):" if inputs else "    def forward(self):"
    if len(line) <= 88:
        return [line]
    inner = BODY + ", ".join(("self", *inputs))
    if len(inner) <= 88:
        return ["    def forward(", inner, "    ):"]
    return ["    def forward(", *(f"{BODY}{n}," for n in ("self", *inputs)), "    ):"]
