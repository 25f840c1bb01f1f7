"""Recurrent modules that read each other as one module of several layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from serde.ir.graph import Graph, Node, Value
from serde.rewrite.patterns import join_sources

from ..target import Module, Slot

RECURRENT = frozenset(("nn.GRU", "nn.LSTM", "nn.RNN"))


def drop_zero_states(graph: Graph) -> Graph:
    """Return ``graph`` without states of zeros, which modules begin with anyway."""
    makers = {v: node for node in graph.nodes for v in node.outputs}
    nodes = [_drop_zero_states(n, makers) if n.op in RECURRENT else n for n in graph.nodes]
    return replace(graph, nodes=tuple(nodes))


def _drop_zero_states(node: Node, makers: Mapping[Value, Node]) -> Node:
    count = len(node.inputs) - len(_module_of(node).parameters)
    states = node.inputs[1:count]
    if not states or not all(v is not None and _is_zero(v, makers) for v in states):
        return node
    attrs = {**node.attrs, "args": (Slot(0),)}
    return replace(node, inputs=(node.inputs[0], *node.inputs[count:]), attrs=attrs)


def _is_zero(value: Value, makers: Mapping[Value, Node]) -> bool:
    """Whether a value is zero, by how it is made."""
    maker = makers.get(value)
    while maker is not None and maker.op in ("[]", ".expand") and maker.inputs[0] is not None:
        value = maker.inputs[0]
        maker = makers.get(value)
    if maker is not None:
        args = maker.attrs["args"]
        return maker.op == "torch.full" and isinstance(args, tuple) and args[1] == 0
    return value.tensor is not None and not value.array().any()


def stack_recurrent(graph: Graph) -> Graph:
    """Return ``graph`` with chains of recurrent modules merged; those with states stay."""
    if not any(node.op in RECURRENT for node in graph.nodes):
        return graph
    uses = graph.uses()
    makers: dict[Value, Node] = {}
    merged: set[Node] = set()
    nodes: list[Node] = []
    for node in graph.nodes:
        below = makers.get(node.inputs[0]) if node.op in RECURRENT and node.inputs[0] else None
        if below is not None and _can_stack(below, node, uses):
            merged.add(below)
            node = _stack(below, node)
        nodes.append(node)
        makers.update(dict.fromkeys(node.outputs, node))
    if not merged:
        return graph
    return replace(graph, nodes=tuple([n for n in nodes if n not in merged]))


def _can_stack(below: Node, node: Node, uses: dict[Value, int]) -> bool:
    """Whether a module is the next layer of the one that it reads."""
    if below.op != node.op or uses[below.outputs[0]] != 1:
        return False
    states = [v for n in (below, node) for v in n.outputs[1:] if uses[v]]
    has_states = any(len(n.attrs["args"]) > 1 for n in (below, node))  # type: ignore[arg-type]
    first, second = _module_of(below), _module_of(node)
    options = {**first.options, "num_layers": None}
    is_alike = options == {**second.options, "num_layers": None}
    ways = 2 if first.options.get("bidirectional") else 1
    return not states and not has_states and is_alike and (
        second.args == (first.args[1] * ways, first.args[1])
    )  # fmt: skip


def _module_of(node: Node) -> Module:
    module = node.attrs["module"]
    assert isinstance(module, Module)
    return module


def _stack(below: Node, node: Node) -> Node:
    first, second = _module_of(below), _module_of(node)
    layers = first.options.get("num_layers", 1)
    names = tuple(name.replace("_l0", f"_l{layers}") for name in second.parameters)
    options = MappingProxyType({"num_layers": layers + 1, **{
        k: v for k, v in first.options.items() if k != "num_layers"}})  # fmt: skip
    module = Module(first.args, options, (*first.parameters, *names))
    count = len(node.inputs) - len(second.parameters)
    return replace(
        below, outputs=node.outputs, sources=join_sources(below, node),
        inputs=(*below.inputs, *node.inputs[count:]), attrs={**below.attrs, "module": module},
    )  # fmt: skip
