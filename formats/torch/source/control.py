"""Branches and loops as statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from serde.ir.graph import DType, Graph, Node, Value

from ..ops.control_flow import always_goes_on
from ..ops.higher_order import COND, WHILE, is_read, without_aliases
from ..target import Slot
from .trees import return_last, spell_name


def _emit_if(body: Any, node: Node) -> Iterator[ast.stmt]:
    test = body.argument(Slot(0), node)
    names = [body.name_result(v, node) for v in node.outputs]
    branches = []
    for key in ("then_branch", "else_branch"):
        branch: Any = node.attrs[key]
        inner = body.enter(without_aliases(branch), ())
        branches.append(inner.list_statements(names, inner.graph.outputs) or [ast.Pass()])
    body.leave(node)
    yield ast.If(test, *branches)


def _emit_loop(body: Any, node: Node) -> Iterator[ast.stmt]:
    graph = without_aliases(node.attrs["body"])  # type: ignore[arg-type]
    arguments: Any = node.attrs["args"]
    header, states, _ = arguments
    turn, going, *inner_states = graph.inputs
    is_for, goes_on = node.attrs["kind"] == "for", always_goes_on(graph)
    head: Any = None if header is None else body.argument(header, node)
    starts = [body.argument(s, node) for s in states]
    names = [body.name_result(v, node) for v in node.outputs[: len(states)]]
    flag = None if goes_on else body.variables.claim("going")
    rows = [body.variables.claim("rows") for _ in node.outputs[len(states) :]]
    is_turn_read = is_read(turn, graph)
    counts = not is_for and is_turn_read
    step = body.variables.claim("i") if is_turn_read else "_"
    yield from assign(names, starts)
    for name in rows:
        yield ast.Assign([ast.Name(name)], ast.List([]))
    if counts:
        yield ast.Assign([ast.Name(step)], _call("torch.zeros", ast.Tuple([]), dtype=DType.INT64))
    if not is_for and flag is not None:
        yield ast.Assign([ast.Name(flag)], head or ast.Constant(True))
    inner = body.enter(graph, zip([turn, *inner_states], [step, *names], strict=True))
    if counts:  # it is read once more, at the end of the turn
        inner.reusable.discard(turn)
    inner.expressions[going] = _call("torch.tensor", ast.Constant(True))
    targets = [*names] if flag is None else [flag, *names]
    ends = graph.outputs[1 : 1 + len(states)] if flag is None else graph.outputs[: 1 + len(states)]
    inside = inner.list_statements(
        targets, ends, list(zip(rows, graph.outputs[1 + len(states) :], strict=True))
    )
    if counts:
        following = ast.BinOp(ast.Name(step), ast.Add(), ast.Constant(1))
        inside.append(ast.Assign([ast.Name(step)], following))
    if is_for and flag is not None:
        inside.append(ast.If(ast.UnaryOp(ast.Not(), ast.Name(flag)), [ast.Break()], []))
    inside = inside or [ast.Pass()]
    if is_for:
        yield ast.For(ast.Name(step), head, inside, [])
    else:
        yield ast.While(ast.Name(flag) if flag else head or ast.Constant(True), inside, [])
    body.leave(node)
    for name in (flag, step, *rows):
        body.variables.free(name)
    for name, value, row in zip(rows, node.outputs[len(states) :],
                                graph.outputs[1 + len(states) :], strict=True):  # fmt: skip
        stacked: ast.expr = _call("torch.stack", ast.Name(name))
        if not node.attrs["is_never_empty"]:
            stacked = ast.IfExp(ast.Name(name), stacked, _make_empty(row))
        if value in body.last:
            yield ast.Assign([ast.Name(body.name_result(value, node))], stacked)


def _emit_cond(body: Any, node: Node) -> Iterator[ast.stmt]:
    """``torch.cond``, whose functions take the tensors that they read."""
    read = body.read_by(replace(node, inputs=node.inputs[1:]))
    names = [body.variables.names[v] for v in read if v.dtype and v in body.variables.names]
    test = body.argument(Slot(0), node)
    functions = [_define(body, body.enter(g, ()), key, names)
                 for key, g in node.attrs.items() if isinstance(g, Graph)]  # fmt: skip
    yield from functions
    operands = [ast.Tuple([ast.Name(name) for name in names])] if names else []
    called = [ast.Name(function.name) for function in functions]
    yield body.assign(node, ast.Call(spell_name(COND), [test, *called, *operands], []))
    for function in functions:
        body.variables.free(function.name)


def _emit_while_loop(body: Any, node: Node) -> Iterator[ast.stmt]:
    """``while_loop``, whose functions take what it carries."""
    starts = body.argument(node.attrs["args"][0], node)  # type: ignore[index]
    functions = []
    for key in ("cond_fn", "body_fn"):
        graph: Any = node.attrs[key]
        inner = body.enter(graph, ())
        names = [inner.variables.assign(v, stem or None, "state")
                 for v, stem in zip(graph.inputs, node.attrs["stems"], strict=True)]  # type: ignore[arg-type]  # fmt: skip
        functions.append(_define(body, inner, key, names))
    yield from functions
    called = [ast.Name(function.name) for function in functions]
    call = ast.Call(spell_name("torch._higher_order_ops.while_loop"), [*called, starts], [])
    yield body.assign(node, call)
    for function in functions:
        body.variables.free(function.name)


def _define(body: Any, inner: Any, stem: str, names: Sequence[str]) -> ast.FunctionDef:
    """A function of the variables ``names`` that returns what a body computes."""
    statements = [*inner.statements()]
    result: Any = inner.results()
    if stem == "body_fn" and not isinstance(result.value, ast.Tuple):
        result = ast.Return(ast.Tuple([result.value]))
    arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    return ast.FunctionDef(
        body.variables.claim(stem), arguments, return_last([*statements, result]), []
    )


def _make_empty(row: Value) -> ast.expr:
    """No rows of a type; sizes that are not known are 0."""
    shape = (0, *(d if isinstance(d, int) else 0 for d in row.shape or ()))
    sizes = ast.Tuple([ast.Constant(d) for d in shape])
    return _call("torch.empty", sizes, dtype=row.dtype)


def _call(name: str, *args: ast.expr, dtype: DType | None = None) -> ast.expr:
    is_default = dtype in (None, DType.FLOAT32)
    option = [] if is_default else [ast.keyword("dtype", spell_name(f"torch.{dtype.value}"))]  # type: ignore[union-attr]
    return ast.Call(spell_name(name), list(args), option)


CONTROL: Mapping[str, Callable[[Any, Node], Iterator[ast.stmt]]] = {
    "if": _emit_if, "loop": _emit_loop, COND: _emit_cond, WHILE: _emit_while_loop,
}  # fmt: skip


def assign(names: Sequence[str], values: Sequence[ast.expr]) -> Iterator[ast.stmt]:
    """All names set at once, without those that have their value."""
    pairs = [(n, v) for n, v in zip(names, values, strict=True)
             if not (isinstance(v, ast.Name) and v.id == n)]  # fmt: skip
    if len(pairs) == 1:
        yield ast.Assign([ast.Name(pairs[0][0])], pairs[0][1])
    elif pairs:
        targets: list[ast.expr] = [ast.Name(n) for n, _ in pairs]
        yield ast.Assign([ast.Tuple(targets)], ast.Tuple([v for _, v in pairs]))
