"""TensorFlow Lite's files, which LiteRT runs, written without TensorFlow."""

from __future__ import annotations

from pathlib import Path

from serde.plugins import Deferred, Format

IDENTIFIER = b"TFL3"


def _matches(path: Path) -> bool:
    """Files are not read back."""
    return False


FORMAT = Format(
    name="tflite",
    title="TensorFlow Lite",
    next_step="LiteRT runs {name!r}",
    runtime="litert",
    is_read=False,
    suffixes=(".tflite",),
    matches=_matches,
    decode=Deferred(f"{__name__}.decode:decode"),
    to_ir=Deferred(f"{__name__}.decode:to_ir"),
    from_ir=Deferred(f"{__name__}.from_ir:from_ir"),
    encode=Deferred(f"{__name__}.encode:encode"),
    tables=(Deferred(f"{__name__}.from_ir:writes"),),
)
