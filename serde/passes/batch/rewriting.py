"""Write a graph for another batch, where the analysis has found the places of the old one.

Nodes are copied; constant shapes that hold the old batch are written anew, and operands that are
one for all samples are expanded where an operator does not broadcast them. Shapes that nodes
compute with stay those of the old batch: what is computed of them is one for all samples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from serde.errors import ConversionError, Unconvertible
from serde.ir.builder import Builder
from serde.ir.geometry import may_be_same
from serde.ir.graph import Graph, Node, Shape, Source, Value, show_shape
from serde.passes.batch.analysis import Analysis, describe_problem
from serde.passes.batch.emitter import Emitter
from serde.passes.batch.nodes import find_data_place
from serde.passes.batch.shapes import write_sizes
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.follow_sizes import follow_sizes
from serde.spec.onnx_builder import OnnxBuilder


def write_batch(analysis: Analysis, batch: int | str) -> Graph:
    """The graph of an analysis for another batch, a number or a name; types are to be inferred."""
    return _Rewriting(analysis, batch).run()


def infer_again(graph: Graph) -> Graph:
    """Infer the types of a graph, and fold what is known; sizes have to be those it says."""
    return RuleTable("batch", fallback=_emit_compared).rewrite(graph, OnnxBuilder(graph.name))


def _emit_compared(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """Emit a node anew, and compare the sizes of its outputs."""
    results = again(builder, node, inputs)
    pairs = zip(node.outputs, results if isinstance(results, tuple) else (results,), strict=True)
    for old, new in pairs:
        if old.shape is None or new.shape is None or _may_be_same(old.shape, new.shape):
            continue
        shapes = f"{show_shape(new.shape)} in place of {show_shape(old.shape)}"
        raise ConversionError(f"has the shape {shapes}")
    return results


def check_sizes(graph: Graph, is_typed: bool = False) -> Graph:
    """The graph if its nodes have the sizes that it says; ``is_typed``: and it says all of them.

    Otherwise types are inferred, and refused where they are others.
    """
    shapes = follow_sizes(graph, {})
    pairs = () if shapes is None else shapes.items()
    is_known = shapes is not None and all(
        not is_typed if v.shape is None else _may_be_same(v.shape, s) for v, s in pairs
    )
    return graph if is_known else infer_again(graph)


def _may_be_same(a: Shape, b: Shape) -> bool:
    if a == b:
        return True
    return len(a) == len(b) and all(may_be_same(x, y) for x, y in zip(a, b, strict=True))


class _Rewriting(Emitter):
    def run(self) -> Graph:
        graph = self.analysis.graph
        inputs = tuple([self.declare(v) for v in graph.inputs])
        nodes, outputs = self.copy_nodes(graph)
        for old, new in zip(graph.outputs, outputs, strict=True):
            if new.name != old.name and old in self.values:
                self.values[old].name = new.name
            new.name = old.name
        front = [] if self.batch_size is None else [self.batch_node]
        return replace(graph, inputs=inputs, nodes=(*front, *nodes), outputs=outputs)

    def copy_nodes(self, graph: Graph) -> tuple[tuple[Node, ...], tuple[Value, ...]]:
        """The nodes of a graph or a subgraph, and its outputs."""
        around = self.nodes, self.expanded
        self.nodes, self.expanded = [], {}
        for node in graph.nodes:
            try:
                self.copy_node(node)
            except ConversionError as error:
                raise Unconvertible("batch", [describe_problem(node, error)]) from None
        expansions = self.state.results.get(id(graph), {})
        outputs = [
            self.expand(v, expansions[i]) if i in expansions else self.read(v)
            for i, v in enumerate(graph.outputs)
        ]
        nodes = tuple(self.nodes)
        self.nodes, self.expanded = around
        return nodes, tuple(outputs)

    def copy_body(self, body: Graph) -> Graph:
        inputs = tuple([self.declare(v) for v in body.inputs])
        nodes, outputs = self.copy_nodes(body)
        return replace(body, inputs=inputs, nodes=nodes, outputs=outputs)

    def copy_node(self, node: Node) -> None:
        """A node that reads what stands for its operands, or those that stand for it."""
        self.sources = node.sources or (Source("batch", node.op, node.name),)
        expansions = self.state.expansions.get(node.outputs[0], {}) if node.outputs else {}
        inputs = [
            self.expand(v, expansions[i]) if v is not None and i in expansions else self.read(v)
            for i, v in enumerate(node.inputs)
        ]
        op, attrs = node.op, node.attrs
        if node.graphs():
            attrs = {k: self.copy_body(v) if isinstance(v, Graph) else v for k, v in attrs.items()}
        place = find_data_place(self.state, node)
        if place is not None and node.domain == "":
            op, inputs, attrs = write_sizes(self, node, place, inputs, attrs)
        outputs = tuple([self.declare(v) for v in node.outputs])
        if any(v in self.state.places for v in node.outputs):
            for old, new in zip(node.outputs, outputs, strict=True):
                if old not in self.state.places:
                    new.shape = None  # it mixes samples, and nothing reads it: indices of MaxPool
        self.nodes.append(
            Node(op, tuple(inputs), outputs, attrs, node.domain, node.name, node.sources)
        )
