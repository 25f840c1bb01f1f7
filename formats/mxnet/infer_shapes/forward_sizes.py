"""Sizes of all values of a graph, by the rules that convert it and the relations around its nodes.

A rule tells the shape of a result, of any operator; a relation tells the shape of an operand too.
"""

from __future__ import annotations

from collections.abc import Mapping

from serde.errors import ConversionError
from serde.ir.graph import DType, Graph, Node, Shape, Value
from serde.rewrite.rules import RuleTable
from serde.spec.inference import Type
from serde.spec.onnx_builder import OnnxBuilder

from .bodies import find_links
from .merge_shapes import is_size
from .propagate import ERRORS, Propagation

MOST_CONTENTS = 64  # elements of a constant that shapes may be computed of


class ForwardSizes(Propagation):
    """Sizes of values. One that is a name is that of an input, or computed of those.

    ``unsettled`` are nodes that are not as their rules take them: the types of their results, and
    what is known of the shapes. A size that is only known when the model runs gets a name of its
    own.
    """

    def __init__(
        self, graph: Graph, table: RuleTable, unsettled: Mapping[Node, tuple[DType, Shape | None]]
    ) -> None:  # fmt: skip
        shapes = {n.outputs[0]: shape for n, (_, shape) in unsettled.items() if shape is not None}
        super().__init__(graph.nodes, shapes)
        self._nodes = [n for n in graph.ordered_nodes() if n not in unsettled]
        self._open = [n.outputs[0] for n in unsettled]
        self._table, self._builder = table, OnnxBuilder("sizes")
        self._results: dict[Value, Value] = {}  # of rules, in the IR
        self._types = {n.outputs[0]: dtype for n, (dtype, _) in unsettled.items()}
        self._count = 0  # of sizes that are only known when the model runs

    def infer(self) -> None:
        """Learn what follows from what is known, until all of the unsettled nodes is."""
        self.run()
        before = None
        while before != (before := (len(self._nodes), len(self._types))):
            self._nodes = [n for n in self._nodes if self._is_settled() or not self._follow(n)]

    def _is_settled(self) -> bool:
        while self._open:
            shape = self.shape_of(self._open[-1])
            if shape is None or None in shape:
                return False
            self._open.pop()
        return True

    def type_of(self, value: Value) -> DType | None:
        """The element type of a value, as far as it is known."""
        return self._results.get(value, value).dtype or self._types.get(value)

    def _learn(
        self, value: Value, shape: Shape, changed: dict[Value, Shape | None] | None
    ) -> bool:  # fmt: skip
        sizes = tuple(d if is_size(d) else None for d in shape)
        return super()._learn(value, sizes, changed)

    def _follow(self, node: Node) -> bool:
        """Learn what the rule of a node tells; whether there is no more to ask of it."""
        if node.graphs():
            self._carry_types(node)
            return False
        operands = [v and self._operand(v) for v in node.inputs]
        if any(v is not None and operand is None
               for v, operand in zip(node.inputs, operands, strict=True)):  # fmt: skip
            return False
        try:
            results = self._table.apply(node, self._builder, tuple(operands))
        except (ConversionError, *ERRORS):
            return True  # it is told of when the graph is converted
        for old, new in zip(node.outputs, results, strict=False):
            if new is not None and new.shape is not None:
                self._results[old] = self._name_sizes(new, new.shape)
                self.learn(old, self._results[old].ranked_shape)
        return True

    def _operand(self, value: Value) -> Value | None:
        """``value`` in the IR, None where its type or a size is not known."""
        if value in self._results:
            return self._results[value]
        shape, dtype = self.shape_of(value), self.type_of(value)
        if shape is None or dtype is None or not all(map(is_size, shape)):
            return None
        if value.tensor is not None and value.tensor.size <= MOST_CONTENTS:
            return value
        self._results[value] = self._builder.input(value.name, *Type(dtype, shape))
        return self._results[value]

    def _name_sizes(self, value: Value, shape: Shape) -> Value:
        if None not in shape:
            return value
        names = []
        for size in shape:
            self._count += size is None
            names.append(f"_size{self._count}" if size is None else size)
        return self._builder.input(value.name, *Type(value.dtype, tuple(names)))

    def _carry_types(self, node: Node) -> None:
        """Give the values in subgraphs the types of those around them, and back."""
        for outside, inside, _ in find_links(node):
            for one, other in ((outside, inside), (inside, outside)):
                dtype = self.type_of(one)
                if dtype is not None and self.type_of(other) is None:
                    self._types[other] = dtype
