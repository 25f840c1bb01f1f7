"""Reversals of image axes, moved behind what computes element by element, where two may cancel.

Transposed convolutions of MXNet are read as convolutions of reversed images, whose results are
reversed again (``formats/mxnet/ops/deconvolution_phases.py``). A Slice that runs backwards copies
element by element.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from serde.decompositions.transposed_convolution import FROM_THE_FRONT
from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Value
from serde.ir.replace_uses import replace_inputs
from serde.ir.values_read import values_read
from serde.spec.traits import BROADCASTS, ELEMENTWISE, QUANTIZES


class Reversal(NamedTuple):
    """What is reversed, along which axes, and the Slice that does so."""

    value: Value
    axes: frozenset[int]
    node: Node


def sink_reversals(graph: Graph) -> Graph:
    """Return ``graph`` with reversals as late as they may be; two along the same axes are none.

    A result that is read more than once is reversed where it was. Subgraphs stay as they are.
    """
    if not any(_find_reversal(node) for node in graph.nodes):
        return graph
    return _Sinking(graph).run()


class _Sinking:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.uses = graph, graph.uses()
        self.names = Names()
        self.names.used.update(v.name for v in graph.all_values())
        self.waiting: dict[Value, Reversal] = {}  # by the value that the Slice is to make
        self.instead: dict[Value, Value] = {}
        self.nodes: list[Node] = []

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self.take(replace_inputs(node, self.instead))
        outputs = tuple(self.instead.get(v, v) for v in self.graph.outputs)
        return replace(self.graph, nodes=tuple(self.nodes), outputs=outputs)

    def take(self, node: Node) -> None:
        found = _find_reversal(node)
        first = self.waiting.get(node.inputs[0]) if node.inputs and node.inputs[0] else None
        if found is not None and first is not None and first.axes == found.axes:
            if self.give(node.outputs[0], first.value):
                return
            self.reverse(found.value, first)
            first = None
        if found is not None and first is None:
            self.wait(node.outputs[0], found)
            return
        if first is not None and _commutes(node, first.axes):
            self.reverse_all(node.inputs[1:])
            result = node.outputs[0]
            plain = replace(result, name=self.names.fresh(f"{result.name}/reversed"))
            inputs = (first.value, *node.inputs[1:])
            self.nodes.append(replace(node, inputs=inputs, outputs=(plain,)))
            moved = replace(first.node, name=node.name, sources=node.sources)
            self.wait(result, Reversal(plain, first.axes, moved))
            return
        self.reverse_all(values_read(node))
        self.nodes.append(node)

    def give(self, result: Value, plain: Value) -> bool:
        """Whether ``plain`` could be made what is read as ``result``; outputs keep their names."""
        if result not in self.graph.outputs:
            self.instead[result] = plain
            return True
        last = self.nodes[-1] if self.nodes else None
        if last is None or last.outputs != (plain,) or self.uses[plain]:
            return False
        self.nodes[-1] = replace(last, outputs=(result,))
        return True

    def wait(self, result: Value, reversal: Reversal) -> None:
        """Reverse later what one node reads, and now what others do."""
        if self.uses[result] == 1 and result not in self.graph.outputs:
            self.waiting[result] = reversal
        else:
            self.reverse(result, reversal)

    def reverse_all(self, values: Iterable[Value | None]) -> None:
        """Reverse now those of the values that wait."""
        for value in dict.fromkeys(values):
            if value is not None and value in self.waiting:
                self.reverse(value, self.waiting[value])

    def reverse(self, result: Value, reversal: Reversal) -> None:
        inputs = (reversal.value, *reversal.node.inputs[1:])
        self.nodes.append(replace(reversal.node, inputs=inputs, outputs=(result,)))


def _find_reversal(node: Node) -> Reversal | None:
    """A Slice that runs backwards through whole axes, none of them the samples or channels."""
    if node.op != "Slice" or node.domain or len(node.inputs) < 5:
        return None
    x, *bounds = node.inputs
    if x is None or any(v is None or v.tensor is None for v in bounds):
        return None
    starts, ends, axes, steps = (v.ints() for v in bounds if v is not None)
    if {*starts, *steps} != {-1} or {*ends} != {FROM_THE_FRONT} or min(axes) < 2:
        return None
    return Reversal(x, frozenset(axes), node)


def _commutes(node: Node, axes: frozenset[int]) -> bool:
    """Whether reversing the first operand reverses the result."""
    x, *others = node.inputs or (None,)
    if node.domain or x is None or x.shape is None or len(node.outputs) > 1:
        return False
    rank, last = len(x.shape), max(axes)
    if node.op in ELEMENTWISE:
        return True
    if node.op in QUANTIZES:
        scale, axis = others[0], node.attrs.get("axis", 1)
        is_one = scale is not None and scale.shape in ((), (1,))
        return is_one or (axis not in axes and not node.attrs.get("block_size"))
    if node.op in BROADCASTS:
        return all(_is_repeated(v, axes, rank) for v in others)
    if node.op == "Conv" and last < rank:
        windows = (node.attrs.get("kernel_shape"), node.attrs.get("strides"))
        points = all(isinstance(w, tuple) and {*w} == {1} for w in windows)
        pads = node.attrs.get("pads")
        is_same = node.attrs.get("auto_pad", "NOTSET") == "NOTSET"
        return points and is_same and isinstance(pads, tuple) and {*pads} == {0}
    return False


def _is_repeated(value: Value | None, axes: frozenset[int], rank: int) -> bool:
    """Whether an operand has one element along axes of a tensor of ``rank``, to be repeated."""
    if value is None or value.shape is None or len(value.shape) > rank:
        return False
    lead = rank - len(value.shape)
    return all(axis < lead or value.shape[axis - lead] == 1 for axis in axes)
