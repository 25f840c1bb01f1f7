"""TensorFlow Lite's files, which LiteRT runs, written without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence

from serde.plugins import Deferred, Format
from serde.plugins.options import WriteOptions, option


class TfliteWriteOptions(WriteOptions):
    """What a file of TensorFlow Lite is written with."""

    channels_last: Sequence[str] | None = option(
        "Inputs and outputs that get channels last; all: images.",
        "Otherwise they keep the source's shapes. `all` are those of four and five axes. Such a "
        "file is not verified: it takes other arrays than its source.",
        kind="names",
    )  # fmt: skip
    tflite: str | None = option(
        "The oldest TensorFlow Lite that is to run the file: 1.14 to 2.10; the newest if left out.",
        "Operators that it lacks are written in others, or refused.",
        metavar="RELEASE", is_checked=True,
    )  # fmt: skip


FORMAT = Format(
    name="tflite",
    title="TensorFlow Lite",
    next_step="LiteRT runs {name!r}",
    reading=lambda options: {"integers": "qdq"},
    runtime="litert",
    suffixes=(".tflite",),
    from_ir=Deferred(f"{__name__}.from_ir:from_ir"),
    encode=Deferred(f"{__name__}.encode:encode"),
    write_options=TfliteWriteOptions,
    tables=(Deferred(f"{__name__}.from_ir:writes"),),
)
