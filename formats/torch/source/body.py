"""The statements of a ``forward``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from serde.ir.graph import Graph, Node, Value

from ..modules.members import Members
from ..modules.nest import CALL, Block
from ..modules.placement import layer_of
from ..modules.scopes import Path
from ..ops.higher_order import IN_ORDER
from ..target import ListOf, Slot, WhileTrained
from .control import CONTROL, assign
from .printer import BODY, SIGNS, WIDTH, print_expression
from .trees import literal, spell_name
from .variables import ALWAYS_INLINED, LONGEST_FALLBACK, Variables, find_inlined, find_last_reads

INFIX: Mapping[str, type] = {
    text: sign for sign, text in SIGNS.items() if sign not in (ast.USub, ast.Invert)
}
COMPARISONS = frozenset((ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))
UNARY: Mapping[str, type] = {"neg": ast.USub, "invert": ast.Invert}
LONGEST_NAME = 8  # letters of the usual variable, and of what stands around it


class Body:
    """The statements of ``forward``."""

    def __init__(self, members: Members, block: Block, variables: Variables) -> None:
        self.members, self.graph, self.variables = members, block.graph, variables
        self.block, graph = block.path, block.graph
        self.makers = {v: n for n in graph.nodes for v in n.outputs}
        self.inlined = find_inlined(graph)
        self.last = find_last_reads(graph, self.inlined)
        # What is made here, whose names can be given out again.
        self.reusable = {*graph.inputs, *self.makers}
        self.preferred: dict[Value, str] = {}  # what results of a block are called behind it
        self.expressions: dict[Value, ast.expr] = {}  # values that are no variables

    def results(self) -> ast.stmt:
        values = [self.read(v) for v in self.graph.outputs]
        return ast.Return(values[0] if len(values) == 1 else ast.Tuple(values))

    def statements(self) -> Iterator[ast.stmt]:
        for node in self.graph.nodes:
            if node not in self.inlined:
                yield from CONTROL.get(node.op, Body.emit)(self, node)

    def enter(self, graph: Graph, inputs: Iterable[tuple[Value, str]]) -> Body:
        """The body of a branch or a loop, whose inputs are variables."""
        variables = self.variables.copy()
        variables.names.update(inputs)
        inner = Body(self.members, Block(self.block, graph), variables)
        inner.makers = {**self.makers, **inner.makers}
        inner.expressions.update(self.expressions)
        return inner

    def leave(self, node: Node) -> None:
        """Free the names of what a node with bodies has read last."""
        for value in self.read_by(node):
            if self.last[value] is node and value in self.reusable:
                self.variables.release(value)
        for value in node.outputs:
            if value not in self.last:
                self.variables.release(value)

    def name_result(self, value: Value, node: Node) -> str:
        """The variable of what a node computes."""
        return self.variables.assign(value, self.preferred.get(value), layer_of(node))

    def list_statements(
        self, names: Sequence[str], results: Sequence[Value],
        rows: Sequence[tuple[str, Value]] = (),
    ) -> list[ast.stmt]:  # fmt: skip
        """The statements that leave ``results`` in ``names``, and ``rows`` in lists."""
        for name, value in zip(names, results, strict=True):
            self.preferred.setdefault(value, name)
            if not any(self.variables.names.get(v) == name for v in self.graph.inputs):
                self.variables.free(name)
        statements = list(self.statements())
        for name, value in rows:
            append = ast.Call(spell_name(f"{name}.append"), [self.read(value)], [])
            statements.append(ast.Expr(append))
        statements += assign(names, [self.read(v) for v in results])
        return statements

    def emit(self, node: Node) -> Iterator[ast.stmt]:
        """The statement of a node; where it is long, nested expressions have their own before."""
        value = self.expression(node)
        makers = [self.makers.get(v) for v in dict.fromkeys(node.inputs) if v is not None]
        nested = [m for m in makers if m in self.inlined and m.op not in ALWAYS_INLINED]
        room = LONGEST_NAME if self.variables.has_short_name() else 2 * LONGEST_FALLBACK
        if nested and len(BODY) + room + len(print_expression(value)) > WIDTH:
            for maker in nested:
                del self.inlined[maker]
                self.last[maker.outputs[0]] = node
                yield from self.emit(maker)
            value = self.expression(node)
        yield self.assign(node, value)

    def assign(self, node: Node, value: ast.expr) -> ast.stmt:
        released = [self.variables.release(v) for v in self.read_by(node)
                    if self.last[v] is node and v in self.reusable]  # fmt: skip
        is_short = self.variables.has_short_name()
        free = next((n for n in released if n and (len(n) <= LONGEST_NAME or not is_short)), None)
        targets: list[ast.expr] = []
        for output in node.outputs:
            if output not in self.last:
                targets.append(ast.Name("_"))
                continue
            wanted = self.preferred.get(output)
            is_free = wanted is not None and not self.variables.is_busy(wanted)
            name = self.variables.assign(output, wanted if is_free else free, layer_of(node))
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
            maker = self.makers.get(value)
            values += self.read_by(maker) if maker in self.inlined else [value]  # type: ignore[arg-type]
        return list(dict.fromkeys(values))

    def read(self, value: Value) -> ast.expr:
        """A value where it is read."""
        if value in self.expressions:
            return self.expressions[value]
        if value in self.variables.names:
            return ast.Name(self.variables.names[value])
        if value.tensor is not None:
            return self.spell(self.members.arrays[value, self.block])
        return self.expression(self.makers[value])

    def expression(self, node: Node) -> ast.expr:
        """What a node computes."""
        op, attrs = node.op, node.attrs
        operands = attrs.get("args", (Slot(0),))  # an alias of an output has none
        args = [self.argument(a, node) for a in operands]  # type: ignore[union-attr]
        options = [ast.keyword(k, self.argument(v, node)) for k, v in attrs.items()
                   if k not in ("args", "module", "path")]  # fmt: skip
        if op in UNARY:
            return ast.UnaryOp(UNARY[op](), args[0])
        if op in INFIX:
            return _infix(INFIX[op], args)
        if op == "alias":
            return args[0]
        if op == IN_ORDER:
            order = ast.keyword("memory_format", spell_name("torch.contiguous_format"))
            return ast.Call(ast.Attribute(args[0], "clone"), [], [order])
        if op == "if":  # of integers
            return ast.IfExp(*args)
        if op in ("device", "shape"):
            return ast.Attribute(args[0], op)
        if op == "size":
            return ast.Subscript(ast.Attribute(args[0], "shape"), args[1])
        if op == "[]":
            index = args[1:]
            return ast.Subscript(args[0], index[0] if len(index) == 1 else ast.Tuple(index))
        if "module" in attrs:
            return ast.Call(self.spell(self.members.modules[node]), args, options)
        if op == CALL:
            return ast.Call(self.spell(self.members.real(attrs["path"])), args, [])  # type: ignore[arg-type]
        if op.startswith("."):
            return ast.Call(ast.Attribute(args[0], op[1:]), args[1:], options)
        return ast.Call(spell_name(op), args, options)

    def spell(self, path: Path) -> ast.expr:
        return self.members.spell(self.members.real(self.block), path)

    def argument(self, argument: Any, node: Node) -> ast.expr:
        if isinstance(argument, Slot):
            value = node.inputs[argument.operand]
            assert value is not None
            return self.read(value)
        if isinstance(argument, WhileTrained):
            rate, none = ast.Constant(argument.value), ast.Constant(0.0)
            return ast.IfExp(spell_name("self.training"), rate, none)
        if isinstance(argument, ListOf):
            return ast.List([self.argument(a, node) for a in argument.items])
        if isinstance(argument, tuple):
            return ast.Tuple([self.argument(a, node) for a in argument])
        if isinstance(argument, slice):
            ends = argument.start, argument.stop, argument.step
            return ast.Slice(*[None if e is None else self.argument(e, node) for e in ends])
        return literal(argument)


def _infix(sign: type, args: Sequence[ast.expr]) -> ast.expr:
    if sign in COMPARISONS:
        return ast.Compare(args[0], [sign()], [args[1]])
    return ast.BinOp(args[0], sign(), args[1])
