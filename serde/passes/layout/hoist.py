"""Transposes of images moved outwards, for sources whose images have channels last.

A reader writes each operator of images between a Transpose to channels first and one back. What is
between two of them computes with channels first too, so that the Transposes meet and vanish. Inputs
and outputs of the graph keep their shapes.
"""

from __future__ import annotations

from typing import Any

from serde.ir.graph import Graph, Node, Value
from serde.rewrite.driver import again
from serde.spec.traits import RESHAPES

from .place import Placing, to_first, to_last


def hoist(graph: Graph) -> Graph:
    """Return an IR graph with Transposes between operators of images moved outwards."""
    if "Transpose" not in graph.operators():
        return graph
    return _Hoisting(frozenset(), to_first, to_last, channel=-1).rewrite(graph)


class _Hoisting(Placing):
    def node(self, g: Any, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        self.builder = self.builder or g
        if g is not self.builder or node.domain:
            return again(g, node, inputs)
        if node.op == "Transpose":
            return self.keep_transpose(g, again(g, node, inputs))
        first = inputs[0] if inputs else None
        if node.op in RESHAPES and first in self.forms and _keeps_order(first.shape):
            shape = node.outputs[0].shape
            if shape is not None and all(isinstance(d, int) for d in shape):
                return g.reshape(self.forms[first], shape)
        return super().node(g, node, inputs)

    def keep_transpose(self, g: Any, result: Value) -> Value:
        """A Transpose; between the layouts, what it reads and makes are forms of one value."""
        maker = g.maker(result, "Transpose")
        if maker is None or maker.inputs[0] is None or result.rank < 4:
            return result
        perm, operand = maker.attrs["perm"], maker.inputs[0]
        if perm == self.order(result.rank):
            self.forms.setdefault(operand, result)
        return self.keep_order(result, operand, perm)


def _keeps_order(shape: Any) -> bool:
    """Whether elements of an image lie alike with channels first and last."""
    return shape is not None and (shape[-1] == 1 or all(d == 1 for d in shape[1:-1]))
