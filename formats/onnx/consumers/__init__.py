"""Rules for the consumers of ONNX files, one a folder, and the targets they declare."""

from __future__ import annotations

from importlib import import_module

from serde.legalize.target import Target

CONSUMERS = frozenset({"openvino", "tensorrt", "tract"})


def get_consumer(name: str) -> Target | None:
    """The target of a consumer, None where none has this name."""
    if name not in CONSUMERS:
        return None
    module = import_module(f"{__name__}.{name}.target")
    return getattr(module, name.upper())  # type: ignore[no-any-return]
