"""From a module to a graph of operators: ``main`` is evaluated on symbols.

Functions, closures, tuples, data of algebraic types and references are done away with on the way: a
call is the callee's body, a match takes the clause its data fit, a projection takes its field. What
depends on an input stays: operators become nodes, ``if`` becomes a node with two subgraphs, and
recursion in tail position a loop (``partial_eval/loops.py``).

Nothing recurses: tasks (``walk.run``) keep their own stack, so chains of any length will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serde.errors import ConversionError, Unconvertible, require
from serde.ir.graph import Call, Graph, Node, Source, Tensor, Value

from .. import ast
from ..ast_walk import Task, post_order, run
from .calls import TRANSPARENT, attributes, result_count
from .constants import known
from .diagnostics import STAGE, Budget, Problems, Refusal
from .functions import function_name, kept_call
from .loops import Recursion, as_loop, recursion
from .mutual_recursion import joined
from .recursion import Linear, as_loops, linear
from .values import (
    REFUSED,
    Cell,
    Closure,
    Data,
    Frame,
    GraphBuilder,
    Primitive,
    ReadsRefused,
    Symbolic,
    alike,
    common,
    declare,
    dtype_of,
    fits,
    named,
    output_names,
    rebuilt,
    refuse_parameter,
    require_count,
    shape_of,
    tensors,
    told_names,
)

DEEPEST_IF = 28  # protobuf reads messages 100 deep; a subgraph takes three levels
DEEPEST_CALL = 2000  # calls of functions inside themselves
DEEPEST_KEPT = 16  # calls inside each other that stay calls


def elaborate(
    module: ast.Module,
    params: Mapping[str, Tensor] | None = None,
    entry: str = "main",
    name: str = "main",
    refusal: Refusal = lambda node: None,
) -> Graph:
    """The graph ``entry`` computes; its parameters among ``params`` become constants.

    Raises:
        Unconvertible: naming the constructs that have no place in a graph, and then what
            ``refusal`` says of the nodes of the rest.
    """
    elaborator = Elaborator(joined(module), name, entry)
    try:
        graph: Graph = run(elaborator.main(entry, params or {}))
    except ConversionError as error:
        elaborator.problems.note(error, entry)
    if elaborator.problems:
        nodes = elaborator.makers.values()
        raise Unconvertible(STAGE, elaborator.problems.listing(nodes, refusal))
    return graph


class Elaborator:
    """One evaluation of a module."""

    def __init__(self, module: ast.Module, name: str, entry: str) -> None:
        self.module, self.root = module, GraphBuilder(name)
        self.makers: dict[Value, Node] = {}
        self.numbers: dict[Value, Any] = {}
        self.constants: dict[ast.Expr, Value] = {}
        self.counts: Counter[str] = Counter()
        self.active: Counter[ast.Function] = Counter()
        self.recursions: dict[ast.Function, Recursion | None] = {}
        self.chains: dict[ast.Function, Linear | None] = {}
        self.function = entry
        self.recursing = 0  # calls of functions within themselves
        self.problems = Problems()
        self.budget = Budget(self.size)
        self.calls: tuple[Call, ...] = ()  # whose bodies are being evaluated

    # The module

    def size(self) -> int:
        """How many expressions the module has."""
        return sum(1 for _ in post_order(*self.module.functions.values()))

    def tensors(self, value: Symbolic, what: str) -> list[Value]:
        """The tensors in ``value``; those that tuples share count each time."""
        return tensors(value, what, lambda steps: self.budget.charge(self.function, steps))

    def main(self, entry: str, params: Mapping[str, Tensor]) -> Task[Any]:
        function = self.module.functions[entry]
        frame = Frame(self.root)
        for param in function.params:
            try:
                frame.values[param] = self.parameter(param, params.get(param.name))
            except ConversionError as error:
                frame.values[param] = self.problems.note(error, entry)
        result = yield self.value(function.body, frame)
        outputs = self.tensors(result, f"what @{entry} returns")
        require(outputs, f"@{entry} returns no tensor, and a model computes at least one")
        names = told_names(function, outputs) or output_names(result)
        named_outputs = self.outputs(outputs, names)
        return self.root.build(named_outputs, metadata={"relay.tvm": self.module.tvm})

    def parameter(self, param: ast.Var, tensor: Tensor | None) -> Symbolic:
        if tensor is not None:
            name = self.root.names.claim(param.name)
            return Value(name, tensor.dtype, tensor.shape, tensor, given=True)
        return self.input(param.name, param.annotation or param.type)

    def input(self, name: str, type_: ast.Type | None) -> Symbolic:
        if isinstance(type_, ast.TupleType):
            return tuple(self.input(f"{name}.{i}", t) for i, t in enumerate(type_.fields))
        if isinstance(type_, ast.TensorType):
            shape = shape_of(type_.shape, name)
            return self.root.input(name, dtype_of(type_.dtype), shape)
        refuse_parameter(name, type_)
        return self.root.input(name)

    def outputs(self, values: Sequence[Value], names: Sequence[str]) -> list[Value]:
        """Each a value of its own that a node computes, under its name.

        One of the name that an input or another output has is that value itself.
        """
        taken: dict[Value, str] = {v: v.name for v in self.root.inputs}
        found = []
        for value, name in zip(values, names, strict=True):
            if taken.get(value) == name:
                found.append(value)
                continue
            if value in taken or value not in self.makers:
                value = self.node("copy", [value], {}, 1, Frame(self.root))[0]
            self.root.names.relabel(value, name)
            taken[value] = name
            found.append(value)
        return found

    # Expressions

    def quick(self, expr: ast.Expr, frame: Frame) -> Symbolic | None:
        """What needs no work: what is known already, and leaves."""
        found = frame.get(expr)
        if found is not None:
            return found
        if isinstance(expr, ast.Constant):
            return self.constant(expr)
        if isinstance(expr, ast.GlobalVar):
            function = self.module.functions.get(expr.name)
            require(function is not None, f"calls @{expr.name}, which the module does not define")
            assert function is not None
            return Closure(function, None, expr.name, expr.name)
        if isinstance(expr, ast.Op):
            return Primitive(expr)
        if isinstance(expr, ast.Constructor):
            return Primitive(expr) if expr.inputs else Data(expr.name, expr.of, ())
        if isinstance(expr, ast.Function):
            return Closure(expr, frame, frame.name)
        if isinstance(expr, ast.Var):
            raise ConversionError(f"reads %{expr.name}, which nothing binds")
        return None

    def value(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        """What ``expr`` comes to; where that is refused, it is noted, and the rest goes on."""
        try:
            found = self.quick(expr, frame)
            if found is not None:
                return found
            self.budget.charge(self.function)
            found = yield EVALUATE[type(expr)](self, expr, frame)
        except ConversionError as error:
            if self.recursing:  # what goes on might do so twice at every depth
                raise
            found = self.problems.note(error, self.function, expr)
        frame.values[expr] = found
        return found

    def values(self, exprs: Sequence[ast.Expr], frame: Frame) -> Task[Any]:
        found = []
        for expr in exprs:
            ready = self.quick(expr, frame)
            found.append((yield self.value(expr, frame)) if ready is None else ready)
        if any(v is REFUSED for v in found):
            raise ReadsRefused
        return found

    def constant(self, expr: ast.Constant) -> Value:
        if expr not in self.constants:
            self.constants[expr] = self.root.const(expr.tensor)
        return self.constants[expr]

    def fields(self, expr: ast.Tuple, frame: Frame) -> Task[Any]:
        return tuple((yield self.values(expr.fields, frame)))

    def project(self, expr: ast.TupleGetItem, frame: Frame) -> Task[Any]:
        whole = yield self.value(expr.tuple, frame)
        require(isinstance(whole, tuple), f"takes field {expr.index} of {named(whole)}")
        require(expr.index < len(whole), f"takes field {expr.index} of {len(whole)}")
        return whole[expr.index]

    def lets(self, expr: ast.Expr, frame: Frame) -> Task[Any]:
        """Bind a chain of variables; the expression behind them is left."""
        while isinstance(expr, ast.Let):
            if isinstance(expr.value, ast.Function):
                made: Symbolic = Closure(expr.value, frame, expr.var.name, expr.var)
            else:
                made = yield self.value(expr.value, frame)
            frame.values[expr.var] = made
            expr = expr.body
        return expr

    def let(self, expr: ast.Let, frame: Frame) -> Task[Any]:
        body = yield self.lets(expr, frame)
        return (yield self.value(body, frame))

    def call(self, expr: ast.Call, frame: Frame) -> Task[Any]:
        target = yield self.value(expr.op, frame)
        args = yield self.values(expr.args, frame)
        if isinstance(target, Closure):
            return (yield self.invoke(target, args, frame))
        if isinstance(target, Data) and not args:  # a constructor of nothing
            return target
        require(isinstance(target, Primitive), f"calls {named(target)}")
        if isinstance(target.target, ast.Constructor):
            return Data(target.target.name, target.target.of, tuple(args))
        return self.operator(target.target.name, args, expr, frame)

    def invoke(self, closure: Closure, args: list[Symbolic], frame: Frame) -> Task[Any]:
        """The body of a function, or a loop."""
        require_count(args, closure.function.params, "arguments")
        outside = self.function, self.calls
        self.function = closure.name or frame.name
        self.active[closure.function] += 1
        again = self.active[closure.function] > 1
        self.recursing += again
        try:
            return (yield self.evaluate(closure, args, frame))
        finally:
            self.recursing -= again
            self.active[closure.function] -= 1
            self.function, self.calls = outside

    def evaluate(self, closure: Closure, args: list[Symbolic], frame: Frame) -> Task[Any]:
        function = closure.function
        if self.recursion(closure) is not None:
            looped = yield as_loop(self, closure, args, frame)
            if looped is not None:
                return looped
        chain = self.chain(closure)
        if chain is not None:
            looped = yield as_loops(self, chain, closure, args, frame)
            if looped is not None:
                return looped
        deep = self.recursing > DEEPEST_CALL
        require(not deep, f"@{closure.name} calls itself to a depth that the module does not fix")
        if len(self.calls) < DEEPEST_KEPT and self.active[function] == 1:
            self.calls += kept_call(closure, args)
        inner = Frame(frame.graph, closure.frame, function_name(closure))
        inner.values.update(zip(function.params, args, strict=True))
        return (yield self.value(function.body, inner))

    def recursion(self, closure: Closure) -> Recursion | None:
        """How a function calls itself, if it does."""
        if closure.itself is None:
            return None
        if closure.function not in self.recursions:
            self.recursions[closure.function] = recursion(closure.function, closure.itself)
        return self.recursions[closure.function]

    def chain(self, closure: Closure) -> Linear | None:
        """How a function goes on with the result of its one call, if it does."""
        if closure.itself is None or self.recursion(closure) is not None:
            return None
        if closure.function not in self.chains:
            self.chains[closure.function] = linear(closure.function, closure.itself)
        return self.chains[closure.function]

    def choice(self, expr: ast.If, frame: Frame) -> Task[Any]:
        cond = yield self.value(expr.cond, frame)
        return (yield self.choose(cond, frame, (expr.then, expr.otherwise), self.value))

    def choose(
        self, cond: Value, frame: Frame, branches: tuple[ast.Expr, ast.Expr],
        task: Callable[[Any, Frame], Task[Any]],
    ) -> Task[Any]:  # fmt: skip
        """``task`` of one of two branches, in subgraphs unless ``cond`` is known."""
        require(isinstance(cond, Value), f"chooses by {named(cond)}")
        truth = known(cond, self.makers, self.numbers)
        if truth is not None:
            return (yield task(branches[0] if truth else branches[1], frame))
        why = f", as @{self.function} calls itself in a way no loop can" if self.recursing else ""
        require(frame.graph.depth < DEEPEST_IF, f"ifs nest more than {DEEPEST_IF} deep{why}")
        made = []
        for name, body in zip(("then", "else"), branches, strict=True):
            inner = Frame(frame.graph.child(name), frame, frame.name)  # type: ignore[arg-type]
            result = yield task(body, inner)
            made.append(
                (inner.graph, result, self.tensors(result, "what a branch of an if returns"))
            )
        (then, result, first), (other, against, second) = made
        forms = f"{named(result)} or {named(against)} of another form"
        require(alike(result, against), f"an if returns {forms}, which depends on its condition")
        graphs = {"then": then.build(first), "otherwise": other.build(second)}
        outputs = self.node("if", [cond], graphs, len(first), frame)
        for value, a, b in zip(outputs, first, second, strict=True):
            value.dtype, value.shape = a.dtype or b.dtype, common(a.shape, b.shape)
        return rebuilt(result, iter(outputs))

    def match(self, expr: ast.Match, frame: Frame) -> Task[Any]:
        body = yield self.clause(expr, frame)
        return (yield self.value(body, frame))

    def clause(self, expr: ast.Match, frame: Frame) -> Task[Any]:
        """Bind the first pattern that fits; its body is left."""
        data = yield self.value(expr.data, frame)
        for clause in expr.clauses:
            if fits(clause.pattern, data, frame):
                return clause.body
        raise ConversionError("no clause of a match fits its data")

    def new(self, expr: ast.RefCreate, frame: Frame) -> Task[Any]:
        return Cell((yield self.value(expr.value, frame)), frame.graph)

    def read(self, expr: ast.RefRead, frame: Frame) -> Task[Any]:
        cell = yield self.value(expr.ref, frame)
        require(isinstance(cell, Cell), f"reads {named(cell)} as a reference")
        return cell.content

    def write(self, expr: ast.RefWrite, frame: Frame) -> Task[Any]:
        cell = yield self.value(expr.ref, frame)
        require(isinstance(cell, Cell), f"writes {named(cell)} as a reference")
        here = cell.graph is frame.graph
        require(here, "a reference made outside is written inside an if or a loop")
        cell.content = yield self.value(expr.value, frame)
        return ()

    # Nodes

    def operator(self, op: str, args: list[Symbolic], expr: ast.Call, frame: Frame) -> Symbolic:
        if op in TRANSPARENT and args:
            return args[0]
        inputs = [v for arg in args for v in self.tensors(arg, f"an operand of {op}")]
        attrs = attributes(op, expr.attrs)
        count = result_count(op, attrs, inputs, expr.type)
        self.budget.charge(self.function, count or 0)
        layer = expr.span.source if expr.span is not None and expr.span.line == 0 else ""
        outputs = self.node(op, inputs, attrs, 1 if count is None else count, frame, layer)
        if count is None:
            declare(outputs[0], expr.type)
            return outputs[0]
        if isinstance(expr.type, ast.TupleType) and len(expr.type.fields) == count:
            for value, type_ in zip(outputs, expr.type.fields, strict=True):
                declare(value, type_)
        return tuple(outputs)

    def node(
        self, op: str, inputs: Sequence[Value], attrs: Mapping[str, Any], count: int,
        frame: Frame, layer: str = "",
    ) -> list[Value]:  # fmt: skip
        """Emit one; its source bears the layer's name, or the function's and a number."""
        stem = f"{frame.name}/{layer or op}" if frame.name else layer or op
        number = self.counts[stem]
        self.counts[stem] += 1
        name = f"{stem}_{number}" if number or not layer else stem
        graph = frame.graph
        with graph.at(Source("relay", op, name, calls=self.calls)):
            made = graph.emit(op, inputs, attrs, count)
        outputs = [made] if count == 1 else list(made)
        self.makers.update(dict.fromkeys(outputs, graph.nodes[-1]))
        return outputs


EVALUATE: dict[type[ast.Expr], Callable[[Elaborator, Any, Frame], Task[Any]]] = {
    ast.Tuple: Elaborator.fields,
    ast.TupleGetItem: Elaborator.project,
    ast.Let: Elaborator.let,
    ast.Call: Elaborator.call,
    ast.If: Elaborator.choice,
    ast.Match: Elaborator.match,
    ast.RefCreate: Elaborator.new,
    ast.RefRead: Elaborator.read,
    ast.RefWrite: Elaborator.write,
}
