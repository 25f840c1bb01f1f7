"""TensorFlow Lite's files, which LiteRT runs, written without TensorFlow."""

from __future__ import annotations

from serde.plugins import Deferred, Format

FORMAT = Format(
    name="tflite",
    title="TensorFlow Lite",
    next_step="LiteRT runs {name!r}",
    reading=lambda options: {"integers": "qdq"},
    runtime="litert",
    suffixes=(".tflite",),
    from_ir=Deferred(f"{__name__}.from_ir:from_ir"),
    encode=Deferred(f"{__name__}.encode:encode"),
    tables=(Deferred(f"{__name__}.from_ir:writes"),),
)
