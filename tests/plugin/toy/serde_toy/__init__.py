"""A toy format, complete: models as a few lines of text, four operators, both ways."""

from __future__ import annotations

from pathlib import Path

from serde.ir.builder import Builder
from serde.ir.graph import Graph
from serde.plugins import Format
from serde.plugins.options import WriteOptions, option
from serde.spec.onnx_builder import OnnxBuilder

from . import ops  # fills the rule tables
from .codec import FIRST_LINE, decode, encode
from .rules import reads, writes

__all__ = ["FORMAT", "ops"]


class ToyBuilder(Builder):
    """Emits toy operators."""

    domain = "toy"
    identity = "copy"


def matches(path: Path) -> bool:
    """Whether a file begins as a toy model does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(FIRST_LINE)) == FIRST_LINE.encode()


def to_ir(graph: Graph) -> Graph:
    """Rewrite toy operators into those of the IR."""
    return reads.rewrite(graph, OnnxBuilder(graph.name))


def from_ir(graph: Graph) -> Graph:
    """Rewrite operators of the IR into toy ones."""
    return writes.rewrite(graph, ToyBuilder(graph.name))


class ToyWriteOptions(WriteOptions):
    """What a toy model is written with."""

    decimals: int | None = option("Digits behind the point of weights.", kind="integer", least=0)


FORMAT = Format(
    name="toy",
    suffixes=(".toy",),
    matches=matches,
    decode=decode,
    to_ir=to_ir,
    from_ir=from_ir,
    encode=encode,
    write_options=ToyWriteOptions,
    tables=(reads, writes),
)
