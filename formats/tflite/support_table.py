"""Element types of the first operand that LiteRT's kernels are right for, by operator."""

from __future__ import annotations

from collections.abc import Mapping

from serde.ir.graph import DType

F32, I32, I64 = DType.FLOAT32, DType.INT32, DType.INT64
NUMBERS = frozenset({F32, I32, I64})
STORED = frozenset({*NUMBERS, DType.INT8, DType.UINT8, DType.INT16, DType.BOOL})
KERNELS: Mapping[str, frozenset[DType]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), NUMBERS),
    **dict.fromkeys(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"), NUMBERS),
    "Equal": NUMBERS | {DType.BOOL},
    **dict.fromkeys(("And", "Or", "Not"), frozenset({DType.BOOL})),
    **dict.fromkeys(
        ("Concat", "Gather", "Identity", "Slice", "Split", "Transpose"), NUMBERS | {DType.BOOL}
    ),
    "Abs": frozenset({F32}),
    "Neg": NUMBERS,
    "Where": frozenset({DType.BOOL}) | NUMBERS,
    "Cast": STORED,
    "Expand": NUMBERS,
    "Tile": NUMBERS,
    "Pad": NUMBERS,
    "Mod": frozenset({I32, I64}),
    "TopK": NUMBERS,
    "Div": frozenset({F32, I32}),
    "GatherND": NUMBERS,
    "DequantizeLinear": frozenset({DType.INT8, DType.UINT8, DType.INT16, I32}),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"), NUMBERS),
}
