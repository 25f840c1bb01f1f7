"""A model of float16 or bfloat16 as one of float32."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from serde.errors import UsageError
from serde.ir.builder import Names
from serde.ir.graph import Attr, DType, Graph, Node, Tensor, Value
from serde.passes.half_precision import cast
from serde.spec.schema import ELEMENT_CODES

NARROW = frozenset({DType.FLOAT16, DType.BFLOAT16})
WIDENED = NARROW | {DType.FLOAT32}
CODES = frozenset(ELEMENT_CODES[dtype] for dtype in NARROW)
# Attributes that name the element type of a result, or one that is computed in.
TYPE_ATTRIBUTES = frozenset(
    {"dtype", "output_datatype", "output_dtype", "precision", "softmax_precision", "to"}
)


def to_float32(graph: Graph, *, keeps_ends: bool = False, most: float = math.inf) -> Graph:
    """Return ``graph`` with float32 in place of float16 and bfloat16: weights, arithmetic, inputs,
    outputs, subgraphs. Weights keep their numbers. Where there is none, a note says so.

    ``keeps_ends``: inputs and outputs stay, and are cast. So are constants of more elements than
    ``most``.

    Raises:
        UsageError: where a model reads the bits of such a number.
    """
    if not any(v.dtype in NARROW for v in graph.all_values()):
        note = "fp32: nothing became float32: the model has no float16 and no bfloat16"
        return replace(graph, notes=(*graph.notes, note))
    widener = _Widener(graph, most)
    result = widener.widen_graph(graph)
    if keeps_ends:
        result = widener.cast_ends(graph, result)
    return replace(result, nodes=(*widener.casts, *result.nodes))


class _Widener:
    """What is read in place of the values of a graph and its subgraphs, as far as it is another."""

    def __init__(self, graph: Graph, most: float) -> None:
        self.most = most
        self.values: dict[Value, Value] = {}
        self.casts: list[Node] = []
        self.names = Names()
        self.names.used.update(v.name for v in graph.all_values())

    def cast_ends(self, graph: Graph, result: Graph) -> Graph:
        """The inputs and outputs as they were."""
        nodes = list(result.nodes)
        for value, widened in dict.fromkeys(zip(graph.inputs, result.inputs, strict=True)):
            if value is not widened:
                self.rename(widened)
                self.casts.append(cast(value, widened))
        for value, widened in dict.fromkeys(zip(graph.outputs, result.outputs, strict=True)):
            if value is not widened and value not in graph.inputs:
                self.rename(widened)
                nodes.append(cast(widened, value))
        return replace(result, inputs=graph.inputs, nodes=tuple(nodes), outputs=graph.outputs)

    def rename(self, value: Value) -> None:
        value.name = self.names.fresh(f"{value.name}/float32")

    def widen_graph(self, graph: Graph) -> Graph:
        inputs = tuple(map(self.widen, graph.inputs))
        nodes = []
        for node in graph.nodes:
            x = self.find_same(node)
            if x is None:
                nodes.append(self.widen_node(node))
            elif node.outputs[0] in graph.outputs:
                widened = self.widen_node(node)
                nodes.append(replace(widened, op="Identity", attrs={}))
            else:
                self.values[node.outputs[0]] = self.widen(x)
        outputs = tuple(map(self.widen, graph.outputs))
        return replace(graph, inputs=inputs, nodes=tuple(nodes), outputs=outputs)

    def find_same(self, node: Node) -> Value | None:
        """The operand of a Cast that changes nothing any more."""
        if node.op != "Cast" or node.domain:
            return None
        x, y = node.inputs[0], node.outputs[0]
        return x if x is not None and {x.dtype, y.dtype} <= WIDENED else None

    def widen_node(self, node: Node) -> Node:
        inputs = tuple(None if v is None else self.widen(v) for v in node.inputs)
        outputs = tuple(map(self.widen, node.outputs))
        if node.op == "BitCast" and (inputs, outputs) != (node.inputs, node.outputs):
            raise UsageError(f"{node.name} (BitCast): reads the bits of float16. Leave out fp32.")
        attrs = {name: self.widen_attribute(name, value) for name, value in node.attrs.items()}
        return replace(node, inputs=inputs, outputs=outputs, attrs=attrs)

    def widen_attribute(self, name: str, value: Attr) -> Attr:
        if isinstance(value, Graph):
            return self.widen_graph(value)
        if isinstance(value, Tensor):
            return widen_tensor(value)
        is_narrow = name in TYPE_ATTRIBUTES and value in CODES
        return ELEMENT_CODES[DType.FLOAT32] if is_narrow else value

    def widen(self, value: Value) -> Value:
        """The value in float32."""
        if value not in self.values:
            if value.dtype not in NARROW:
                return value
            tensor = None if value.tensor is None else widen_tensor(value.tensor)
            is_kept = tensor is not None and tensor.size > self.most
            widened = replace(value, dtype=DType.FLOAT32, tensor=None if is_kept else tensor)
            self.values[value] = widened
            if is_kept:
                self.rename(widened)
                self.casts.append(cast(value, widened))
        return self.values[value]


def widen_tensor(tensor: Tensor) -> Tensor:
    """A constant in float32."""
    if tensor.dtype not in NARROW:
        return tensor
    return Tensor(DType.FLOAT32, tensor.shape, lambda: tensor.load().astype(np.float32))
