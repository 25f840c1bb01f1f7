"""How the integers of a tensor stand for real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from serde.errors import ConversionError
from serde.ir.graph import DType, Graph, Shape, Value

# Element types whose integers have a scale wherever they are computed with.
NARROW = frozenset({DType.INT2, DType.INT4, DType.INT8, DType.UINT8, DType.INT16})
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Quantization:
    """How integers stand for real numbers: ``scale * (q - zero)``.

    There is one scale and zero point, or one for each slice or block along an axis. Those are equal
    whose numbers are.
    """

    scale: Array
    zero: Array
    axis: int = 0
    block_size: int = 0

    @classmethod
    def of(cls, scale: Any, zero: Any = 0, axis: int = 0) -> Quantization:
        """Scales and zero points along an axis, which one of each has not."""
        scales = np.asarray(scale, np.float32).ravel()
        zeros = np.broadcast_to(np.asarray(zero, np.int64).ravel(), scales.shape)
        return cls(scales, zeros, axis if scales.size > 1 else 0)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.scale.tobytes(), self.zero.tobytes(), self.axis, self.block_size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantization) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def is_per_tensor(self) -> bool:
        """Whether one scale is that of all elements."""
        return self.scale.size == 1

    @property
    def is_symmetric(self) -> bool:
        """Whether 0 stands for 0."""
        return not self.zero.any()

    def shift(self, by: int) -> Quantization:
        """The scales of integers that are larger by a number and stand for the same numbers."""
        return replace(self, zero=self.zero + by)

    def rescale(self, factor: float) -> Quantization:
        """The scales of the same integers that stand for a multiple of their numbers."""
        return replace(self, scale=(self.scale * factor).astype(np.float32))

    def read_real(self, integers: Array) -> Array:
        """The real numbers that integers stand for."""
        along = [1] * integers.ndim
        if not self.is_per_tensor:
            along[self.axis] = -1
        shape = along if integers.ndim else ()
        zero, scale = self.zero.reshape(shape), self.scale.astype(np.float64).reshape(shape)
        return np.asarray(((integers - zero) * scale).astype(np.float32))

    def constants(self, g: Any, dtype: DType) -> tuple[Value, Value]:
        """The scale and the zero point as operands."""
        shape = () if self.is_per_tensor else self.scale.shape
        zero = self.zero.reshape(shape).astype(dtype.numpy)
        return g.const(self.scale.reshape(shape)), g.const(zero, dtype)

    def dequantize(self, g: Any, value: Value) -> Value:
        """The real numbers."""
        scale, zero = self.constants(g, value.type)
        return g.DequantizeLinear(value, scale, zero, **self._attributes())  # type: ignore[no-any-return]

    def _attributes(self) -> dict[str, int]:
        if self.is_per_tensor:
            return {}
        blocks = {"block_size": self.block_size} if self.block_size else {}
        return {"axis": self.axis, **blocks}

    def quantize(self, g: Any, value: Value, dtype: DType) -> Value:
        """The integers nearest to real numbers."""
        scale, zero = self.constants(g, dtype)
        return g.QuantizeLinear(value, scale, zero, **self._attributes())  # type: ignore[no-any-return]


def require_scale(form: Quantization | None) -> Quantization:
    """A quantization that has to be there.

    Raises:
        ConversionError: where there is none.
    """
    if form is None:
        raise ConversionError("integers without a scale. Quantize the model anew")
    return form


Forms = tuple[Quantization | None, ...]  # those of the operands of an operator


class FileInfo(NamedTuple):
    """What a file says of its tensors beside their types, by name: a graph's ``source_info``.

    ``variables`` are the numbers of those that operators keep between runs, ``places`` of all that
    the main subgraph computes. ``shapes`` are those that the file has, of all values; a conversion
    infers its own.
    """

    quantizations: Mapping[str, Quantization]
    variables: Mapping[str, int]
    places: Mapping[str, int]
    shapes: Mapping[Value, Shape]


def declared_shape(tensor: Mapping[str, Any]) -> Shape:
    """The sizes that a file has of a tensor, None for those that it leaves open."""
    sizes, signature = tensor["shape"], tensor.get("shape_signature", ())
    known = signature if len(signature) == len(sizes) else sizes
    return tuple(None if d < 0 else int(d) for d in known)


def list_shapes(graph: Graph) -> Mapping[Value, Shape]:
    """The shapes that the file of a graph has."""
    info = graph.source_info
    return info.shapes if isinstance(info, FileInfo) else {}
