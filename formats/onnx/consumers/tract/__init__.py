"""ONNX for tract."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import FOLDED, QDQ, Consumer

CONSUMER = Consumer(
    name="tract",
    title="tract",
    target=Deferred(f"{__name__}.target:TRACT"),
    reading={**QDQ, **FOLDED},
    prepare=Deferred(f"{__name__}.whole_graph:prepare"),
    next_step="tract.onnx().load({name!r})",
)
