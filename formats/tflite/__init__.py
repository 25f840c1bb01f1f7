"""TensorFlow Lite's files, which LiteRT runs, read and written without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from serde.io.sniff import open_uncharged
from serde.plugins import Deferred, Format
from serde.plugins import options as opts
from serde.plugins.targets import ProfileOptions

from .consumers import CONSUMERS

IDENTIFIER = b"TFL3"


def matches(path: Path) -> bool:
    """Whether the file at ``path`` is a model of TensorFlow Lite."""
    if not path.is_file():
        return False
    with open_uncharged(path) as file:
        return file.read(8)[4:] == IDENTIFIER


def name_keras(name: str, head: bytes) -> str | None:
    """What a file of Keras is, and what to do with it."""
    if not head.startswith(b"\x89HDF\r\n") and not name.endswith(".keras"):
        return None
    return "a model of Keras: write it with tf.lite.TFLiteConverter, or to ONNX with tf2onnx"


class TfliteReadOptions(opts.RuleOptions, opts.ReadOptions):
    """What a model of TensorFlow Lite is read with."""

    signature: str | None = opts.option(
        "The signature that is the model; the first subgraph's if left out.",
        flags=("--signature",), metavar="NAME",
    )  # fmt: skip


class TfliteWriteOptions(ProfileOptions, opts.WriteOptions):
    """What a file of TensorFlow Lite is written with."""

    channels_last: Sequence[str] | None = opts.option(
        "Inputs and outputs that get channels last; all: images.",
        "Otherwise they keep the source's shapes. `all` are those of four and five axes. "
        "`--verify` turns the arrays that the source takes and gives.",
        kind="names", is_request=True,
    )  # fmt: skip
    tflite: str | None = opts.option(
        "The oldest TensorFlow Lite that is to run the file: 1.14 to 2.10; the newest if left out.",
        "Operators that it lacks are written in others, or refused.",
        metavar="RELEASE", is_checked=True,
    )  # fmt: skip


FORMAT = Format.in_package(
    __name__,
    name="tflite",
    title="TensorFlow Lite",
    consumers=CONSUMERS,
    next_step="LiteRT runs {name!r}",
    reading=lambda options: {"integers": "qdq"},
    runtime="litert",
    list_shapes=Deferred("serde.formats.tflite.quantization:list_shapes"),
    suffixes=(".tflite",),
    matches=matches,
    name_other=name_keras,
    read_options=TfliteReadOptions,
    write_options=TfliteWriteOptions,
)
