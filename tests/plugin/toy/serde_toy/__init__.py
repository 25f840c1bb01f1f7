"""A toy format, complete: models as a few lines of text, four operators, both ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from serde.io.sniff import read_head
from serde.ir.builder import Builder
from serde.ir.graph import Graph
from serde.plugins import Format
from serde.plugins.options import ReadOptions, RuleOptions, WriteOptions, option
from serde.rewrite.rules import add_rules
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
    return path.is_file() and read_head(path).startswith(FIRST_LINE.encode())


def to_ir(graph: Graph, rules: Mapping[str, Callable[..., Any]] | None = None) -> Graph:
    """Rewrite toy operators into those of the IR."""
    table = add_rules(reads, rules, {node.op for node in graph.nodes})
    return table.rewrite(graph, OnnxBuilder(graph.name))


def from_ir(graph: Graph) -> Graph:
    """Rewrite operators of the IR into toy ones."""
    return writes.rewrite(graph, ToyBuilder(graph.name))


class ToyReadOptions(RuleOptions, ReadOptions):
    """What a toy model is read with."""


class ToyWriteOptions(WriteOptions):
    """What a toy model is written with."""

    decimals: int | None = option("Digits behind the point of weights.", kind="integer", least=0)


FORMAT = Format(
    name="toy",
    title="Toy",
    suffixes=(".toy",),
    matches=matches,
    decode=decode,
    to_ir=to_ir,
    from_ir=from_ir,
    encode=encode,
    read_options=ToyReadOptions,
    write_options=ToyWriteOptions,
    tables=(reads, writes),
    next_step="toy-run {name}",
)
