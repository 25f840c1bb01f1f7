"""A format of images with channels last, of quantized tensors and of subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from serde.decompositions.table import add_decompositions
from serde.ir.builder import Builder
from serde.ir.graph import Graph
from serde.legalize.convert import lower_to_target
from serde.legalize.target import Target, legalization_table
from serde.plugins import Format
from serde.plugins.options import ReadOptions, RuleOptions
from serde.rewrite.rules import add_rules
from serde.spec.onnx_builder import OnnxBuilder

from . import ops  # fills the rule tables
from .codec import FIRST_LINE, decode, encode, read_beginning
from .rules import reads, writes

__all__ = ["FORMAT", "ops"]


class SlateReadOptions(RuleOptions, ReadOptions):
    """What a slate model is read with."""


class SlateBuilder(Builder):
    """Emits slate operators."""

    domain = "slate"
    identity = "copy"


def matches(path: Path) -> bool:
    """Whether a file begins as a slate model does."""
    return path.is_file() and read_beginning(path) == FIRST_LINE


def to_ir(graph: Graph, rules: Mapping[str, Callable[..., Any]] | None = None) -> Graph:
    """Rewrite slate operators into those of the IR."""
    table = add_rules(reads, rules, {node.op for node in graph.all_nodes()})
    return table.rewrite(graph, OnnxBuilder(graph.name))


SUPPORTED = {op: {} for op in writes.rules}
TARGET = Target(
    name="slate",
    supports=SUPPORTED,
    legalizations=add_decompositions(legalization_table("ir → slate"), SUPPORTED),
    sequences=False,
)


def from_ir(graph: Graph) -> Graph:
    """Rewrite operators of the IR into slate ones, those that it lacks into others before."""
    return writes.rewrite(lower_to_target(graph, TARGET), SlateBuilder(graph.name))


FORMAT = Format(
    name="slate",
    title="Slate",
    suffixes=(".slate",),
    matches=matches,
    decode=decode,
    to_ir=to_ir,
    from_ir=from_ir,
    encode=encode,
    read_options=SlateReadOptions,
    tables=(reads, writes),
    next_step="slate run {name}",
    can_be_remainder=True,
)
