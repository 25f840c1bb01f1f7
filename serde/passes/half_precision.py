"""A model of float32 as one that computes in float16."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from serde.errors import UsageError
from serde.ir.graph import Attr, DType, Graph, Node, Tensor, Value
from serde.passes.cse import merge_repeats
from serde.passes.dce import drop_dead
from serde.spec import schema
from serde.spec.schema import ELEMENT_CODES

# Operators whose sums or squares leave the range of float16, or that count or place by floats.
KEPT = frozenset(
    "CumSum DequantizeLinear DynamicQuantizeLinear LRN LpNormalization LpPool NonMaxSuppression "
    "QuantizeLinear Range ReduceL2 ReduceLogSumExp ReduceProd ReduceSumSquare RoiAlign".split()
)
LARGEST, SMALLEST = 65504.0, 2.0**-24  # finite numbers of float16 that are not 0


def to_float16(graph: Graph, keep: Collection[str] = (), ends: bool = False) -> Graph:
    """Return ``graph`` with weights and arithmetic in float16.

    Operators in ``KEPT`` and ``keep``, those without float16 and those with subgraphs stay in
    float32. So do inputs and outputs, unless ``ends`` is set.

    Raises:
        UsageError: for a name in ``keep`` that is no operator, and where ``ends`` is set for a
            model that has float16 among its inputs and outputs already.
    """
    if unknown := [op for op in keep if schema.first_version(op) is None]:
        raise UsageError(f"fp16_keep names no operator of ONNX: {', '.join(unknown)}")
    halves = [v.name for v in (*graph.inputs, *graph.outputs) if v.dtype is DType.FLOAT16]
    if ends and halves:
        raise UsageError(f"fp16_io: {', '.join(halves)} is float16 already: leave out fp16_io")
    return _Halver(graph, KEPT.union(keep), ends).run()


class _Halver:
    """The values of a graph in float16, as far as they are there, and the nodes so far.

    A value of the graph itself is its float32.
    """

    def __init__(self, graph: Graph, keep: Collection[str], ends: bool) -> None:
        self.graph, self.keep, self.ends = graph, keep, ends
        self.halves: dict[Value, Value] = {}
        self.nodes: list[Node] = []
        self.singles = set(graph.inputs)  # that exist in float32

    def run(self) -> Graph:
        inputs = tuple(map(self.halve_input, self.graph.inputs)) if self.ends else self.graph.inputs
        for node in self.graph.nodes:
            ties = self.halved_ties(node)
            self.nodes += self.halve(node, ties) if ties else self.keep_single(node)
        outputs = tuple(self.end(v) for v in self.graph.outputs)
        for value, half in self.halves.items():
            if value not in self.singles and value.tensor is None:
                half.name = value.name
        graph = replace(self.graph, inputs=inputs, nodes=tuple(self.nodes), outputs=outputs)
        return merge_repeats(drop_dead(graph))

    def halve_input(self, value: Value) -> Value:
        if value.dtype is not DType.FLOAT32:
            return value
        self.singles.discard(value)
        return self.new_half(value)

    def end(self, value: Value) -> Value:
        """An output in the type that is asked for."""
        if self.ends and value.dtype is DType.FLOAT32:
            half = self.half(value)
            half.name = value.name
            self.singles.discard(value)
            return half
        self.single(value)
        return value

    def halved_ties(self, node: Node) -> frozenset[str]:
        """The type variables of a node that become float16; none where it stays."""
        if node.domain or node.op in self.keep or node.graphs():
            return frozenset()
        operator = schema.operator(node.op)
        ties = {
            operator.input(i).tie
            for i, v in enumerate(node.inputs)
            if v is not None and v.dtype is DType.FLOAT32 and not v.container
            and DType.FLOAT16 in operator.input(i).types
        }  # fmt: skip
        last = len(operator.outputs) - 1
        results = [(operator.outputs[min(i, last)].tie, v) for i, v in enumerate(node.outputs)]
        is_tied = all(t in ties for t, v in results if v.dtype is DType.FLOAT32)
        return frozenset(ties) if is_tied else frozenset()

    def halve(self, node: Node, ties: Collection[str]) -> Iterator[Node]:
        operator = schema.operator(node.op)
        inputs = []
        for i, value in enumerate(node.inputs):
            is_single = value is not None and value.dtype is DType.FLOAT32
            if value is None or not is_single or operator.input(i).tie not in ties:
                inputs.append(value)
            else:
                inputs.append(self.half(value))
        outputs = tuple(self.new_half(v) if v.dtype is DType.FLOAT32 else v for v in node.outputs)
        yield replace(node, inputs=tuple(inputs), outputs=outputs)

    def keep_single(self, node: Node) -> Iterator[Node]:
        read = [*node.inputs, *(v for body in node.graphs() for v in read_values(body))]
        for value in read:
            if value is not None:
                self.single(value)
        self.singles.update(node.outputs)
        yield node

    def new_half(self, value: Value) -> Value:
        self.halves[value] = Value(f"{value.name}/float16", DType.FLOAT16, value.shape)
        return self.halves[value]

    def half(self, value: Value) -> Value:
        """A value in float16, cast where it is not there."""
        if value not in self.halves and value.tensor is not None:
            self.halves[value] = halve_constant(value)
        elif value not in self.halves:
            half = self.new_half(value)
            self.nodes.append(cast(value, half))
        return self.halves[value]

    def single(self, value: Value) -> None:
        """See to it that a value is there in float32."""
        if value in self.halves and value not in self.singles and value.tensor is None:
            self.nodes.append(cast(self.halves[value], value))
            self.singles.add(value)


def cast(x: Value, y: Value) -> Node:
    """The node that makes ``y`` of ``x`` by changing its type."""
    attrs: dict[str, Attr] = {"to": ELEMENT_CODES[y.type], "saturate": 1, "round_mode": "up"}
    return Node("Cast", (x,), (y,), attrs, "", y.name)


def read_values(graph: Graph) -> Iterator[Value]:
    """The values that a subgraph reads, those around it among them."""
    yield from graph.outputs
    for node in graph.all_nodes():
        yield from (v for v in node.inputs if v is not None)
        for body in node.graphs():
            yield from body.outputs


def halve_constant(value: Value) -> Value:
    """A constant in float16; numbers that it has not become the next that is no infinity, nor 0."""
    tensor = value.tensor
    assert tensor is not None

    def load() -> np.ndarray:
        x = tensor.load().astype(np.float32)
        near = np.where(np.isfinite(x), np.clip(x, -LARGEST, LARGEST), x)
        is_tiny = (np.abs(near) < SMALLEST) & (near != 0)
        return np.where(is_tiny, np.copysign(np.float32(SMALLEST), near), near).astype(np.float16)

    return replace(value, dtype=DType.FLOAT16, tensor=Tensor(DType.FLOAT16, tensor.shape, load))
