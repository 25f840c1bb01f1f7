"""Recurrent layers of quantized weights."""

from __future__ import annotations

from typing import Any

from serde.errors import UnsupportedOp

from .table import reads


@reads("DynamicQuantizeLSTM")
def read_dynamic_quantize_lstm(g: Any, *operands: Any, **attrs: Any) -> Any:
    raise UnsupportedOp(
        "quantizes its state in every step, which LSTM has no way for. Convert the model as it "
        "was before it was quantized"
    )
