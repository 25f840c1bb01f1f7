"""From a graph of Relay calls to a module: what ``partial_eval`` does, the other way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.graph import DType, Graph, Node, Tensor, Value
from serde.spec.memo import memoize, number_attributes

from . import ast, registry
from .ndarray import name_of
from .partial_eval.operators import result_count
from .partial_eval.signature import OUTPUT_NAMES

# Operators whose operands are fields of one tuple
OF_TUPLE = frozenset({"concatenate", "einsum", "meshgrid", "stack"})
# Types of attributes that TVM's registry does not declare for the operator
UNDECLARED_ATTRS = {
    "argwhere": None,
    "cumprod": "ScanopAttrs",
    "cumsum": "ScanopAttrs",
    "dft": "DFTAttrs",
    "nn.dilate": "DilateAttrs",
    "scatter_elements": "ScatterElementsAttrs",
    "scatter_nd": "ScatterNDAttrs",
    "trilu": "TriluAttrs",
    "unique": "UniqueAttrs",
    "vision.all_class_non_max_suppression": "AllClassNonMaximumSuppressionAttrs",
    "vision.non_max_suppression": "NonMaximumSuppressionAttrs",
    "vision.roi_align": "ROIAlignAttrs",
    "vision.roi_pool": "ROIPoolAttrs",
}
INDICES = 64  # int64 elements up to which a constant tensor is no weight
GLOBAL = "relay.global"  # the domain of nodes that call a function of the graph
BOOLEAN_OBJECTS = frozenset({"exclusive", "inverse"})  # which are objects, and bools


def to_module(
    graph: Graph, rename: Callable[[str], str] = str
) -> tuple[ast.Module, dict[str, Tensor]]:
    """The module of ``graph``, and the parameters of its ``main`` that are weights, by name.

    ``rename`` turns a parameter's name into one that the written form can hold.
    """
    return _Encoding(rename).make_main(graph)


class _Encoding:
    """Makes expressions of values; a value is one expression wherever it is read."""

    def __init__(self, rename: Callable[[str], str]) -> None:
        self.rename = rename
        self.exprs: dict[Value, ast.Expr] = {}
        self.ops: dict[str, ast.Op] = {}
        self.values: dict[Any, Mapping[str, Any]] = {}  # of attributes, by operator and number
        self.weights: dict[str, Tensor] = {}
        self.params: list[ast.Var] = []
        self.globals: dict[str, ast.GlobalVar] = {}
        self.in_main = False
        self.is_branch = False

    def make_main(self, graph: Graph) -> tuple[ast.Module, dict[str, Tensor]]:
        self.globals = {f.name: ast.GlobalVar(f.name) for f in graph.functions}
        functions = {f.name: self.make_function(f.body) for f in graph.functions}
        self.in_main = True
        inputs = [self.add_parameter(v, self.rename(v.name)) for v in graph.inputs]
        body = self.make_body(graph)
        attrs: Mapping[str, Any] = {OUTPUT_NAMES: tuple(v.name for v in graph.outputs)}
        main = ast.Function((*inputs, *self.params), body, attrs=attrs)
        return ast.Module({**functions, "main": main}), self.weights

    def make_function(self, graph: Graph) -> ast.Function:
        """A function of the module."""
        inputs = tuple(self.add_parameter(v, v.name) for v in graph.inputs)
        return ast.Function(inputs, self.make_body(graph), result_type(graph.outputs))

    def add_parameter(self, value: Value, name: str) -> ast.Var:
        """A variable for an input."""
        var = ast.Var(name, type_of(value))
        self.exprs[value] = var
        return var

    def make_body(self, graph: Graph) -> ast.Expr:
        """What ``graph`` returns: a tensor, or a tuple of several."""
        bound = _find_captured(graph)
        lets: list[tuple[ast.Var, ast.Expr]] = []
        for node in graph.nodes:
            self.add_node(node)
            for value in node.outputs:
                if value in bound:
                    var = ast.Var(value.name)
                    lets.append((var, self.exprs[value]))
                    self.exprs[value] = var
        outputs = [self.get_expr(v) for v in graph.outputs]
        body = outputs[0] if len(outputs) == 1 else ast.Tuple(tuple(outputs))
        for var, expr in reversed(lets):
            body = ast.Let(var, expr, body)
        return body

    def get_expr(self, value: Value) -> ast.Expr:
        """A value where it is read.

        A scalar is a new constant at each use: TVM makes an operand of a shared one, and fails on
        operands of rank 0 where shapes are dynamic.
        """
        if value.tensor is not None and value.shape == ():
            return ast.Constant(value.tensor)
        if value not in self.exprs:
            require(value.tensor is not None, f"{value.name!r} is read before it is computed")
            self.exprs[value] = self.add_constant(value)
        return self.exprs[value]

    def add_constant(self, value: Value) -> ast.Expr:
        """A few indices in place, and what is part of a function; a parameter for a weight.

        A tensor without elements is made: TVM loads none but of a first axis of size 0.
        """
        assert value.tensor is not None
        if not value.tensor.size and value.tensor.shape[0]:
            attrs: Mapping[str, Any] = {"shape": value.tensor.shape, "dtype": value.type}
            return self.make_call(Node("zeros", (), (value,), attrs))
        few = value.dtype is DType.INT64 and value.tensor.size <= INDICES
        if few or not self.in_main:
            return ast.Constant(value.tensor)
        var = ast.Var(self.rename(value.name), type_of(value))
        self.params.append(var)
        self.weights[var.name] = value.tensor
        return var

    def add_node(self, node: Node) -> None:
        if node.op == "if":
            expr = self.make_if(node)
        elif node.op == "while":
            expr = self.make_loop(node)
        else:
            expr = self.make_call(node)
        if self.is_tensor(node):
            self.exprs[node.outputs[0]] = expr
            return
        for at, value in enumerate(node.outputs):
            self.exprs[value] = ast.TupleGetItem(expr, at)

    @staticmethod
    def is_tensor(node: Node) -> bool:
        """Whether what a node becomes is its output, and not a tuple that holds it."""
        if len(node.outputs) > 1 or node.op == "while":
            return False
        inputs = [v for v in node.inputs if v is not None]
        return node.domain == GLOBAL or result_count(node.op, node.attrs, inputs, None) is None

    def make_call(self, node: Node) -> ast.Expr:
        args = tuple([self.get_expr(v) for v in node.inputs if v is not None])
        span = ast.Span(node.sources[0].name, 0, 0) if node.sources else None
        if node.domain == GLOBAL:
            return ast.Call(self.globals[node.op], args, span=span)
        op = self.ops.setdefault(node.op, ast.Op(node.op))
        if node.op in OF_TUPLE:
            args = (ast.Tuple(args),)
        return ast.Call(op, args, self.make_attributes(node), span=span)

    def make_attributes(self, node: Node) -> ast.Attrs | None:
        """The attributes of a call, those apart that have their defaults."""
        key = attrs_key(node.op)
        if key is None:
            require(not node.attrs, f"{node.op} takes no attributes")
            return None
        number = number_attributes(node.attrs)
        if number is None:
            return ast.Attrs(key, declare_values(node, key))
        values = memoize(self.values, (node.op, number), lambda: declare_values(node, key))
        return ast.Attrs(key, values)

    def make_if(self, node: Node) -> ast.Expr:
        """An ``if``; in a branch of another it is put in a function, because TVM's virtual machine
        loses the result of an ``if`` directly inside a branch.
        """
        then, otherwise = node.attrs["then"], node.attrs["otherwise"]
        assert isinstance(then, Graph) and isinstance(otherwise, Graph)
        (cond,) = node.inputs
        assert cond is not None
        condition, inner = self.get_expr(cond), self.is_branch
        if not inner:
            return ast.If(condition, self.make_branch(then), self.make_branch(otherwise))
        chosen, itself = ast.Var("chosen", type_of(cond)), ast.Var("choice")
        body = ast.If(chosen, self.make_branch(then), self.make_branch(otherwise))
        function = ast.Function((chosen,), body, result_type(node.outputs))
        return ast.Let(itself, function, ast.Call(itself, (condition,)))

    def make_branch(self, graph: Graph) -> ast.Expr:
        """The body of a graph that runs conditionally."""
        outer, self.is_branch = self.is_branch, True
        expr = self.make_body(graph)
        self.is_branch = outer
        return expr

    def make_loop(self, node: Node) -> ast.Expr:
        """``let %loop = fn (…) { if (%on) { …; %loop(…) } else { (…) } }; %loop(…)``."""
        body = node.attrs["body"]
        assert isinstance(body, Graph)
        itself = ast.Var("while_loop")
        turn, on, *states = (self.add_parameter(v, v.name) for v in body.inputs)
        step = ast.Var("step")
        after = ast.Call(ast.Op("add"), (turn, make_int64(1)))
        fields = [ast.TupleGetItem(step, at) for at in range(len(body.outputs))]
        branch = ast.Let(step, self.make_branch(body), ast.Call(itself, (after, *fields)))
        ret = ast.TupleType(tuple(type_of(v) for v in body.inputs[2:]))
        choice = ast.If(on, branch, ast.Tuple(tuple(states)))
        function = ast.Function((turn, on, *states), choice, ret)
        start = [self.get_expr(v) for v in node.inputs if v is not None]
        return ast.Let(itself, function, ast.Call(itself, (make_int64(0), *start)))


def make_int64(value: int) -> ast.Constant:
    """A count."""
    return ast.Constant(Tensor.of(np.array(value, np.int64)))


def _find_captured(graph: Graph) -> set[Value]:
    """Values of ``graph`` that its subgraphs read: named there, for the text knows no other way."""
    computed = {v for node in graph.nodes for v in node.outputs}
    values: set[Value] = set()
    stack = [sub for node in graph.nodes for sub in node.graphs()]
    while stack:
        sub = stack.pop()
        read = [v for node in sub.nodes for v in node.inputs if v is not None]
        values.update(v for v in (*read, *sub.outputs) if v in computed)
        stack.extend(inner for node in sub.nodes for inner in node.graphs())
    return values


def type_of(value: Value) -> ast.TensorType:
    """The type of a value; symbolic dimensions become ``?``."""
    sizes = tuple(d if isinstance(d, int) else None for d in value.ranked_shape)
    return ast.TensorType(sizes, name_of(value.type))


def result_type(values: Sequence[Value]) -> ast.Type:
    """The type of a tensor, or of a tuple of several."""
    types = tuple(type_of(v) for v in values)
    return types[0] if len(types) == 1 else ast.TupleType(types)


def attrs_key(op: str) -> str | None:
    """The type of the attributes of ``op``."""
    if op in UNDECLARED_ATTRS:
        undeclared = UNDECLARED_ATTRS[op]
        return undeclared and registry.PREFIX + undeclared
    require(registry.is_registered(op), f"TVM has no operator {op}")
    return registry.attrs_key(op)


def declare_values(node: Node, key: str) -> Mapping[str, Any]:
    """The values of a call's attributes, but for defaults; ``key`` is the type they are of."""
    declared = registry.fields(key) or {}
    unknown = sorted(node.attrs.keys() - declared.keys())
    require(not unknown, f"{node.op} has no {', '.join(unknown)}")
    unset = (n for n, f in declared.items() if f.default is registry.REQUIRED and f.kind in "of")
    values: dict[str, Any] = dict.fromkeys(unset) if key != registry.ARANGE else {}
    values |= {n: _to_declared(n, declared[n].kind, v) for n, v in node.attrs.items()}
    return registry.drop_defaults(key, values)


def _to_declared(name: str, kind: str, value: Any) -> Any:
    if kind == "b" or name in BOOLEAN_OBJECTS:
        return bool(value)
    if kind == "d":
        return float(value)
    if isinstance(value, DType):
        return name_of(value)
    return value
