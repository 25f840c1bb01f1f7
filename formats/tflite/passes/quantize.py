"""Layers between dequantizations and a quantization as operators on integers.

The graph comes with ``DEQUANTIZE`` and ``QUANTIZE`` of three operands: numbers, scale, zero point.
It goes with those of one, between which are only operators that have no kernel for integers.
Scales are properties of tensors then. uint8 become int8, which is the same with another zero point;
or int8 become uint8, where weights have zero points, which kernels take of uint8 only.
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

from ..integer_kernels import (
    BYTES,
    JOINS,
    KERNELS,
    MIDDLE,
    MOVES,
    READS_INTEGERS,
    WEIGHTED,
    Kernel,
    Layer,
    move_constant,
    quantize_fill,
    read_factor,
    read_real,
)
from ..quantization import Quantization
from ..target import LATER, QuantizedValue

SMALL = 1 << 12  # elements of a constant that is written as real numbers


def quantize(graph: Graph, unsigned: bool = True) -> Graph:
    """Return ``graph`` with integer operators where scales tell of which.

    Without ``unsigned`` layers are of int8 and int16 only.
    """
    if graph.operators().isdisjoint({"DEQUANTIZE", "QUANTIZE"}):
        return graph
    names = Names()
    names.used.update(v.name for v in graph.all_values())
    byte, others = DType.INT8, frozenset[DType]()
    if unsigned:
        byte = choose_byte(graph)
        others = BYTES - {byte}
    return drop_dead(_Quantizing(graph, names, byte, others).rewrite())


def read_scales(node: Node) -> Quantization:
    """The scales of a QUANTIZE or DEQUANTIZE of three operands."""
    _, scale, zero = node.inputs
    assert scale is not None
    axis: Any = node.attrs.get("axis", 0)
    zeros = 0 if zero is None else zero.ints()
    return Quantization.of(scale.array(), zeros, axis % max(node.outputs[0].rank, 1))


def choose_byte(graph: Graph) -> DType:
    """The type of 8 bits that has kernels for most layers.

    Those of int8 ask for weights without a zero point, those of uint8 for one scale of all weights.
    """
    weights: dict[Value, bool] = {}  # whether they have a zero point, of those of 8 bits
    zeroed = by_channel = 0
    for node in graph.all_nodes():
        x = node.inputs[0] if node.inputs else None
        if node.op == "DEQUANTIZE" and x is not None and x.tensor is not None and x.dtype in BYTES:
            scales = convert_byte(x.type, read_scales(node), DType.INT8)[1]
            if not (scales.is_per_tensor and scales.is_symmetric):
                weights[node.outputs[0]] = scales.is_per_tensor
        elif node.op in LATER and x in weights:
            weights[node.outputs[0]] = weights[x]
        elif node.op in WEIGHTED and (w := node.inputs[1]) in weights:
            zeroed += weights[w]
            by_channel += not weights[w]
    return DType.UINT8 if zeroed > by_channel else DType.INT8


def convert_byte(dtype: DType, scales: Quantization, byte: DType) -> tuple[DType, Quantization]:
    """The type and scales of the same real numbers, in ``byte`` where they are of 8 bits."""
    if dtype not in BYTES or dtype is byte:
        return dtype, scales
    return byte, scales.shift(MIDDLE if byte is DType.UINT8 else -MIDDLE)


def convert_constant(tensor: Tensor, byte: DType) -> Tensor:
    """Constant integers of 8 bits as those of ``byte`` that stand for the same numbers."""
    if tensor.dtype not in BYTES or tensor.dtype is byte:
        return tensor
    load, by = tensor.load, MIDDLE if byte is DType.UINT8 else -MIDDLE
    return Tensor(byte, tensor.shape, lambda: (load().astype(np.int16) + by).astype(byte.numpy))


class _Quantizing:
    """One walk over the nodes, whose integers of 8 bits become of the type ``byte``.

    Layers that it has no kernel for may be of those of ``others``.
    ``ints`` has the integers for values that are their real numbers; ``steps`` those for the
    results of QUANTIZE; ``same`` what is read in place of other values. ``ends`` has what the
    readers of a value quantize it to.
    """

    def __init__(self, graph: Graph, names: Names, byte: DType, others: frozenset[DType]) -> None:
        self.graph, self.names, self.byte, self.others = graph, names, byte, others
        self.inputs = list(graph.inputs)
        self.nodes: list[Node] = []
        self.ints: dict[Value, QuantizedValue] = {}
        self.steps: dict[Value, QuantizedValue] = {}
        self.same: dict[Value, Value] = {}
        self.stripped: dict[Value, Value] = {}
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
            node = map_bodies(node, lambda body: _Quantizing(
                body, self.names, self.byte, self.others).rewrite())  # fmt: skip
            outputs = self.pass_scales(node, inputs)
            self.nodes.append(replace(node, inputs=tuple(inputs), outputs=outputs))

    def pass_scales(self, node: Node, inputs: list[Value | None]) -> tuple[Value, ...]:
        """The results; those of quantized integers that an operator only moves are quantized too.

        XNNPACK takes no operator from quantized integers to others, and other kernels compute with
        the real numbers, or ask for the same scales: they read integers without. PAD adds what
        stands for the real 0, not the integer.
        """
        data = inputs if node.op in JOINS else inputs[: node.op in MOVES]
        computed = [v for v in data if v is not None and v.tensor is None]
        forms = {v.scales if isinstance(v, QuantizedValue) else None for v in computed}
        scales = forms.pop() if len(forms) == 1 else None
        if scales is not None and node.op == "PAD" and not scales.is_symmetric:
            scales = None
        result = node.outputs[0]
        if scales is None or result.dtype is not computed[0].dtype:
            if node.op not in READS_INTEGERS:
                inputs[:] = [None if v is None else self.strip(v) for v in inputs]
            return node.outputs
        places = [2] if node.op == "PADV2" else range(len(data))
        for at in places:  # constants are the same integers with scales
            if (constant := inputs[at]) is not None and constant.tensor is not None:
                inputs[at] = self.constant(constant.name, constant.tensor, scales)
        moved = QuantizedValue(result.name, result.dtype, result.shape, scales=scales)
        self.same[result] = moved
        return (moved, *node.outputs[1:])

    def strip(self, value: Value) -> Value:
        """The same integers without scales."""
        if not isinstance(value, QuantizedValue) or value.scales is None:
            return value
        if value not in self.stripped:
            self.stripped[value] = self.copy(value, value, None)
        return self.stripped[value]

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
        """The integers of a QUANTIZE."""
        x, dtype, scales = node.inputs[0], node.outputs[0].type, read_scales(node)
        assert x is not None
        dtype, scales = convert_byte(dtype, scales, self.byte)
        integers = self.ints.get(x)
        if integers is not None and (integers.dtype, integers.scales) == (dtype, scales):
            return integers
        return self.emit(node, "QUANTIZE", [self.get(x) if integers is None else integers], dtype,
                         scales)  # fmt: skip

    def as_quantized(self, node: Node, x: Value, scales: Quantization) -> QuantizedValue:
        """Integers with the scales that a DEQUANTIZE names."""
        dtype, converted = convert_byte(x.type, scales, self.byte)
        if x.tensor is not None:
            return self.constant(x.name, convert_constant(x.tensor, self.byte), converted)
        known = self.steps.get(x)
        if known is not None and known.scales == converted:
            return known
        original = self.get(x)
        if isinstance(original, QuantizedValue) and original.scales == scales == converted:
            return original
        value: QuantizedValue
        if original in self.inputs and not isinstance(original, QuantizedValue):
            value = QuantizedValue(x.name, x.dtype, x.shape, scales=scales)
            self.inputs[self.inputs.index(original)] = self.same[x] = value
        else:
            value = self.copy(original, x, scales)
        return value if dtype is x.dtype else self.emit(node, "QUANTIZE", [value], dtype, converted)

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
        """Integers of the type that the source has."""
        if value.dtype is integers.dtype:
            return integers
        assert integers.scales is not None
        dtype, scales = convert_byte(integers.type, integers.scales, value.type)
        declared = QuantizedValue(value.name, dtype, value.shape, scales=scales)
        self.nodes.append(Node("QUANTIZE", (integers,), (declared,), domain=self.graph.domain))
        return declared

    def name_output(self, value: Value) -> Value:
        """An output, under its name."""
        result = self.get(value)
        if result.name != value.name:
            if result in (*self.inputs, *self.graph.outputs, *self.named):
                scales = result.scales if isinstance(result, QuantizedValue) else None
                result = self.copy(result, value, scales)
            result.name = value.name
        self.named.add(result)
        return result

    def copy(self, x: Value, like: Value, scales: Quantization | None) -> QuantizedValue:
        """The same integers as a tensor of its own."""
        sizes = np.asarray([d if isinstance(d, int) else -1 for d in x.ranked_shape], np.int32)
        shape = Value(self.names.fresh("const"), DType.INT32, sizes.shape, Tensor.of(sizes))
        value = QuantizedValue(self.names.fresh(like.name), x.dtype, x.shape, scales=scales)
        self.nodes.append(Node("RESHAPE", (x, shape), (value,), domain=self.graph.domain))
        return value

    # Operators

    def find_integers(self, node: Node) -> QuantizedValue | None:
        """What an operator computes of integers; None where it computes with real numbers.

        Where the type of most layers has no kernel, or none of such weights, the other one may.
        """
        if node.op in MOVES and len(node.outputs) == 1:
            return self.move(node)
        if node.op in JOINS:
            return self.join(node)
        kernel = KERNELS.get(node.op)
        end = None if kernel is None else self.ends[node.outputs[0]]
        if kernel is None or end is None:
            return None
        operands = [None if v is None else self.ints.get(v, v) for v in node.inputs]
        integers = self.compute(kernel, Layer(node, tuple(operands), *end))
        for byte in self.others if integers is None and end[0] in BYTES else ():
            parts = tuple([self.as_byte(node, v, byte) for v in operands])
            integers = self.compute(kernel, Layer(node, parts, *convert_byte(*end, byte)))
        if integers is None or (integers.dtype, integers.scales) == end:
            return integers
        return self.emit(node, "QUANTIZE", [integers], *end)

    def compute(self, kernel: Kernel, wanted: Layer) -> QuantizedValue | None:
        """The integers that a kernel computes of such a layer, None where it takes none."""
        layer = kernel(wanted)
        if layer is None:
            return None
        node = layer.node
        for at, v in enumerate(layer.operands):
            if isinstance(v, QuantizedValue) and not v.name:
                v.name = self.names.fresh(f"{node.outputs[0].name}_{at}")
        inputs = [None if v is None else self.get(v) for v in layer.operands]
        return self.emit(node, node.op, inputs, layer.dtype, layer.scales, attrs=node.attrs)

    def as_byte(self, node: Node, value: Value | None, byte: DType) -> Value | None:
        """Integers of 8 bits as those of ``byte`` that stand for the same numbers."""
        if not isinstance(value, QuantizedValue) or value.dtype not in BYTES or not value.scales:
            return value
        dtype, scales = convert_byte(value.type, value.scales, byte)
        if value.tensor is not None:
            return self.constant(value.name, convert_constant(value.tensor, byte), scales)
        return self.emit(node, "QUANTIZE", [value], dtype, scales, shape=value.shape)

    def find_end(self, value: Value) -> tuple[DType, Quantization] | None:
        """The one type and scales that all readers of a value quantize it to.

        ``ends`` has those of what the readers make. Steps of a product with a number are those of
        the other operand in another unit.
        """
        if value in self.outputs or not self.readers[value]:
            return None
        ends: set[tuple[DType, Quantization] | None] = set()
        for reader in self.readers[value]:
            if reader.op == "QUANTIZE":
                dtype = reader.outputs[0].type
                ends.add(convert_byte(dtype, read_scales(reader), self.byte))
            elif reader.op in MOVES and reader.inputs[0] is value and len(reader.outputs) == 1:
                ends.add(self.ends[reader.outputs[0]])
            elif (factor := read_factor(reader, value)) is not None:
                end = self.ends[reader.outputs[0]]
                ends.add(end and (end[0], end[1].rescale(1 / factor)))
            else:
                return None
        return ends.pop() if len(ends) == 1 else None

    def move(self, node: Node) -> QuantizedValue | None:
        """An operator that only moves elements, on integers."""
        x = node.inputs[0]
        integers = None if x is None else self.ints.get(x)
        if integers is None or integers.scales is None:
            return None
        if integers.tensor is not None and node.op != "GATHER":
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
