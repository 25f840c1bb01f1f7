"""ONNX for QNN, by ONNX Runtime's execution provider; known by its documentation."""

from __future__ import annotations

from serde.plugins import Deferred
from serde.plugins.consumer import EVERY, FOLDED, QDQ, Consumer

CONSUMER = Consumer(
    name="qnn",
    title="QNN",
    target=Deferred(f"{__name__}.target:QNN"),
    opsets=EVERY,
    reading={**QDQ, **FOLDED},
    next_step=("onnxruntime.InferenceSession({name!r}, providers=['QNNExecutionProvider'])"),
)
