"""ONNX for OpenVINO."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import QDQ, Consumer

CONSUMER = Consumer(
    name="openvino",
    title="OpenVINO",
    target=Deferred(f"{__name__}.target:OPENVINO"),
    also_called=("ov",),
    reading=QDQ,
    prepare=Deferred(f"{__name__}.whole_graph:prepare"),
    next_step="ovc {name}",
)
