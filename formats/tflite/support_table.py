"""Element types of the first operand that LiteRT's kernels are right for, by operator.

``MEASURED`` is made by `python -m conformance.litert_kernels`, with ai-edge-litert 2.3.0. A
paragraph has the types, and the operators of these; others are of float32.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from serde.ir.graph import DType

STORED = frozenset({  # what tensors may be of, and CAST takes
    DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.UINT8, DType.UINT16, DType.UINT32, DType.BOOL,
})  # fmt: skip
MEASURED = """\
bool: And Not Or
bool float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint8: Expand Identity Shape Slice
  Split Tile Transpose Where
bool float16 float32 int16 int32 int64: Equal
bool float16 float32 int16 int32 int64 int8 uint32 uint8: Concat
bool float16 float32 int16 int32 int64 int8 uint8: Gather GatherND Pad
bool float16 float32 int32 int64: NonZero
bool float32 int32 int64 int8 uint8: ReduceMax ReduceMin
float16 float32: Cos Floor Round Sin Tanh
float16 float32 int16 int32 int64: Add Greater GreaterOrEqual Less LessOrEqual
float16 float32 int16 int32 int64 int8: Neg
float16 float32 int16 int32 int64 int8 uint8: Clip Max Min
float16 float32 int16 int32 int64 uint32: Mul
float16 float32 int16 int32 int8 uint16 uint32 uint8: Resize
float32 float64 int32: Sign
float32 int16 int32: Abs
float32 int16 int32 int64 int8: Mod Relu
float32 int16 int32 int64 int8 uint8: TopK
float32 int32: Pow
float32 int32 int64: CumSum Div PRelu ReduceMean ReduceProd ReduceSum Sub
float32 int32 int64 int8 uint8: DepthToSpace SpaceToDepth
float32 int32 int8 uint8: ArgMax ArgMin
float32 int8 uint8: MaxPool
int16 int32 int8 uint16 uint32 uint8: BitwiseXor
"""
PARAGRAPHS = re.compile(r"\n(?=\S)")


def parse_table(text: str) -> Mapping[str, frozenset[DType]]:
    """The element types by operator."""
    pairs = (p.split(":") for p in PARAGRAPHS.split(text.strip()) if p)
    return {op: frozenset(map(DType, t.split())) for t, ops in pairs for op in ops.split()}


KERNELS: Mapping[str, frozenset[DType]] = {
    "BitCast": STORED, "Cast": STORED,
    "Range": frozenset({DType.FLOAT32, DType.INT32, DType.INT64}),
    "DequantizeLinear": frozenset({
        DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT4, DType.INT2,
    }),
    **parse_table(MEASURED),
}  # fmt: skip
