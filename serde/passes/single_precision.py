"""A model of float16, bfloat16 or float64 as one of float32."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from serde.errors import UsageError
from serde.ir.builder import Names
from serde.ir.graph import Attr, DType, Graph, Node, Tensor, Value
from serde.passes.half_precision import cast
from serde.spec.schema import ELEMENT_CODES

NARROW = frozenset({DType.FLOAT16, DType.BFLOAT16})
OTHER = NARROW | {DType.FLOAT64}
LIMITS = np.finfo(np.float32)
# Attributes that name the element type of a result, or one that is computed in.
TYPE_ATTRIBUTES = frozenset(
    {"dtype", "output_datatype", "output_dtype", "precision", "softmax_precision", "to"}
)


def to_float32(
    graph: Graph, types: frozenset[DType] = OTHER, *, keeps_ends: bool = False,
    most: float = math.inf,
) -> Graph:  # fmt: skip
    """Return ``graph`` with float32 in place of other floats: weights, arithmetic, inputs, outputs,
    subgraphs. Weights of fewer bits keep their numbers, those of float64 are rounded. Where there
    is none, a note says so.

    ``types`` are those that become float32. ``keeps_ends``: inputs and outputs stay, and are cast.
    So are constants of more elements than ``most``.

    Raises:
        UsageError: where a model reads the bits of such a number.
    """
    if not any(v.dtype in types for v in graph.all_values()):
        note = "fp32: nothing became float32: the model has no float16, bfloat16 or float64"
        return replace(graph, notes=(*graph.notes, note))
    converter = _Converter(graph, types, most)
    result = converter.convert_graph(graph)
    if keeps_ends:
        result = converter.cast_ends(graph, result)
    return replace(result, nodes=(*converter.casts, *result.nodes))


class _Converter:
    """What is read in place of the values of a graph and its subgraphs, as far as it is another."""

    def __init__(self, graph: Graph, types: frozenset[DType], most: float) -> None:
        self.types, self.most = types, most
        self.codes = frozenset(ELEMENT_CODES[dtype] for dtype in types)
        self.values: dict[Value, Value] = {}
        self.casts: list[Node] = []
        self.names = Names()
        self.names.used.update(v.name for v in graph.all_values())

    def cast_ends(self, graph: Graph, result: Graph) -> Graph:
        """The inputs and outputs as they were."""
        nodes = list(result.nodes)
        for value, converted in dict.fromkeys(zip(graph.inputs, result.inputs, strict=True)):
            if value is not converted:
                self.rename(converted)
                self.casts.append(cast(value, converted))
        for value, converted in dict.fromkeys(zip(graph.outputs, result.outputs, strict=True)):
            if value is not converted and value not in graph.inputs:
                self.rename(converted)
                nodes.append(cast(converted, value))
        return replace(result, inputs=graph.inputs, nodes=tuple(nodes), outputs=graph.outputs)

    def rename(self, value: Value) -> None:
        value.name = self.names.fresh(f"{value.name}/float32")

    def convert_graph(self, graph: Graph) -> Graph:
        inputs = tuple(map(self.convert, graph.inputs))
        nodes = []
        for node in graph.nodes:
            x = self.find_same(node)
            if x is None:
                nodes.append(self.convert_node(node))
            elif node.outputs[0] in graph.outputs:
                converted = self.convert_node(node)
                nodes.append(replace(converted, op="Identity", attrs={}))
            else:
                self.values[node.outputs[0]] = self.convert(x)
        outputs = tuple(map(self.convert, graph.outputs))
        return replace(graph, inputs=inputs, nodes=tuple(nodes), outputs=outputs)

    def find_same(self, node: Node) -> Value | None:
        """The operand of a Cast that changes nothing any more."""
        if node.op != "Cast" or node.domain:
            return None
        x, y = node.inputs[0], node.outputs[0]
        return x if x is not None and {x.dtype, y.dtype} <= self.types | {DType.FLOAT32} else None

    def convert_node(self, node: Node) -> Node:
        inputs = tuple(None if v is None else self.convert(v) for v in node.inputs)
        outputs = tuple(map(self.convert, node.outputs))
        if node.op == "BitCast" and (inputs, outputs) != (node.inputs, node.outputs):
            raise UsageError(f"{node.name} (BitCast): reads the bits of a float. Leave out fp32.")
        attrs = {name: self.convert_attribute(name, value) for name, value in node.attrs.items()}
        return replace(node, inputs=inputs, outputs=outputs, attrs=attrs)

    def convert_attribute(self, name: str, value: Attr) -> Attr:
        if isinstance(value, Graph):
            return self.convert_graph(value)
        if isinstance(value, Tensor):
            return make_float32(value) if value.dtype in self.types else value
        names_type = name in TYPE_ATTRIBUTES and value in self.codes
        return ELEMENT_CODES[DType.FLOAT32] if names_type else value

    def convert(self, value: Value) -> Value:
        """The value in float32."""
        if value not in self.values:
            if value.dtype not in self.types:
                return value
            tensor = None if value.tensor is None else make_float32(value.tensor)
            is_kept = tensor is not None and tensor.size > self.most
            converted = replace(value, dtype=DType.FLOAT32, tensor=None if is_kept else tensor)
            self.values[value] = converted
            if is_kept:
                self.rename(converted)
                self.casts.append(cast(value, converted))
        return self.values[value]


def make_float32(tensor: Tensor) -> Tensor:
    """A constant in float32.

    Numbers of float64 beyond the range of float32 are the largest there is, and those below its
    normal ones the least of these: masks stay finite, and divisors other than 0.
    """

    def load() -> Any:
        array = tensor.load()
        if tensor.dtype is not DType.FLOAT64:
            return array.astype(np.float32)
        size = np.abs(array)
        size = np.where(np.isfinite(size), np.minimum(size, LIMITS.max), size)
        size = np.where(size > 0, np.maximum(size, LIMITS.tiny), size)
        return np.copysign(size, array).astype(np.float32)

    return Tensor(DType.FLOAT32, tensor.shape, load)
