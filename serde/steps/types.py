"""Element types an older operator lacks, and wider ones that hold their values exactly."""

from __future__ import annotations

from serde.graph import DType

WIDER: dict[DType, tuple[DType, ...]] = {
    DType.BFLOAT16: (DType.FLOAT32, DType.FLOAT64),
    DType.FLOAT16: (DType.FLOAT32, DType.FLOAT64),
    DType.INT8: (DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32),
    DType.UINT8: (DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32),
    DType.INT16: (DType.INT32, DType.INT64, DType.FLOAT32),
    DType.UINT16: (DType.INT32, DType.INT64, DType.FLOAT32),
    DType.INT32: (DType.INT64, DType.FLOAT64),
    DType.UINT32: (DType.INT64, DType.UINT64, DType.FLOAT64),
    DType.BOOL: (DType.INT32, DType.INT64, DType.FLOAT32),
}
# The attributes a Constant may hold its value in, and the element types they imply.
CONSTANT_FORMS = {
    "value_float": DType.FLOAT32,
    "value_floats": DType.FLOAT32,
    "value_int": DType.INT64,
    "value_ints": DType.INT64,
    "value_string": DType.STRING,
    "value_strings": DType.STRING,
}
# Operators whose result depends on the width of their element type.
WIDTH_MATTERS = frozenset(
    "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike DequantizeLinear Not "
    "QuantizeLinear BitCast RandomNormalLike RandomUniformLike".split()
)


def keeps_values(op: str) -> bool:
    """Whether ``op`` gives the same values in a wider element type."""
    return op not in WIDTH_MATTERS
