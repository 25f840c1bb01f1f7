"""ONNX within common limits of compilers for NPUs: static shapes, integers of 32 bits."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import FOLDED, Consumer

# Operators that runtimes lag behind with; each is decomposed into older ones.
RECENT = frozenset(
    "Attention Gelu GroupNormalization HardSwish Mish RMSNormalization RotaryEmbedding "
    "Swish".split()
)
CONSUMER = Consumer(
    name="npu-static",
    title="NPUs of static shapes",
    opset=13,
    also_called=("npu", "static"),
    reading=FOLDED,
    decomposed=RECENT,
    passes=(
        Deferred("serde.formats.onnx.consumers.static_shapes:require_static_shapes"),
        Deferred("serde.formats.onnx.consumers.far_ends:within_int32"),
    ),
)
