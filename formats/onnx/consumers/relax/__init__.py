"""ONNX for TVM's importer into Relax (``tvm.relax.frontend.onnx``, apache-tvm 0.27)."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import Consumer

CONSUMER = Consumer(
    name="relax",
    title="TVM's importer into Relax",
    target=Deferred(f"{__name__}.target:RELAX"),
    also_called=("tvm",),
    runs_in_onnxruntime=False,
    next_step="tvm.relax.frontend.onnx.from_onnx(onnx.load({name!r}))",
)
