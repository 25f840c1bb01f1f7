"""Feeds with which MXNet computes on CPUs what a model means.

``RNN(use_sequence_length=True)`` computes all steps of all sequences, whatever their lengths, which
GPUs and conversions honour. ``Reshape`` to constant sizes that hold another number of elements, as
where a batch is baked in, reads from beyond its operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from serde.ir.graph import Graph, Node, Value

# Operators that leave the numbers of their operand as they are.
KEEPING = frozenset("BlockGrad Cast Flatten Reshape _copy amp_cast expand_dims squeeze".split())
Feeds = Mapping[str, np.ndarray[Any, Any]]
Change = Callable[["Internals", Feeds], tuple[Feeds, str]]
InferShape = Callable[[str, Mapping[str, Any]], tuple[int, ...] | None]  # of a value, from others


class Internals:
    """A symbol, the graph of which is at hand, that shapes of values are asked of."""

    def __init__(self, infer_shape: InferShape, graph: Graph) -> None:
        self._infer_shape = infer_shape
        self.makers = {v: node for node in graph.nodes for v in node.outputs}
        self.arrays = {v.name: v.shape for v in graph.constants()}

    def infer_shape(self, value: Value | None, feeds: Feeds) -> tuple[int, ...] | None:
        """The shape of a value, if MXNet tells it."""
        if value is None:
            return None
        return self._infer_shape(
            value.name, {**self.arrays, **{n: a.shape for n, a in feeds.items()}}
        )

    def find_variable(self, value: Value) -> str:
        """The name of the variable whose numbers a value has, or that of what computes them."""
        while (node := self.makers.get(value)) is not None and node.op in KEEPING:
            if node.inputs[0] is None:
                break
            value = node.inputs[0]
        return value.name


def find_changes(graph: Graph, has_own_batch: bool) -> list[Change]:
    """What feeds of a graph of MXNet's operators may need.

    Without its own batch it is run batch by batch, as ``rebatch`` made the result for another.
    """
    layers = [n for n in graph.nodes if n.op == "RNN" and _reads_lengths(n.attrs)]
    reshapes = [n for n in graph.nodes if n.op == "Reshape"]
    changes: list[Change] = []
    if layers:
        changes.append(partial(fill_lengths, layers))
    if reshapes and has_own_batch:
        changes.append(partial(fill_batch, reshapes))
    return changes


def _reads_lengths(attrs: Mapping[str, Any]) -> bool:
    return str(attrs.get("use_sequence_length", "False")).lower() in ("true", "1")


def complete(internals: Internals, changes: list[Change], feeds: Feeds) -> tuple[Feeds, str]:
    """The feeds with all changes, and what is not compared so."""
    statements = []
    for change in changes:
        feeds, statement = change(internals, feeds)
        statements.append(statement)
    return feeds, "; ".join(filter(None, statements))


def fill_lengths(layers: list[Node], internals: Internals, feeds: Feeds) -> tuple[Feeds, str]:
    """Feeds in which the lengths that ``layers`` read are those of their data, and a statement."""
    done, others = dict(feeds), []
    for node in layers:
        data, lengths = node.inputs[0], node.inputs[-1]
        name = None if lengths is None else internals.find_variable(lengths)
        shape = internals.infer_shape(data, feeds)
        if name is not None and name in feeds and shape:
            done[name] = np.full_like(feeds[name], shape[0])
        else:
            others.append(node.name)
    statement = "sequences that end early: MXNet ignores their lengths on CPUs"
    if others:
        statement += f", and those of {', '.join(map(repr, others))} are computed: they may differ"
    return done, statement


def fill_batch(reshapes: list[Node], internals: Internals, feeds: Feeds) -> tuple[Feeds, str]:
    """Feeds of as many samples as constant sizes hold, the same ones again, and a statement."""
    batches = {a.shape[0] for a in feeds.values() if np.ndim(a)}
    (batch,) = batches if len(batches) == 1 else (0,)
    baked = set()
    for node in reshapes if batch else ():
        before = internals.infer_shape(node.inputs[0], feeds)
        after = internals.infer_shape(node.outputs[0], feeds)
        if before and after and math.prod(before) != math.prod(after):
            baked.add(batch * math.prod(after) / math.prod(before))
    (size,) = baked if len(baked) == 1 else (0,)
    if size < 1 or size != int(size):
        return feeds, ""
    rows = np.arange(int(size)) % batch
    statement = f"batches of another size than {int(size)}: MXNet has it baked in, and reads beyond"
    return {n: np.take(a, rows, 0) if np.ndim(a) else a for n, a in feeds.items()}, statement
