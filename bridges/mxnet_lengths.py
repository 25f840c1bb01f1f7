"""Lengths of sequences that MXNet reads on GPUs alone.

``RNN(use_sequence_length=True)`` computes all steps of all sequences on CPUs, whatever their
lengths. A conversion honours them; it is compared on sequences of full length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from serde.ir.graph import Graph, Node, Value

# Operators that leave the numbers of their operand as they are.
KEEPING = frozenset(
    "BlockGrad Cast Flatten Reshape _copy amp_cast expand_dims squeeze".split()
)  # fmt: skip
Feeds = Mapping[str, np.ndarray[Any, Any]]


def find_ignored_lengths(graph: Graph) -> list[Node]:
    """The layers that have lengths of sequences for their last operand."""
    return [n for n in graph.nodes if n.op == "RNN" and _is_true(n.attrs)]


def _is_true(attrs: Mapping[str, Any]) -> bool:
    return str(attrs.get("use_sequence_length", "False")).lower() in ("true", "1")


def fill_lengths(symbol: Any, graph: Graph, feeds: Feeds) -> tuple[Feeds, str]:
    """Feeds in which the lengths that layers read are those of their data, and a statement."""
    internals = symbol.get_internals()
    shapes = {n: a.shape for n, a in feeds.items() if n in set(symbol.list_inputs())}
    makers = {v: node for node in graph.nodes for v in node.outputs}
    done, others = dict(feeds), []
    for node in find_ignored_lengths(graph):
        data, lengths = node.inputs[0], node.inputs[-1]
        name = None if lengths is None else _find_variable(makers, lengths)
        shape = None if data is None else _infer_shape(internals[data.name], shapes)
        if name in feeds and shape and shape[0]:
            done[name] = np.full_like(feeds[name], shape[0])
        else:
            others.append(node.name)
    statement = "sequences that end early: MXNet ignores their lengths on CPUs"
    if others:
        statement += f"; lengths of {', '.join(map(repr, others))} are computed, and may differ"
    return done, statement


def _infer_shape(symbol: Any, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    read = set(symbol.list_inputs())
    _, results, _ = symbol.infer_shape_partial(**{n: s for n, s in shapes.items() if n in read})
    return results[0] if results else None


def _find_variable(makers: Mapping[Value, Node], value: Value) -> str:
    """The name of the variable whose numbers a value has, or that of what computes them."""
    while (node := makers.get(value)) is not None and node.op in KEEPING and node.inputs[0]:
        value = node.inputs[0]
    return value.name
