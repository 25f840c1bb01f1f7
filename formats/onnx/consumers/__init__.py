"""Rules for the consumers of ONNX files, one a folder, and the targets they declare."""

from __future__ import annotations

from serde.legalize.target import Target


def get_consumer(name: str) -> Target | None:
    """The measured target of a consumer, None where none has this name."""
    if name == "openvino":
        from .openvino import OPENVINO

        return OPENVINO
    return None
