"""How the integers of a tensor stand for real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from serde.errors import ConversionError
from serde.ir.graph import DType, Value

# Element types whose integers have a scale wherever they are computed with.
NARROW = frozenset({DType.INT2, DType.INT4, DType.INT8, DType.UINT8, DType.INT16})
Array = np.ndarray[Any, Any]


class Quantization(NamedTuple):
    """Scales and zero points: one, or one for each slice or block along an axis."""

    scale: Array
    zero: Array
    axis: int = 0
    block_size: int = 0

    @property
    def is_per_tensor(self) -> bool:
        """Whether one scale is that of all elements."""
        return self.scale.size == 1

    def is_same(self, other: Quantization | None) -> bool:
        """Whether the other one stands for the same numbers, one scale for all."""
        return (
            other is not None
            and self.is_per_tensor and other.is_per_tensor
            and bool(self.scale == other.scale and self.zero == other.zero)
        )  # fmt: skip

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

    ``variables`` are the numbers of those that operators keep between runs.
    """

    quantizations: Mapping[str, Quantization]
    variables: Mapping[str, int]
