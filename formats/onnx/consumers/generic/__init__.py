"""ONNX for whatever reads the standard."""

from __future__ import annotations

from serde.plugins.consumer import Consumer

CONSUMER = Consumer(
    name="generic",
    title="the standard",
    functions="keep",
    integer_kernels=True,
    also_called=("onnx", "none"),
)
