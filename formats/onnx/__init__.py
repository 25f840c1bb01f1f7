"""ONNX files: read at any opset, written at any opset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from serde.io.sniff import is_text, read_head
from serde.plugins import Deferred, Format
from serde.plugins.options import FunctionOptions, ReadOptions, RuleOptions, WriteOptions, option
from serde.plugins.targets import ProfileOptions

from .consumers import CONSUMERS


class OnnxReadOptions(RuleOptions, ReadOptions):
    """What an ONNX file is read with."""

    keep_domain: Sequence[str] | None = option(
        "Carry operators of these ONNX domains along as they are.",
        "Into ONNX files only: `com.microsoft`, for a model that stays with ONNX Runtime. "
        "See [onnxruntime-operators.md](onnxruntime-operators.md).",
        kind="names", is_request=True,
    )  # fmt: skip
    strict_paths: bool | None = option(
        "Refuse weights of ONNX models that are hard links.", kind="flag", is_run=True
    )


class OnnxWriteOptions(ProfileOptions, FunctionOptions, WriteOptions):
    """What an ONNX file is written with."""

    opset: int | None = option(
        "The ONNX opset to write: 7 to 28; 17, or the profile's, if left out.", kind="integer",
        is_checked=True,
    )  # fmt: skip
    ir_version: int | None = option(
        "The ONNX IR version; the opset's own if left out.", "3 is the least; opset 17 has 8.",
        kind="integer",
    )  # fmt: skip
    external_data: str | None = option(
        "Where weights go: auto keeps them in the model while it stays under 2 GiB.", "See below.",
        choices=("auto", "always", "never", "reference"),
    )  # fmt: skip
    provenance: str | None = option(
        "Enter into the metadata what the file was made of and by.",
        "`serde.version`, `serde.call` and `serde.source`: names, sizes and SHA-256 of the files. "
        "`date` adds `serde.date`; without it the same call gives the same bytes.",
        choices=("plain", "date"),
    )  # fmt: skip
    metadata: Mapping[str, str] | None = option(
        "Enter a text into the metadata of the file.",
        "`author=me`. `onnx.doc_string`, `onnx.domain` and `onnx.model_version` are fields of the "
        "model, `doc_string/NAME` describes an input or output. May be given several times.",
        kind="texts",
    )  # fmt: skip
    decomposed: Collection[str] | None = option("Operators to decompose.", kind="object")
    integer_kernels: bool | None = option(
        "Write products of integers as QLinearConv and QLinearMatMul.", kind="object"
    )
    int8_weights: bool | None = option(
        "Write weights of integer products as int8, where they are uint8.",
        "ONNX Runtime has faster kernels for uint8 by int8 on processors with VNNI instructions. "
        "On x86 processors without, these saturate: outputs may be wrong there. "
        "`--profile onnxruntime` uses them only where they are exact. See "
        "[quantized-models.md](../how-to/quantized-models.md).", kind="flag", is_request=True,
    )  # fmt: skip


def matches(path: Path) -> bool:
    """Whether ``path`` holds an ONNX model: a protobuf message that starts as one does.

    By its name any file is one that is not text.
    """
    if not path.is_file():
        return False
    head = read_head(path)
    if path.suffix == ".onnx":
        return not head or not is_text(head)
    return len(head) > 1 and head[0] == 0x08 and 0 < head[1] < 32  # field 1: the IR version


def name_text(name: str, head: bytes) -> str | None:
    """What a file of text is that has the name of a model, and what to do with it."""
    if not name.endswith(".onnx") or not is_text(head):
        return None
    return "it is text, and ONNX models are not: export or fetch it again"


FORMAT = Format.in_package(
    __name__,
    name="onnx",
    title="ONNX",
    consumers=CONSUMERS,
    next_step="onnxruntime.InferenceSession({name!r})",
    has_metadata=True,
    runtime="onnxruntime",
    suffixes=(".onnx",),
    matches=matches,
    name_other=name_text,
    decode=Deferred("serde.formats.onnx.reader:read_model"),
    encode=Deferred("serde.formats.onnx.writer:write_model"),
    repair=Deferred("serde.formats.onnx.repair:repair"),
    check_target=Deferred("serde.formats.onnx.writer:check_target"),
    read_options=OnnxReadOptions,
    write_options=OnnxWriteOptions,
    tables=(
        Deferred("serde.formats.onnx.contrib:reads"),
        Deferred("serde.formats.onnx.contrib:reads_default"),
    ),
)
