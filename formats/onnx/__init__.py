"""ONNX files: read at any opset, written at any opset."""

from __future__ import annotations

from pathlib import Path

from serde.plugins import Deferred, Format


def matches(path: Path) -> bool:
    """Whether ``path`` holds an ONNX model: a protobuf message that starts as one does."""
    if not path.is_file():
        return False
    if path.suffix == ".onnx":
        return True
    with path.open("rb") as file:
        head = file.read(2)
    return len(head) == 2 and head[0] == 0x08 and 0 < head[1] < 32  # field 1: the IR version


FORMAT = Format(
    name="onnx",
    suffixes=(".onnx",),
    claims=matches,
    decode=Deferred("serde.formats.onnx.reader:read_model"),
    to_ir=Deferred("serde.formats.onnx.to_ir:to_ir"),
    from_ir=Deferred("serde.formats.onnx.from_ir:from_ir"),
    encode=Deferred("serde.formats.onnx.writer:write_model"),
    repair=Deferred("serde.formats.onnx.repair:repair"),
    check_target=Deferred("serde.formats.onnx.writer:check_target"),
    options={
        "decode": frozenset({"strict_paths"}),
        "to_ir": frozenset({"keep_domain"}),
        "from_ir": frozenset(
            {"opset", "ir_version", "spelled_out", "functions", "integer_kernels", "importer"}
        ),
        "encode": frozenset({"ir_version", "external_data"}),
    },
    tables=(
        Deferred("serde.formats.onnx.contrib:reads"),
        Deferred("serde.formats.onnx.contrib:reads_default"),
    ),
)
