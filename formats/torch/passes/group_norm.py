"""Normalizations of groups of channels, which ONNX writes as those of one sample, as a module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from serde.ir.graph import Graph, Node, Value
from serde.rewrite.patterns import join_sources

from ..target import Module, Slot, TorchBuilder, derive, name_type

CHAIN = ("+", "*", ".reshape", "F.instance_norm", ".reshape")  # from the result to the operand


def join_group_norms(graph: Graph, builder: TorchBuilder) -> Graph:
    """Return ``graph`` with such chains as calls of ``nn.GroupNorm``."""
    if not any(node.op == CHAIN[3] for node in graph.nodes):
        return graph
    makers = {v: node for node in graph.nodes for v in node.outputs}
    readers: dict[Value, list[Node]] = {v: [] for v in makers}
    for node in graph.nodes:
        for value in node.inputs:
            if value in readers:
                readers[value].append(node)
    nodes: list[Node] = []
    merged: set[Node] = set()
    for node in graph.nodes:
        chain = _find_chain(node, makers) if node.op == CHAIN[0] else None
        others = chain and _list_private(chain, readers, graph.outputs)
        module = _make_module(chain, builder) if chain and others else None
        if module is not None and others:
            merged.update(others)
            node = module
        nodes.append(node)
    return replace(graph, nodes=tuple([n for n in nodes if n not in merged]))


def _find_chain(node: Node, makers: Mapping[Value, Node]) -> list[Node] | None:
    """The nodes of a chain, that of the result first."""
    chain = [node]
    for op in CHAIN[1:]:
        makers_of_operands = (makers.get(v) for v in chain[-1].inputs if v is not None)
        before = [n for n in makers_of_operands if n is not None and n.op == op]
        if len(before) != 1:
            return None
        chain.append(before[0])
    return chain


def _list_private(
    chain: list[Node], readers: Mapping[Value, list[Node]], results: tuple[Value, ...]
) -> set[Node] | None:
    """The nodes before the last that nothing else reads, sizes of their results included."""
    inner = set(chain[1:])
    sizes = {r for n in inner for r in readers[n.outputs[0]] if r.op == "size"}
    private = inner | sizes
    read = {r for n in private for r in readers[n.outputs[0]]}
    is_result = any(n.outputs[0] in results for n in private)
    return None if is_result or not read <= {*private, chain[0]} else private


def _make_module(chain: list[Node], builder: TorchBuilder) -> Node | None:
    total, product, back, norm, grouped = chain
    x, y = grouped.inputs[0], grouped.outputs[0]
    weight, bias = (next((v for v in n.inputs if v and v.tensor), None) for n in (product, total))
    if x is None or weight is None or bias is None or x.shape is None or y.shape is None:
        return None
    channels, groups = x.shape[1], y.shape[1]
    by_channel = (channels, *[1] * (x.rank - 2))
    result = back.outputs[0].shape or ()
    is_same = x.rank > 2 and y.rank == 3 and result[1:] == x.shape[1:] and None not in result[1:]
    fits = all(v.shape in (by_channel, (1, *by_channel)) for v in (weight, bias))
    is_sample = y.shape[0] is not None and y.shape[0] == x.shape[0]
    sizes = isinstance(channels, int) and isinstance(groups, int) and is_sample
    if not (is_same and fits and sizes and _is_plain(norm)):
        return None
    flat = {name: derive(builder, v, lambda a: a.reshape(-1), (channels,))  # type: ignore[arg-type]
            for name, v in (("weight", weight), ("bias", bias))}  # fmt: skip
    eps: Any = norm.attrs.get("eps", 1e-5)
    options = {"eps": None if eps == 1e-5 else eps, "dtype": name_type(weight)}
    options = {name: v for name, v in options.items() if v is not None}
    module = Module((groups, channels), MappingProxyType(options), ("weight", "bias"))
    return replace(
        total, op="nn.GroupNorm", inputs=(x, *flat.values()),
        attrs={"args": (Slot(0),), "module": module}, sources=join_sources(*reversed(chain)),
    )  # fmt: skip


def _is_plain(norm: Node) -> bool:
    """Whether a normalization has no scales and biases of its own."""
    arrays = norm.inputs[1:]
    return all(v is not None and v.tensor is not None for v in arrays) and [
        bool((v.array() == neutral).all()) for v, neutral in zip(arrays, (1, 0), strict=False) if v
    ] == [True] * len(arrays)
