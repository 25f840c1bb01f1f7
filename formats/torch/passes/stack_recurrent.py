"""Recurrent modules that read each other as one module of several layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from serde.ir.graph import Graph, Node, Value
from serde.passes.dce import drop_dead
from serde.rewrite.patterns import Neighbours, join_sources
from serde.rewrite.subgraphs import list_outer_values

from ..ops.recurrent import PACK, PAD
from ..target import DOMAIN, ListOf, Module, Slot, TorchBuilder

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


class Stack(NamedTuple):
    """Recurrent modules that read each other, through Dropouts of one rate or directly.

    ``packs`` are the nodes that unpack sequences between them, and pack them again.
    """

    layers: tuple[Node, ...]
    dropouts: tuple[Node, ...] = ()
    packs: tuple[Node, ...] = ()


def stack_recurrent(graph: Graph, builder: TorchBuilder) -> Graph:
    """Return ``graph`` with chains of recurrent modules merged.

    A Dropout between layers is the option ``dropout``, which is one rate for all of them. The
    layers' states are cut from, and joined to, the module's where the graph does not do so.
    """
    if not any(node.op in RECURRENT for node in graph.nodes):
        return graph
    near = Neighbours(graph, DOMAIN)
    first_reads, places = _find_first_reads(graph), {n: at for at, n in enumerate(graph.nodes)}
    stacks = {s.layers[-1]: s for s in _find_stacks(near) if _can_stack(s, first_reads, places)}
    nodes: list[Node] = []
    merged: set[Node] = set()
    for node in graph.nodes:
        stack = stacks.get(node)
        if stack is None:
            nodes.append(node)
            continue
        stacked = list(_stack(stack, near, builder))
        results = [v for n in stacked for v in n.outputs if v in near.makers]
        merged.update(*stack, [near.makers[v] for v in results])
        nodes += stacked
    kept = tuple([n for n in nodes if n not in merged])
    return drop_dead(replace(graph, nodes=kept)) if stacks else graph


def _find_stacks(near: Neighbours) -> list[Stack]:
    stacks: dict[Node, Stack] = {}
    for node in near.graph.nodes:
        if node.op not in RECURRENT:
            continue
        read, crossed = node, []
        for op in (PACK, "nn.Dropout", PAD):
            between = near.sole_maker(read, read.inputs[0], op, crosses_calls=True)
            if between is not None:
                crossed.append(between)
                read = between
        x = read.inputs[0]
        dropouts = tuple([n for n in crossed if n.op == "nn.Dropout"])
        packs = tuple([n for n in crossed if n not in dropouts])
        below = near.sole_maker(read, x, *RECURRENT, crosses_calls=True)
        stack = stacks.get(below) if below is not None and below.outputs[0] is x else None
        if below is None or stack is None or not _is_next_layer(near, stack, dropouts, node):
            stacks[node] = Stack((node,))
            continue
        del stacks[below]
        stacks[node] = Stack(
            (*stack.layers, node), (*stack.dropouts, *dropouts), (*stack.packs, *packs)
        )
    return list(stacks.values())


def _are_packed_alike(near: Neighbours, *layers: Node) -> bool:
    """Whether layers read sequences of the same lengths, or none that are packed."""
    packs = [near.maker(n.inputs[0], PACK) for n in layers]
    counts = [near.maker(n.inputs[1], ".to") for n in packs if n is not None]
    lengths = {n.inputs[0] if n is not None else None for n in counts}
    return not counts or (len(counts) == len(layers) and len(lengths) == 1)


def _is_next_layer(near: Neighbours, stack: Stack, dropouts: Sequence[Node], node: Node) -> bool:
    below = stack.layers[-1]
    first, second = _module_of(below), _module_of(node)
    is_alike = below.op == node.op and first.options == second.options
    rates = {_rate_of(n) for n in (*stack.dropouts, *dropouts)}
    has_rate = len(rates) == (1 if dropouts else 0)
    is_fed_alike = len(_states_of(below)) == len(_states_of(node))
    ways = 2 if first.options.get("bidirectional") else 1
    hidden = first.args[1]
    width = first.options.get("proj_size", hidden)
    fits = second.args == (width * ways, hidden) and _are_packed_alike(near, below, node)
    return is_alike and has_rate and is_fed_alike and fits


def _find_first_reads(graph: Graph) -> dict[Value | None, int]:
    """The place of the first node that reads a value, itself or in its subgraphs."""
    places: dict[Value | None, int] = {}
    for at, node in enumerate(graph.nodes):
        for value in (*node.inputs, *list_outer_values(*node.graphs())):
            places.setdefault(value, at)
    return places


def _can_stack(
    stack: Stack, first_reads: Mapping[Value | None, int], places: Mapping[Node, int]
) -> bool:
    """Whether there are layers to merge, and nothing before the last reads what they give."""
    *lower, last = stack.layers
    read = [first_reads[v] for n in lower for v in n.outputs[1:] if v in first_reads]
    return bool(lower) and all(place > places[last] for place in read)


def _stack(stack: Stack, near: Neighbours, builder: TorchBuilder) -> Iterator[Node]:
    """The module of all layers, between the nodes that join and cut its states."""
    bottom, top = stack.layers[0], stack.layers[-1]
    modules = [_module_of(n) for n in stack.layers]
    rows = 2 if modules[0].options.get("bidirectional") else 1
    states: list[Value] = []
    for parts in zip(*map(_states_of, stack.layers), strict=True):
        whole = _find_whole(parts, near)
        if whole is None:
            whole = _name_whole(parts, rows, builder)
            yield Node("torch.cat", parts, (whole,), _join_args(parts), DOMAIN)
        states.append(whole)
    finals: list[Value] = []
    cuts: list[Node] = []
    for parts in zip(*[n.outputs[1:] for n in stack.layers], strict=True):
        whole = _find_joined(parts, near)
        if whole is None:
            whole = _name_whole(parts, rows, builder)
            cuts += _cut(whole, parts, rows)
        finals.append(whole)
    names = [p.replace("_l0", f"_l{at}") for at, m in enumerate(modules) for p in m.parameters]
    options: dict[str, Any] = {"num_layers": len(modules)}
    if stack.dropouts:
        options["dropout"] = _rate_of(stack.dropouts[0])
    module = Module(
        modules[0].args, MappingProxyType({**options, **modules[0].options}), tuple(names)
    )
    arrays = [
        v
        for n, m in zip(stack.layers, modules, strict=True)
        for v in n.inputs[-len(m.parameters) :]
    ]
    yield replace(
        bottom, inputs=(bottom.inputs[0], *states, *arrays), outputs=(top.outputs[0], *finals),
        attrs={**bottom.attrs, "module": module}, sources=join_sources(*stack.layers),
    )  # fmt: skip
    yield from cuts


def _find_whole(parts: tuple[Value, ...], near: Neighbours) -> Value | None:
    """The value that parts are cut from, one after the other along the first axis."""
    makers = [near.maker(v, "[]") for v in parts]
    bases = {None if n is None else n.inputs[0] for n in makers}
    base = bases.pop()
    if bases or base is None or base.shape is None:
        return None
    at = 0
    for node, part in zip(makers, parts, strict=True):
        args = node.attrs["args"] if node is not None else ()
        size = part.shape[0] if part.shape else None
        if not isinstance(args, tuple) or not isinstance(size, int):
            return None
        end = None if at + size == base.shape[0] else at + size
        if args not in ((Slot(0), slice(at or None, end)), (Slot(0), slice(at, at + size))):
            return None
        at += size
    return base if base.shape[0] == at else None


def _find_joined(parts: tuple[Value, ...], near: Neighbours) -> Value | None:
    """The value that parts are joined to along the first axis, and used for nothing else."""
    node = next(iter(near.readers.get(parts[0], ())), None)
    if node is None or any(near.uses[v] != 1 for v in parts):
        return None
    is_join = node.op == "torch.cat" and node.inputs == parts and node.attrs == _join_args(parts)
    return node.outputs[0] if is_join else None


def _join_args(parts: tuple[Value, ...]) -> dict[str, Any]:
    return {"args": (ListOf(tuple([Slot(at) for at in range(len(parts))])),), "dim": 0}


def _cut(whole: Value, parts: tuple[Value, ...], rows: int) -> Iterator[Node]:
    """The nodes that cut the states of the layers from those of all."""
    for at, part in enumerate(parts):
        end = None if at + 1 == len(parts) else (at + 1) * rows
        args = {"args": (Slot(0), slice(at * rows or None, end))}
        yield Node("[]", (whole,), (part,), args, DOMAIN)


def _name_whole(parts: tuple[Value, ...], rows: int, builder: TorchBuilder) -> Value:
    """A value of the states of all layers."""
    name, shape = builder.names.fresh(parts[0].name), parts[0].shape
    return Value(name, parts[0].dtype, shape and (len(parts) * rows, *shape[1:]))


def _states_of(node: Node) -> tuple[Value, ...]:
    states = node.inputs[1 : len(node.inputs) - len(_module_of(node).parameters)]
    return tuple([v for v in states if v is not None])


def _module_of(node: Node) -> Module:
    module = node.attrs["module"]
    assert isinstance(module, Module)
    return module


def _rate_of(dropout: Node) -> float:
    """The share that a Dropout drops, half where it names none."""
    args = _module_of(dropout).args
    return args[0] if args else 0.5
