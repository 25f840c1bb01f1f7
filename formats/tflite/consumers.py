"""What runs TensorFlow Lite's files, as profiles: LiteRT, Coral's Edge TPU, and TFLite Micro."""

from __future__ import annotations

from collections.abc import Mapping

from serde.plugins import Deferred
from serde.plugins.consumer import Consumer

LIMITS = f"{__package__}.limits"
CONSUMERS: Mapping[str, Consumer] = {
    "litert": Consumer("litert", "LiteRT", next_step="LiteRT runs {name!r}"),
    "edgetpu": Consumer(
        "edgetpu", "Edge TPU", also_called=("coral",), next_step="edgetpu_compiler {name}",
        prepare=Deferred(f"{LIMITS}:require_edgetpu"),
    ),
    "tflite-micro": Consumer(
        "tflite-micro", "TFLite Micro", also_called=("tflm",),
        next_step="tflite_micro.runtime.Interpreter.from_file({name!r})",
        prepare=Deferred(f"{LIMITS}:require_micro"),
    ),
}  # fmt: skip
