"""ONNX for TensorRT."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import EVERY, QDQ, Consumer

CONSUMER = Consumer(
    name="tensorrt",
    title="TensorRT",
    target=Deferred(f"{__name__}.target:TENSORRT"),
    opsets=EVERY,
    also_called=("trt",),
    reading=QDQ,
    passes=(
        Deferred("serde.legalize.convert:without_functions"),
        Deferred("serde.passes.signed_integers:make_signed"),
        Deferred("serde.formats.onnx.consumers.far_ends:within_int32"),
    ),
    next_step="trtexec --onnx={name} --saveEngine={stem}.engine",
)
