"""TensorFlow Lite's files, which LiteRT runs, read and written without TensorFlow."""

from __future__ import annotations

from pathlib import Path

from serde.io.sniff import open_uncharged
from serde.plugins import Format
from serde.plugins import options as opts

IDENTIFIER = b"TFL3"


def matches(path: Path) -> bool:
    """Whether the file at ``path`` is a model of TensorFlow Lite."""
    if not path.is_file():
        return False
    with open_uncharged(path) as file:
        return file.read(8)[4:] == IDENTIFIER


class TfliteReadOptions(opts.RuleOptions, opts.ReadOptions):
    """What a model of TensorFlow Lite is read with."""

    signature: str | None = opts.option(
        "The signature that is the model; the first subgraph's if left out.",
        flags=("--signature",), metavar="NAME",
    )  # fmt: skip


FORMAT = Format.in_package(
    __name__,
    name="tflite",
    title="TensorFlow Lite",
    next_step="LiteRT runs {name!r}",
    reading=lambda options: {"integers": "qdq"},
    runtime="litert",
    suffixes=(".tflite",),
    matches=matches,
    read_options=TfliteReadOptions,
)
