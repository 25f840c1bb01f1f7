"""ONNX for ONNX Runtime: forms it gets wrong in any profile, and the target of its own."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import Consumer

CONSUMER = Consumer(
    name="onnxruntime",
    title="ONNX Runtime",
    target=Deferred(f"{__name__}.target:ONNXRUNTIME"),
    also_called=("ort",),
    integer_kernels=True,
    prepare=Deferred(f"{__name__}.whole_graph:prepare"),
)
