"""Calls of a source's functions as model-local functions of a finished graph.

Formats that have functions spell them out as they read (``Source.calls`` tells which nodes a call
became), so that types are known, constants folded and operators lowered across their borders. Here
the nodes of each call are gathered into a function again. Calls that became the same call one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from types import MappingProxyType
from typing import Any, Literal

from serde.ir.builder import Names
from serde.ir.graph import EMPTY, Call, Function, Graph, Node, Source, Tensor, Value
from serde.ir.map_nodes import map_bodies, map_nodes
from serde.ir.replace_uses import replace_inputs

Keep = Literal["keep", "all", "inline"]
KEEP = ("keep", "all", "inline")  # functions that have a name, those of a fusion too, none
EMBEDDED = 64  # elements of an integer constant that is part of a function, not given to it


def outline_calls(
    graph: Graph, keep: Keep, domain: str | None = None, used_names: Iterable[str] = ()
) -> Graph:  # fmt: skip
    """``graph`` with functions in place of what their calls became.

    Their ``domain`` is the format they came from, unless given; none has a name of ``used_names``.
    """
    if keep == "inline" or not any(s.calls for n in graph.all_nodes() for s in n.sources):
        return graph
    state = _Outlining(keep, domain)
    state.names.used.update(used_names)
    done = state.graph(graph, 0)
    funcs = [replace(f, body=replace(f.body, opset=graph.opset)) for f in state.functions.values()]
    imports = MappingProxyType({**graph.imports, **{f.domain: 1 for f in funcs}})
    return replace(done, functions=(*graph.functions, *funcs), imports=imports)


def forget_calls(graph: Graph, keep: Keep) -> Graph:
    """``graph`` without the calls that ``outline_calls`` leaves as nodes: passes cross these."""
    if keep == "all" or not any(s.calls for n in graph.all_nodes() for s in n.sources):
        return graph
    return map_nodes(graph, lambda node: _forget_calls(node, keep))


def _forget_calls(node: Node, keep: Keep) -> Node:
    sources = []
    for source in node.sources:
        calls = () if keep == "inline" else tuple(c for c in source.calls if not c.fused)
        sources.append(replace(source, calls=calls) if calls != source.calls else source)
    return replace(node, sources=tuple(sources))


class _Outlining:
    def __init__(self, keep: Keep, domain: str | None) -> None:
        self.keep, self.domain = keep, domain
        self.names = Names()
        self.functions: dict[Hashable, Function] = {}

    def path(self, node: Node) -> tuple[Call, ...]:
        """The calls a node is inside of, outermost first: those that all its sources share."""
        first, *others = (s.calls for s in node.sources) if node.sources else ((),)
        shared = takewhile(lambda c: all(c in o for o in others), first)
        return tuple(c for c in shared if self.keep == "all" or not c.fused)

    def graph(self, graph: Graph, depth: int) -> Graph:
        """A graph inside ``depth`` calls, with the further calls of its nodes as nodes."""
        nodes = self.outline_nodes(graph.nodes, depth, graph.uses())
        return replace(graph, nodes=tuple(nodes))

    def outline_nodes(
        self, nodes: Iterable[Node], depth: int, uses: Mapping[Value, int]
    ) -> list[Node]:
        """Nodes inside ``depth`` calls; ``uses`` counts what reads a value, here or outside."""
        runs = [(c, list(ns)) for c, ns in groupby(nodes, lambda n: _call_at(self.path(n), depth))]
        count = Counter(c for c, _ in runs)
        done: list[Node] = []
        for call, run in runs:
            if call is None:
                done += [map_bodies(n, lambda b: self.graph(b, depth)) for n in run]
            elif count[call] > 1:  # something stands between: gathered, it might come too late
                done += run
            else:
                done += self.call(call, run, depth + 1, uses)
        return done

    def call(
        self, call: Call, run: list[Node], depth: int, uses: Mapping[Value, int]
    ) -> list[Node]:
        """A node that calls a function of what the call became."""
        inside = Graph("", (), (), tuple(run)).uses()
        nodes = self.outline_nodes(run, depth, uses)
        values = [v for n in nodes for v in n.outputs]
        results = tuple(v for v in values if uses.get(v, 0) > inside.get(v, 0))
        if not results:
            return nodes
        names = {v.name: param for v, param in call.params}
        operands = _operands(nodes, values, names)
        key = (call.name, _form(nodes, operands, results))
        source = Source(run[0].sources[0].format, "function", call.name)
        domain = source.format if self.domain is None else self.domain
        if key not in self.functions:
            self.functions[key] = Function(
                domain, self.names.fresh(call.name), _body(nodes, operands, results, names)
            )
        name = self.functions[key].name
        return [Node(name, operands, results, EMPTY, domain, call.name, (source,))]


def _call_at(path: tuple[Call, ...], depth: int) -> Call | None:
    return path[depth] if len(path) > depth else None


def _operands(
    nodes: Iterable[Node], values: Iterable[Value], params: Mapping[str, str]
) -> tuple[Value, ...]:
    """What nodes read and do not make, in the order of the parameters it was given for."""
    local_values = set(values)
    read = Graph("", (), (), tuple(nodes)).uses()
    inner = set(_variables(nodes))
    inputs = [v for v in read if v not in local_values and v not in inner and not _is_embedded(v)]
    order = {name: at for at, name in enumerate(params)}
    return tuple(sorted(inputs, key=lambda v: order.get(v.name, len(order))))


def _variables(nodes: Iterable[Node]) -> Iterator[Value]:
    """What nodes make, and what the bodies among them are given."""
    return (v for v in Graph("", (), (), tuple(nodes)).all_values() if v.tensor is None)


def _is_embedded(value: Value) -> bool:
    """Whether a constant is part of the function: a shape, an axis, a number."""
    tensor = value.tensor
    if tensor is None:
        return False
    return tensor.size <= 1 or (tensor.dtype.kind in "iub" and tensor.size <= EMBEDDED)


def _body(
    nodes: Iterable[Node], operands: Sequence[Value], results: Sequence[Value],
    params: Mapping[str, str],
) -> Graph:  # fmt: skip
    """The nodes with values of their own; names are those of the parameters where they are free."""
    names = Names()
    names.used.update(v.name for v in _variables(nodes))
    copies_of_values = {
        v: Value(v.name, v.dtype, v.shape, container=v.container) for n in nodes for v in n.outputs
    }
    for v in operands:
        copies_of_values[v] = Value(
            names.claim(params.get(v.name, v.name)), v.dtype, v.shape, container=v.container
        )
    copied = (replace_inputs(n, copies_of_values) for n in nodes)
    copies = tuple(
        replace(n, outputs=tuple(copies_of_values[v] for v in n.outputs)) for n in copied
    )
    return Graph(
        "",
        tuple(copies_of_values[v] for v in operands),
        tuple(copies_of_values[v] for v in results),
        copies,
    )


def _form(nodes: Iterable[Node], operands: Sequence[Value], results: Sequence[Value]) -> Hashable:
    """What two calls have in common where one function does for both."""
    ids: dict[Value, int] = {}
    types = tuple((v.dtype, v.shape, v.container) for v in operands)
    _number(operands, ids)
    return types, _nodes_form(nodes, ids), tuple(ids[v] for v in results)


def _number(values: Iterable[Value], ids: dict[Value, int]) -> None:
    for value in values:
        ids[value] = len(ids)


def _nodes_form(nodes: Iterable[Node], ids: dict[Value, int]) -> Hashable:
    form = []
    for node in nodes:
        read = tuple(_value_form(v, ids) for v in node.inputs)
        attrs = tuple((k, _attr_form(v, ids)) for k, v in sorted(node.attrs.items()))
        form.append((node.domain, node.op, read, attrs, len(node.outputs)))
        _number(node.outputs, ids)
    return tuple(form)


def _value_form(value: Value | None, ids: Mapping[Value, int]) -> Hashable:
    if value is None or value in ids:
        return None if value is None else ids[value]
    assert value.tensor is not None
    return _tensor_form(value.tensor)


def _tensor_form(tensor: Tensor) -> Hashable:
    return tensor.dtype, tensor.shape, tensor.load().tobytes()


def _attr_form(value: Any, ids: dict[Value, int]) -> Hashable:
    if isinstance(value, Graph):
        types = tuple((v.dtype, v.shape, v.container) for v in value.inputs)
        _number(value.inputs, ids)
        nodes = _nodes_form(value.nodes, ids)
        return types, nodes, tuple(_value_form(v, ids) for v in value.outputs)
    if isinstance(value, Tensor):
        return _tensor_form(value)
    return value if isinstance(value, Hashable) else id(value)
