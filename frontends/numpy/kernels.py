"""The builder of traced code: operators in element types that runtimes have kernels for.

A type that ONNX or ONNX Runtime lacks for an operator is computed in a wider one and cast back.
Integers wrap around in the wider type as they do in their own, so results are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serde.ir.builder import Builder, Operand
from serde.ir.graph import IR_OPSET, DType, Value
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.schema import ELEMENT_CODES, operator

I4, I8 = DType.INT32, DType.INT64
NARROW = dict.fromkeys((DType.INT8, DType.INT16, DType.UINT8, DType.UINT16), I4)
UNSIGNED = {**NARROW, DType.UINT32: I8}
WRAPPING = {**UNSIGNED, DType.UINT64: I8}  # for what is the same modulo 2**64
WITH_BOOL = {**UNSIGNED, DType.BOOL: I4}
SHORT = dict.fromkeys((DType.INT16, DType.UINT16), I4)
HALF = {DType.FLOAT16: DType.FLOAT32}
# What an operator is computed in, by its own element type.
COMPUTED_IN: dict[str, Mapping[DType, DType]] = {
    **dict.fromkeys("Add Sub Mul Neg MatMul CumSum ReduceSum ReduceProd".split(), WRAPPING),
    **dict.fromkeys("Div Mod Abs Sign".split(), UNSIGNED),
    **dict.fromkeys(
        "Less LessOrEqual Greater GreaterOrEqual Max Min Clip ReduceMax ReduceMin ArgMax ArgMin "
        "TopK".split(),
        WITH_BOOL,
    ),
    "Equal": UNSIGNED,
    "Where": {**SHORT, DType.UINT32: I8, DType.UINT64: I8, DType.BOOL: DType.UINT8},
    "Pad": {**SHORT, DType.BOOL: DType.UINT8},
    "Einsum": {**WRAPPING, **HALF},
    "Unique": {**SHORT, DType.INT32: I8, DType.UINT8: I8, DType.UINT32: I8, DType.BOOL: I8},
    "Trilu": {**SHORT, DType.INT8: I4, DType.UINT8: I4, DType.UINT32: I8, DType.UINT64: I8},
    "Resize": {DType.FLOAT64: DType.FLOAT32},
    "Det": {DType.FLOAT64: DType.FLOAT32},
    "DFT": {DType.FLOAT16: DType.FLOAT64, DType.FLOAT32: DType.FLOAT64},
}


class TraceBuilder(OnnxBuilder):
    """Emits operators of the IR; those that lack an element type run in a wider one."""

    def __init__(self, name: str, opset: int = IR_OPSET, outer: Builder | None = None) -> None:
        super().__init__(name, opset, outer)
        self.is_busy = False  # whether an operation of the user's code is being recorded

    def emit(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Emit an operator, in a wider type where its own has no kernel."""
        wider = COMPUTED_IN.get(op)
        if wider is not None:
            first = inputs[1] if op == "Where" else inputs[0]
            dtype = first.dtype if isinstance(first, Value) else None
            if dtype is not None and dtype in wider:
                return self._emit_wider(op, inputs, attrs, outputs, dtype, wider[dtype])
        return super().emit(op, inputs, attrs, outputs)

    def _emit_wider(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int,
        dtype: DType, wider_dtype: DType,
    ) -> Any:  # fmt: skip
        """Cast the operands of the operator's type variable, and the results back."""
        declared = operator(op)
        tie = declared.input(1 if op == "Where" else 0).tie
        read = [
            self.Cast(v, to=ELEMENT_CODES[wider_dtype])
            if isinstance(v, Value) and v.dtype is dtype and declared.input(i).tie == tie
            else v
            for i, v in enumerate(inputs)
        ]
        outs = super().emit(op, read, attrs, outputs)
        results = outs if isinstance(outs, tuple) else (outs,)
        last = len(declared.outputs) - 1
        back = tuple(
            self.Cast(v, to=ELEMENT_CODES[dtype])
            if declared.outputs[min(i, last)].tie == tie
            else v
            for i, v in enumerate(results)
        )
        return back if isinstance(outs, tuple) else back[0]
