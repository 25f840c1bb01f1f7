"""ONNX for MNN."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import FOLDED, QDQ, Consumer

CONSUMER = Consumer(
    name="mnn",
    title="MNN",
    target=Deferred(f"{__name__}.target:MNN"),
    reading={**QDQ, **FOLDED},
    prepare=Deferred(f"{__name__}.whole_graph:prepare"),
    next_step="mnnconvert -f ONNX --modelFile {name} --MNNModel {stem}.mnn --bizCode serde",
)
