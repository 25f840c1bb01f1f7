"""Layers between dequantizations and a quantization as operators on integers.

The graph comes with ``DEQUANTIZE`` and ``QUANTIZE`` of three operands: numbers, scale, zero point.
It goes with those of one, between which are only operators that have no kernel for integers.
Scales are properties of tensors then. uint8 become int8, which is the same with another zero point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from serde.ir.builder import Names
from serde.ir.graph import EMPTY, DType, Graph, Node, Shape, Tensor, Value
from serde.ir.map_nodes import map_bodies
from serde.passes.dce import drop_dead

from ..integer_kernels import JOINS, KERNELS, MOVES, Layer, move_constant, quantize_fill, read_real
from ..quantization import Quantization
from ..target import QuantizedValue

MIDDLE = 128  # what uint8 and int8 of the same number differ by
SMALL = 1 << 12  # elements of a constant that is written as real numbers


def quantize(graph: Graph) -> Graph:
    """Return ``graph`` with integer operators where scales tell of which."""
    if graph.operators().isdisjoint({"DEQUANTIZE", "QUANTIZE"}):
        return graph
    names = Names()
    names.used.update(v.name for v in graph.all_values())
    return drop_dead(_Quantizing(graph, names).rewrite())


def read_scales(node: Node) -> Quantization:
    """The scales of a QUANTIZE or DEQUANTIZE of three operands."""
    _, scale, zero = node.inputs
    assert scale is not None
    axis: Any = node.attrs.get("axis", 0)
    zeros = 0 if zero is None else zero.ints()
    return Quantization.of(scale.array(), zeros, axis % max(node.outputs[0].rank, 1))


def shift(scales: Quantization, by: int = -MIDDLE) -> Quantization:
    """Those of int8 for those of uint8."""
    return replace(scales, zero=scales.zero + by)


def make_signed(tensor: Tensor) -> Tensor:
    """Constant uint8 as the int8 that stand for the same numbers."""
    load = tensor.load
    return Tensor(
        DType.INT8, tensor.shape, lambda: (load().astype(np.int16) - MIDDLE).astype(np.int8)
    )


class _Quantizing:
    """One walk over the nodes.

    ``ints`` has the integers for values that are their real numbers; ``steps`` those, as int8, for
    the results of QUANTIZE; ``same`` what is read in place of other values. ``ends`` has what the
    readers of a value quantize it to.
    """

    def __init__(self, graph: Graph, names: Names) -> None:
        self.graph, self.names = graph, names
        self.inputs = list(graph.inputs)
        self.nodes: list[Node] = []
        self.ints: dict[Value, QuantizedValue] = {}
        self.steps: dict[Value, QuantizedValue] = {}
        self.same: dict[Value, Value] = {}
        self.named: set[Value] = set()  # outputs so far
        self.readers: dict[Value, list[Node]] = defaultdict(list)
        for node in graph.nodes:
            for value in {v for v in node.inputs if v is not None}:
                self.readers[value].append(node)
        self.outputs = frozenset(graph.outputs)
        self.ends: dict[Value, tuple[DType, Quantization] | None] = {}
        for node in reversed(graph.nodes):
            self.ends.update((value, self.find_end(value)) for value in node.outputs)

    def rewrite(self) -> Graph:
        for node in self.graph.nodes:
            self.rewrite_node(node)
        outputs = tuple([self.name_output(v) for v in self.graph.outputs])
        return replace(
            self.graph, inputs=tuple(self.inputs), nodes=tuple(self.nodes), outputs=outputs
        )

    def rewrite_node(self, node: Node) -> None:
        result = node.outputs[0] if node.outputs else None
        if result is None:
            self.nodes.append(node)
        elif node.op == "DEQUANTIZE":
            assert node.inputs[0] is not None
            self.ints[result] = self.as_quantized(node, node.inputs[0], read_scales(node))
        elif node.op == "QUANTIZE":
            self.steps[result] = self.round(node)
        elif (integers := self.find_integers(node)) is not None:
            self.ints[result] = integers
        else:
            inputs = [None if v is None else self.get(v) for v in node.inputs]
            node = map_bodies(node, lambda body: _Quantizing(body, self.names).rewrite())
            outputs = self.pass_scales(node, inputs)
            self.nodes.append(replace(node, inputs=tuple(inputs), outputs=outputs))

    def pass_scales(self, node: Node, inputs: list[Value | None]) -> tuple[Value, ...]:
        """The results; those of quantized integers that an operator only moves are quantized too.

        XNNPACK takes no operator from quantized integers to others.
        """
        x, result = inputs[0] if inputs else None, node.outputs[0]
        if node.op not in MOVES or not isinstance(x, QuantizedValue) or x.scales is None:
            return node.outputs
        if result.dtype is not x.dtype:
            return node.outputs
        if node.op == "PADV2" and (fill := inputs[2]) is not None and fill.tensor is not None:
            inputs[2] = self.constant(fill.name, fill.tensor, x.scales)
        moved = QuantizedValue(result.name, result.dtype, result.shape, scales=x.scales)
        self.same[result] = moved
        return (moved, *node.outputs[1:])

    # Values

    def emit(
        self, node: Node, op: str, inputs: Sequence[Value | None], dtype: DType,
        scales: Quantization, shape: Shape | None = None, attrs: Mapping[str, Any] = EMPTY,
    ) -> QuantizedValue:  # fmt: skip
        """An operator whose result are integers."""
        shape = node.outputs[0].shape if shape is None else shape
        value = QuantizedValue(self.names.fresh(node.outputs[0].name), dtype, shape, scales=scales)
        self.nodes.append(replace(node, op=op, inputs=tuple(inputs), outputs=(value,), attrs=attrs))
        return value

    def constant(self, name: str, tensor: Tensor, scales: Quantization) -> QuantizedValue:
        return QuantizedValue(
            self.names.fresh(name), tensor.dtype, tensor.shape, tensor, scales=scales
        )

    def round(self, node: Node) -> QuantizedValue:
        """The integers of a QUANTIZE, as int8 if they are of 8 bits."""
        x, dtype, scales = node.inputs[0], node.outputs[0].type, read_scales(node)
        assert x is not None
        if dtype is DType.UINT8:
            dtype, scales = DType.INT8, shift(scales)
        integers = self.ints.get(x)
        if integers is not None and (integers.dtype, integers.scales) == (dtype, scales):
            return integers
        return self.emit(node, "QUANTIZE", [self.get(x) if integers is None else integers], dtype,
                         scales)  # fmt: skip

    def as_quantized(self, node: Node, x: Value, scales: Quantization) -> QuantizedValue:
        """Integers with the scales that a DEQUANTIZE names, as int8 if they are uint8."""
        is_unsigned = x.dtype is DType.UINT8
        signed = shift(scales) if is_unsigned else scales
        if x.tensor is not None:
            tensor = make_signed(x.tensor) if is_unsigned else x.tensor
            return self.constant(x.name, tensor, signed)
        known = self.steps.get(x)
        if known is not None and known.scales == signed:
            return known
        original = self.get(x)
        value: QuantizedValue
        if original in self.inputs and not isinstance(original, QuantizedValue):
            value = QuantizedValue(x.name, x.dtype, x.shape, scales=scales)
            self.inputs[self.inputs.index(original)] = self.same[x] = value
        else:
            value = self.copy(original, x)
            value.scales = scales
        return self.emit(node, "QUANTIZE", [value], DType.INT8, signed) if is_unsigned else value

    def get(self, value: Value) -> Value:
        """What is read in place of a value of the source graph, of the same type."""
        if value not in self.same:
            if value in self.ints:
                self.same[value] = self.dequantize(value, self.ints[value])
            elif value in self.steps:
                self.same[value] = self.as_declared(value, self.steps[value])
        return self.same.get(value, value)

    def dequantize(self, value: Value, integers: QuantizedValue) -> Value:
        """Integers as real numbers: constants that are small, or of 32 bits, at once."""
        real = Value(value.name, DType.FLOAT32, value.shape)
        tensor = integers.tensor
        if tensor is not None and (tensor.size <= SMALL or tensor.dtype is DType.INT32):
            real.tensor = Tensor(DType.FLOAT32, tensor.shape, lambda: read_real(integers))
        else:
            operand: Value = integers
            if tensor is not None and tensor.dtype is DType.FLOAT16:  # the file has no scales of it
                operand = Value(integers.name, tensor.dtype, integers.shape, tensor)
            self.nodes.append(Node("DEQUANTIZE", (operand,), (real,), domain=self.graph.domain))
        return real

    def as_declared(self, value: Value, integers: QuantizedValue) -> Value:
        """int8 as the uint8 that the source has."""
        if value.dtype is integers.dtype:
            return integers
        assert integers.scales is not None
        scales = shift(integers.scales, MIDDLE)
        unsigned = QuantizedValue(value.name, value.dtype, value.shape, scales=scales)
        self.nodes.append(Node("QUANTIZE", (integers,), (unsigned,), domain=self.graph.domain))
        return unsigned

    def name_output(self, value: Value) -> Value:
        """An output, under its name."""
        result = self.get(value)
        if result.name != value.name:
            if result in (*self.inputs, *self.graph.outputs, *self.named):
                result = self.copy(result, value)
            result.name = value.name
        self.named.add(result)
        return result

    def copy(self, x: Value, like: Value) -> QuantizedValue:
        """The same integers as a tensor of its own."""
        sizes = np.asarray([d if isinstance(d, int) else -1 for d in x.ranked_shape], np.int32)
        shape = Value(self.names.fresh("const"), DType.INT32, sizes.shape, Tensor.of(sizes))
        scales = x.scales if isinstance(x, QuantizedValue) else None
        value = QuantizedValue(self.names.fresh(like.name), x.dtype, x.shape, scales=scales)
        self.nodes.append(Node("RESHAPE", (x, shape), (value,), domain=self.graph.domain))
        return value

    # Operators

    def find_integers(self, node: Node) -> QuantizedValue | None:
        """What an operator computes of integers; None where it computes with real numbers."""
        if node.op in MOVES and len(node.outputs) == 1:
            return self.move(node)
        if node.op in JOINS:
            return self.join(node)
        kernel = KERNELS.get(node.op)
        end = None if kernel is None else self.ends[node.outputs[0]]
        if kernel is None or end is None:
            return None
        dtype, scales = end
        operands = [None if v is None else self.ints.get(v, v) for v in node.inputs]
        layer = kernel(Layer(node, tuple(operands), dtype, scales))
        if layer is None:
            return None
        for at, v in enumerate(layer.operands):
            if isinstance(v, QuantizedValue) and not v.name:
                v.name = self.names.fresh(f"{node.outputs[0].name}_{at}")
        inputs = [None if v is None else self.get(v) for v in layer.operands]
        integers = self.emit(node, node.op, inputs, dtype, layer.scales, attrs=node.attrs)
        if layer.scales == scales:
            return integers
        return self.emit(node, "QUANTIZE", [integers], dtype, scales)

    def find_end(self, value: Value) -> tuple[DType, Quantization] | None:
        """The one type and scales that all readers of a value quantize it to.

        ``ends`` has those of what the readers make.
        """
        if value in self.outputs or not self.readers[value]:
            return None
        ends: set[tuple[DType, Quantization] | None] = set()
        for reader in self.readers[value]:
            if reader.op == "QUANTIZE":
                scales, dtype = read_scales(reader), reader.outputs[0].type
                ends.add((dtype, scales) if dtype is not DType.UINT8
                         else (DType.INT8, shift(scales)))  # fmt: skip
            elif reader.op in MOVES and reader.inputs[0] is value and len(reader.outputs) == 1:
                ends.add(self.ends[reader.outputs[0]])
            else:
                return None
        return ends.pop() if len(ends) == 1 else None

    def move(self, node: Node) -> QuantizedValue | None:
        """An operator that only moves elements, on integers."""
        x = node.inputs[0]
        integers = None if x is None else self.ints.get(x)
        if integers is None or integers.scales is None:
            return None
        if integers.tensor is not None:
            moved = move_constant(node, integers.tensor, integers.scales)
            return None if moved is None else self.constant(integers.name, *moved)
        if integers.dtype not in MOVES[node.op] or not integers.scales.is_per_tensor:
            return None
        inputs = [integers, *(None if v is None else self.get(v) for v in node.inputs[1:])]
        if node.op == "PADV2":
            fill = quantize_fill(node.inputs[2], integers)
            if fill is None:
                return None
            inputs[2] = self.constant("fill", fill, integers.scales)
        return self.emit(node, node.op, inputs, integers.type, integers.scales, attrs=node.attrs)

    def join(self, node: Node) -> QuantizedValue | None:
        """An operator whose results are elements of its operands, all of the same scales."""
        ints = [v for v in map(self.ints.get, node.inputs) if v is not None]  # type: ignore[arg-type]
        forms = [(v.type, v.scales) for v in ints if v.scales is not None]
        end = self.ends[node.outputs[0]]
        if end is None and len(set(forms)) == 1:
            end = forms[0]
        if len(ints) < len(node.inputs) or end is None or end[0] not in JOINS[node.op]:
            return None
        inputs = [
            v if form == end else self.emit(node, "QUANTIZE", [v], *end, shape=v.shape)
            for v, form in zip(ints, forms, strict=True)
        ]
        return self.emit(node, node.op, inputs, *end, attrs=node.attrs)
