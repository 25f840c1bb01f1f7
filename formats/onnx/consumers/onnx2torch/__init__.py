"""ONNX for onnx2torch, which makes PyTorch modules of it."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import QDQ, Consumer

CONSUMER = Consumer(
    name="onnx2torch",
    title="onnx2torch",
    target=Deferred(f"{__name__}.target:ONNX2TORCH"),
    also_called=("pytorch", "torch"),
    reading=QDQ,
    passes=(Deferred("serde.passes.same_pads:settle_same_pads"),),
    prepare=Deferred(f"{__name__}.names:prepare"),
    next_step="onnx2torch.convert({name!r}).eval()",
)
