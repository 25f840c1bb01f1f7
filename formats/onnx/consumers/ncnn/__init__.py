"""ONNX for ncnn, by pnnx."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import FOLDED, QDQ, Consumer

CONSUMER = Consumer(
    name="ncnn",
    title="ncnn",
    target=Deferred(f"{__name__}.target:NCNN"),
    also_called=("pnnx",),
    reading={**QDQ, **FOLDED},
    skips=frozenset({"make_gemms"}),  # pnnx takes attention of layers that read rows for another
    prepare=Deferred(f"{__name__}.whole_graph:prepare"),
    next_step="pnnx {name} fp16=0",
)
