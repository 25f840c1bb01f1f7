"""Model-local functions: kept where the target has them, otherwise inlined at each call.

A call is emitted at the opset its function's body is written in, so a body of another opset than
the model's needs nothing of its own.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from serde.errors import ConversionError, Unconvertible, require
from serde.ir.budget import NODES
from serde.ir.builder import Builder
from serde.ir.graph import Attr, AttrRef, Call, Function, Graph, Node, Value
from serde.rewrite import custom_ops
from serde.spec import schema
from serde.spec.source_checks import refuse_illegal_node

Env = MutableMapping[Value, "Value | None"]
DEEPEST = 64  # calls within calls and subgraphs


class FunctionTable(dict[tuple[str, str], Function]):
    """The functions of a module, by the domain and operator their calls bear.

    ``left`` is how many nodes may still be inlined: calls of calls grow without bound.
    ``traced``: inlined nodes record their call (``Source.calls``), so that
    ``outline.py`` can gather them again.
    """

    def __init__(self, graph: Graph, traced: bool = False) -> None:
        super().__init__(((f.domain, f.name), f) for f in graph.functions)
        self.traced = traced
        self._sizes: dict[tuple[str, str], int] = {}
        node_count = len(graph.nodes) + sum(len(f.body.nodes) for f in graph.functions)
        self.left = NODES.of(node_count)

    def spend(self, node: Node) -> None:
        """Refuse a call that would become more nodes than are left."""
        size = self._size(node, 0)
        require(size <= self.left, f"function {node.op!r} expands to {size} nodes, too many")
        self.left -= size

    def _size(self, node: Node, depth: int) -> int:
        """How many nodes a node becomes."""
        key = node.domain, node.op
        called = f"function {node.op!r}" if key in self else node.op
        require(depth < DEEPEST, f"{called} calls itself, or nests too deep")
        if key in self and key not in self._sizes:
            self._sizes[key] = self._total(self[key].body, depth)
        node_size = self._sizes.get(key, 1)
        return node_size + sum(self._total(body, depth) for body in node.graphs())

    def _total(self, graph: Graph, depth: int) -> int:
        return 1 + sum(self._size(n, depth + 1) for n in graph.nodes)


def inline_call(
    g: Any, known: FunctionTable, node: Node, inputs: tuple[Value | None, ...], depth: int = 0
) -> tuple[Value | None, ...]:
    """Emit the body of the function ``node`` calls; return its outputs."""
    function = known[node.domain, node.op]
    if depth == 0:
        known.spend(node)
    require(depth < DEEPEST, f"function {function.name!r} calls itself, or nests too deep")
    body = function.body
    require(len(inputs) <= len(body.inputs), f"{len(inputs)} inputs for {len(body.inputs)}")
    attrs = {n: v for n, v in {**function.attrs, **node.attrs}.items() if v is not None}
    env: Env = dict.fromkeys(body.inputs)
    env.update(zip(body.inputs, inputs, strict=False))
    with g.at_opset(body.opset), _record_call(g, known, function, inputs):
        _emit_nodes(g, known, body, attrs, env, depth)
    return tuple(_read(g, v, env) for v in body.outputs)


def _record_call(
    g: Any, known: FunctionTable, function: Function, inputs: Sequence[Value | None]
) -> AbstractContextManager[None]:  # fmt: skip
    """Have the nodes of the block tell which call they are of, if they are to."""
    if not known.traced:
        return nullcontext()
    pairs = zip(inputs, function.body.inputs, strict=False)
    call = Call(function.name, tuple((v, param.name) for v, param in pairs if v is not None))
    return g.in_call(call)  # type: ignore[no-any-return]


def emit_subgraph(g: Any, body: Graph, inputs: Sequence[Value], opset: int) -> tuple[Any, ...]:
    """Emit the nodes of a subgraph of ``opset`` for these inputs; return its outputs.

    Types are inferred anew, so nodes that could not be legalized for want of one are tried again.
    """
    env: Env = {v: v for v in _reads(body)}  # of the graphs around it as they are
    env.update(zip(body.inputs, inputs, strict=True))
    with g.at_opset(opset):
        _emit_nodes(g, FunctionTable(body), body, {}, env, 0)
    return tuple(_read(g, v, env) for v in body.outputs)


def _reads(graph: Graph) -> Iterator[Value]:
    """Every value the nodes of a graph and its subgraphs read."""
    yield from graph.outputs
    for node in graph.nodes:
        yield from (v for v in node.inputs if v is not None)
        for inner in node.graphs():
            yield from _reads(inner)


def _emit_nodes(
    g: Any, known: FunctionTable, graph: Graph, args: Any, env: Env, depth: int
) -> None:
    for node in graph.nodes:
        g.resume()
        inputs = tuple(None if v is None else _read(g, v, env) for v in node.inputs)
        attrs = {
            n: _body(g, known, v, args, env, depth) if isinstance(v, Graph) else v
            for n, v in _resolve_attributes(node.attrs, args).items()
        }
        results = _emit(g, known, replace(node, attrs=MappingProxyType(attrs)), inputs, depth)
        env.update(zip(node.outputs, results, strict=False))


def _emit(
    g: Any, known: FunctionTable, node: Node, inputs: tuple[Value | None, ...], depth: int
) -> tuple[Value | None, ...]:
    if (node.domain, node.op) in known:
        return inline_call(g, known, node, inputs, depth + 1)
    if node.domain or g.readers.table(node, g.current_opset) is not None:
        return custom_ops.read(g, node, inputs)
    if node.op == "Constant":
        return (constant(g, node),)
    node = g.readers.standardize(node)
    refuse_illegal_node(g.current_opset, node)
    result = g.emit(node.op, inputs, node.attrs, len(node.outputs))
    return result if isinstance(result, tuple) else (result,)


def _read(g: Any, value: Value, env: Env) -> Value | None:
    if value in env:
        return env[value]
    if value.tensor is None:
        raise ConversionError(f"the function reads {value.name!r}, which nothing computes")
    const = env[value] = g.adopt(value)
    return const  # type: ignore[no-any-return]


def _resolve_attributes(attrs: Mapping[str, Attr], args: Mapping[str, Attr]) -> dict[str, Any]:
    """Attributes with references to the call's own replaced; what the call left out is left out."""
    values = {n: args.get(v.name) if isinstance(v, AttrRef) else v for n, v in attrs.items()}
    return {n: v for n, v in values.items() if v is not None}


def _body(g: Any, known: FunctionTable, graph: Graph, args: Any, outer: Env, depth: int) -> Graph:
    """A subgraph of a function's body."""
    inner, env = g.child(graph.name), ChainMap({}, outer)
    for value in graph.inputs:
        env[value] = inner.input(value.name, value.dtype, value.shape, value.container)
    with inner.at_opset(g.current_opset):
        _emit_nodes(inner, known, graph, args, env, depth + 1)
    outputs = [_read(inner, v, env) for v in graph.outputs]
    require(None not in outputs, "a subgraph returns an input that the call leaves out")
    return inner.build(outputs)  # type: ignore[no-any-return]


def rewrite_functions(
    graph: Graph, opset: int, rewrite: Callable[[Graph], Graph]
) -> tuple[Function, ...] | None:
    """Every function with its body rewritten, None where one has to be inlined instead.

    Bodies have no types, so a change that depends on a rank cannot be made in them.
    """
    functions = []
    for function in graph.functions:
        try:
            body = rewrite(function.body)
        except Unconvertible:
            return None
        functions.append(replace(function, body=replace(body, opset=opset)))
    return tuple(functions)


def constant(builder: Builder, node: Node) -> Value:
    """The Value a Constant node stands for, in any of its attribute forms."""
    require(len(node.attrs) == 1, f"a Constant with {len(node.attrs)} attributes instead of one")
    ((form, data),) = node.attrs.items()
    require(not isinstance(data, AttrRef), "a Constant whose value the call of a function gives")
    reason = schema.illegal_attributes_reason(schema.operator("Constant"), node.attrs)
    require(reason is None and len(node.outputs) == 1, reason or "a Constant without output")
    return builder.const(data, schema.CONSTANT_FORMS.get(form), node.outputs[0].name or "const")
