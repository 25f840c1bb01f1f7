"""The builder of graphs of TensorFlow Lite's operators, and the tables of rules that fill it.

A graph of the domain ``tflite`` has a node for each operator of the file, named as the schema names
it; its attributes are the fields of the operator's options. Every value has its type and shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.builder import Builder, set_type
from serde.ir.graph import DType, Node, Shape, Tensor, Value
from serde.legalize.target import legalization_table
from serde.passes.layout.place import to_first, to_last
from serde.rewrite.writer_table import WriterTable
from serde.spec.traits import RESHAPES

from .io.schema import enums
from .quantization import Quantization

DOMAIN = "tflite"
TITLE = "TensorFlow Lite"
writes = WriterTable("ir → tflite", TITLE, ("", DOMAIN))
# Operators that TensorFlow Lite has not, or not in such a form, as operators of the IR that it has.
legalizations = legalization_table("ir → tflite")
Order = tuple[int, ...]
Axes = Sequence[int | None]  # which axis each size is that of
# Attributes that are subgraphs, and the options that have their numbers.
BODIES = {
    "then_branch": "then_subgraph_index", "else_branch": "else_subgraph_index",
    "cond": "cond_subgraph_index", "body": "body_subgraph_index",
}  # fmt: skip
# Operands that operators change, by operator: tensors that are variables.
STATES: Mapping[str, Sequence[int]] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19), "UNIDIRECTIONAL_SEQUENCE_RNN": (4,),
}  # fmt: skip
LATER = ("RESHAPE", "TRANSPOSE")  # what may be between a dequantized weight and its layer


@dataclass(eq=False, slots=True, repr=False)
class QuantizedValue(Value):
    """A tensor of integers that stand for real numbers."""

    scales: Quantization | None = None


class TfliteBuilder(Builder):
    """Grows a graph of TensorFlow Lite's operators, each with its results' types."""

    domain = DOMAIN
    identity = "RESHAPE"

    def __init__(self, name: str, opset: int = 0, outer: Builder | None = None) -> None:
        super().__init__(name, opset, outer)
        self._makers: dict[Value, Node] = {}
        self._moved: dict[tuple[Value, Order], Value] = {}

    def maker(self, value: Value, op: str) -> Node | None:
        """The node that computes ``value``, if it is one of an operator."""
        node = self._makers.get(value)
        return node if node is not None and node.op == op else None

    def is_weight(self, value: Value | None) -> bool:
        """Whether a value is a constant, or one of integers that is dequantized."""
        while value is not None and value.tensor is None:
            node = self._makers.get(value)
            if node is None or node.op not in ("DEQUANTIZE", *LATER):
                return False
            value = node.inputs[0]
        return value is not None

    def make(
        self, op: str, inputs: Sequence[Any], dtype: DType | None, shape: Shape | None,
        **options: Any,
    ) -> Value:  # fmt: skip
        """Append an operator of one result; one without elements is a constant.

        Raises:
            ConversionError: where an operand has no elements: kernels differ in what they do then.
        """
        if shape is not None and dtype is not None and 0 in shape and None not in shape:
            return self.const(
                np.zeros([d if isinstance(d, int) else 1 for d in shape], dtype.numpy)
            )
        is_empty = any(v is not None and 0 in (v.shape or ()) and v.dtype is not DType.INT32
                       for v in inputs)  # fmt: skip
        require(not is_empty, "a tensor without elements, which LiteRT does not compute with. "
                "Give another size (--input)")  # fmt: skip
        return set_type(self.emit(op, inputs, options), dtype, shape)

    def _append(self, *call: Any, **options: Any) -> tuple[Value, ...]:
        results = super()._append(*call, **options)
        self._makers.update(dict.fromkeys(results, self.nodes[-1]))
        return results

    def emit_identity(self, value: Value) -> Value:
        """A copy of a value, by a RESHAPE to its own shape."""
        return self.copy(value)

    def copy(self, x: Value) -> Value:
        """The same under another name."""
        sizes = self.sizes(x, x.ranked_shape, range(x.rank))
        return self.make("RESHAPE", [x, sizes], x.dtype, x.shape)

    def count_sizes(self, x: Value) -> Value:
        """The sizes of all axes, as they are in a run."""
        if x.is_static:
            return self.ints(x.static_shape)
        code = enums()["TensorType"]["INT32"]
        return self.make("SHAPE", [x], DType.INT32, (x.rank,), out_type=code)

    def sizes(self, x: Value, shape: Shape, axes: Axes | None = None) -> Value:
        """A shape of the elements of ``x`` as an operand.

        One size by name is counted from the rest. Of more, they are those of axes of ``x``: of
        ``axes``, or of the same name.
        """
        numbers = self.ints([d if isinstance(d, int) else -1 for d in shape])
        if sum(not isinstance(d, int) for d in shape) < 2:
            return numbers
        axes = find_axes(x, shape) if axes is None else axes
        require(can_tell(shape, axes), "a shape with two sizes by name that its operand has not. "
                "Give numbers (--static, --input)")  # fmt: skip
        if [*axes] == [*range(x.rank)]:
            return self.count_sizes(x)
        every = [self.count_sizes(x), numbers]
        row = self.make("CONCATENATION", every, DType.INT32, (x.rank + len(shape),), axis=0)
        places = [x.rank + at if axis is None else axis for at, axis in enumerate(axes)]
        return self.make("GATHER", [row, self.ints(places)], DType.INT32, (len(shape),), axis=0)

    def ints(self, numbers: Sequence[int]) -> Value:
        """A constant of int32, as operands of kernels are."""
        array, limits = np.asarray(numbers), np.iinfo(np.int32)
        is_held = not array.size or limits.min <= array.min() <= array.max() <= limits.max
        require(is_held, f"an operand has a number beyond int32: {array.tolist()}. Give smaller "
                "sizes (--static, --input)")  # fmt: skip
        return self.const(array.astype(np.int32))

    def reshape(self, x: Value, shape: Shape, axes: Axes | None = None) -> Value:
        """The elements of ``x`` in another shape, whose sizes are those of ``axes``.

        Of two in a row the second is made, where it needs no sizes of the first.
        """
        is_counted = sum(not isinstance(d, int) for d in shape) > 1
        while not is_counted and (maker := self.maker(x, "RESHAPE")) is not None:
            assert maker.inputs[0] is not None
            x = maker.inputs[0]
        if x.shape == shape and None not in shape:
            return x
        if x.tensor is not None:
            sizes = tuple([d if isinstance(d, int) else -1 for d in shape])
            return derive(self, x, lambda a: a.reshape(sizes), sizes)
        return self.make("RESHAPE", [x, self.sizes(x, shape, axes)], x.dtype, shape)

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """Axes in another order; two orders in a row are one, and made once for each value."""
        order = tuple(perm)
        while (maker := self.maker(x, "TRANSPOSE")) is not None:
            x, before = maker.inputs  # type: ignore[assignment]
            order = tuple(int(before.ints()[axis]) for axis in order)  # type: ignore[union-attr]
        shape = tuple([x.ranked_shape[axis] for axis in order])
        if order == tuple(range(len(order))):
            return x
        if (x, order) not in self._moved:
            self._moved[x, order] = self._transpose(x, order, shape)
        return self._moved[x, order]

    def _transpose(self, x: Value, order: Order, shape: Shape) -> Value:
        if x.tensor is not None:
            return derive(self, x, lambda a: np.ascontiguousarray(a.transpose(order)), shape)  # type: ignore[arg-type]
        axes_above_one = [axis for axis in order if x.ranked_shape[axis] != 1]
        if axes_above_one == sorted(axes_above_one):
            return self.reshape(x, shape, order)
        return self.make("TRANSPOSE", [x, self.ints(order)], x.dtype, shape)

    def last(self, x: Value) -> Value:
        """An image with channels last."""
        return self.transpose(x, to_last(x.rank))

    def first(self, x: Value) -> Value:
        """An image with channels first."""
        return self.transpose(x, to_first(x.rank))


def find_axes(x: Value, shape: Shape) -> list[int | None]:
    """The axis that each size by name is that of."""
    known = x.ranked_shape
    return [known.index(d) if isinstance(d, str) and d in known else None for d in shape]


def can_tell(shape: Shape, axes: Axes) -> bool:
    """Whether all sizes of a shape but one are numbers, or those of axes."""
    pairs = zip(shape, axes, strict=True)
    return sum(axis is None and not isinstance(d, int) for d, axis in pairs) < 2


def is_weight(g: Any, value: Value | None) -> bool:
    """Whether a value is a constant, or one of integers that is dequantized."""
    while value is not None and value.tensor is None:
        node = g.maker(value, "Cast", "DequantizeLinear", "Transpose", *RESHAPES)
        if node is None:
            return False
        value = node.inputs[0]
    return value is not None


def derive(
    t: Builder, constant: Value, change: Callable[[Any], Any], shape: tuple[int, ...],
    dtype: DType | None = None,
) -> Value:  # fmt: skip
    """A constant of the same elements in another order, shape or type: ``change(array)``."""
    tensor = constant.tensor
    require(tensor is not None, f"{constant.name!r} is computed. Make it a constant")
    assert tensor is not None
    load, kind = tensor.load, dtype or tensor.dtype
    changed = Tensor(kind, shape, lambda: change(load()))
    return Value(t.names.fresh(constant.name), kind, shape, changed)


def padded_shape(x: Value, ends: Sequence[Sequence[int]]) -> Shape:
    """The shape of a tensor with elements before and behind each axis; None has no name."""
    pairs = zip(x.ranked_shape, map(sum, ends), strict=True)
    return tuple([d + more if isinstance(d, int) else None if more else d for d, more in pairs])
