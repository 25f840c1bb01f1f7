"""Arrays that a model reads turned, or in two shapes: one form is trained, others are computed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations

import numpy as np

from serde.ir.graph import Graph, Node, Value
from serde.ir.map_nodes import map_bodies, map_nodes
from serde.ir.replace_uses import replace_inputs
from serde.spec.weight_origins import origins_of

from ..target import Slot
from .functions import FUNCTIONS, operands_of, parameters_of, to_function

MOST_AXES = 4  # of an array whose orders are tried


def tie_arrays(graph: Graph) -> Graph:
    """Compute, of each array of the source, all forms but one of that one."""
    forms: dict[str, dict[Value, None]] = {}
    fixed: set[Value] = set()  # modules hold them that are no functions
    for node in graph.all_nodes():
        for value in node.inputs:
            if value is not None and (name := _find_whole(value)) is not None:
                forms.setdefault(name, {})[value] = None
        if node.op not in FUNCTIONS:
            fixed.update(parameters_of(node).values())
    computed: dict[Value, Node] = {}
    for values in (v for v in forms.values() if len(v) > 1):
        base = min(values, key=lambda v: (v not in fixed, not _is_plain(v)))
        for value in values.keys() - fixed:
            if (step := _arrange(base, value)) is not None:
                computed[value] = step
    return replace(graph, nodes=tuple(_compute(graph, computed))) if computed else graph


def _compute(graph: Graph, computed: Mapping[Value, Node]) -> Iterator[Node]:
    """The nodes of a graph, with the steps before those that read what they compute."""
    for node in graph.nodes:
        inside = [n for body in node.graphs() for n in body.all_nodes()]
        read = dict.fromkeys(v for n in (node, *inside) for v in n.inputs if v in computed)
        instead: dict[Value, Value] = {}
        for value in read:
            if value is not None:
                instead[value] = Value(f"{value.name}.arranged", value.dtype, value.shape)
                yield replace(computed[value], outputs=(instead[value],), sources=node.sources)

        def change(node: Node, instead: Mapping[Value, Value] = instead) -> Node:
            changed = replace_inputs(node, instead)
            if instead.keys().isdisjoint(parameters_of(node).values()):
                return changed
            count = len(operands_of(node))
            return to_function(node, changed.inputs[0], changed.inputs[count:])

        yield change(map_bodies(node, lambda body: map_nodes(body, change)))


def _find_whole(value: Value) -> str | None:
    """The array of the source that a constant has all elements of."""
    runs = origins_of(value)
    if len(runs) != 1 or len(runs[0].names) != 1 or runs[0].begin != 0:
        return None
    return runs[0].names[0] if runs[0].size == math.prod(runs[0].shape) else None


def _is_plain(value: Value) -> bool:
    (run,) = origins_of(value)
    return run.is_ordered and run.shape == value.shape


def _arrange(base: Value, value: Value) -> Node | None:
    """The expression that computes ``value`` of ``base``; None where it is the same, or unknown."""
    (before,), (after,), shape = origins_of(base), origins_of(value), value.static_shape
    is_same_form = before.is_ordered == after.is_ordered and base.shape == shape
    if is_same_form and np.array_equal(base.array(), value.array()):
        return None
    if before.is_ordered and after.is_ordered:
        return Node(".reshape", (base,), (value,), {"args": (Slot(0), *(shape or ((),)))}, "torch")
    if base.rank == 2 and np.array_equal(base.array().T, value.array()):
        return Node(".t", (base,), (value,), {"args": (Slot(0),)}, "torch")
    steps = find_order(base, value) if base.rank > 2 else []
    return steps[0] if len(steps) == 1 else None


def find_order(base: Value, value: Value) -> list[Node]:
    """The permutation of an array's axes, or of another shape's, that gives ``value``."""
    rank, shape = value.rank, value.static_shape
    for order in permutations(range(rank)) if rank <= MOST_AXES else ():
        sizes = tuple([shape[order.index(axis)] for axis in range(rank)])
        x = base
        steps: list[Node] = []
        if np.array_equal(base.array().reshape(sizes).transpose(order), value.array()):
            if sizes != base.static_shape:
                x = Value(f"{base.name}.reshaped", base.dtype, sizes)
                steps.append(Node(".reshape", (base,), (x,), {"args": (Slot(0), *sizes)}, "torch"))
            result = Value(value.name, value.dtype, shape)
            permute = {"args": (Slot(0), *order)}
            return [*steps, Node(".permute", (x,), (result,), permute, "torch")]
    return []
