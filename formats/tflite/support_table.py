"""Element types of the first operand that LiteRT's kernels are right for, by operator."""

from __future__ import annotations

from collections.abc import Mapping

from serde.ir.graph import DType

F32, I32, I64 = DType.FLOAT32, DType.INT32, DType.INT64
NUMBERS = frozenset({F32, I32, I64})
STORED = frozenset({  # what tensors may be of, and CAST takes
    *NUMBERS, DType.INT8, DType.UINT8, DType.INT16, DType.BOOL, DType.FLOAT16, DType.FLOAT64,
    DType.UINT16, DType.UINT32,
})  # fmt: skip
KERNELS: Mapping[str, frozenset[DType]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), NUMBERS),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), NUMBERS),
    "Equal": NUMBERS | {DType.BOOL},
    **dict.fromkeys(("And", "Or", "Not"), frozenset({DType.BOOL})),
    **dict.fromkeys(
        ("Concat", "Gather", "Identity", "Slice", "Split", "Transpose"), NUMBERS | {DType.BOOL}
    ),
    "Abs": frozenset({F32, I32}),
    "CumSum": NUMBERS,
    "Pow": frozenset({F32, I32}),
    "BitwiseXor": frozenset({DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, I32}),
    "BitCast": STORED,
    "Neg": NUMBERS,
    "Where": frozenset({DType.BOOL}) | NUMBERS,
    "Cast": STORED,
    "Expand": NUMBERS,
    "Tile": NUMBERS,
    "Pad": NUMBERS,
    "Mod": NUMBERS,
    "TopK": NUMBERS,
    "Div": frozenset({F32, I32}),
    "GatherND": NUMBERS,
    "DequantizeLinear": frozenset({DType.INT8, DType.UINT8, DType.INT16, I32}),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), NUMBERS | {DType.BOOL}),
    **dict.fromkeys(("ReduceProd", "ReduceSum"), NUMBERS),
}
