"""ONNX files: read at any opset, written at any opset."""

from __future__ import annotations

from pathlib import Path

from serde.opset import lower_to, raise_to_ir
from serde.plugins import Format

from .reader import read_model
from .writer import write_model


def claims(path: Path) -> bool:
    """Whether ``path`` holds an ONNX model: a protobuf message that starts as one does."""
    if not path.is_file():
        return False
    if path.suffix == ".onnx":
        return True
    with path.open("rb") as file:
        head = file.read(2)
    return len(head) == 2 and head[0] == 0x08 and 0 < head[1] < 32  # field 1: the IR version


def _from_ir(graph, opset: int = 17):  # type: ignore[no-untyped-def]
    return lower_to(graph, opset)


FORMAT = Format(
    name="onnx",
    suffixes=(".onnx",),
    claims=claims,
    decode=read_model,
    to_ir=raise_to_ir,
    from_ir=_from_ir,
    encode=write_model,
    options={
        "decode": frozenset({"strict_paths"}),
        "from_ir": frozenset({"opset"}),
        "encode": frozenset({"ir_version", "external_data"}),
    },
)
