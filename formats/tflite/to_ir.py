"""From operators of TensorFlow Lite to the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from serde.ir.graph import Graph
from serde.passes.layout.hoist import hoist
from serde.rewrite.rules import add_rules
from serde.spec.onnx_builder import OnnxBuilder

from . import read
from .passes.lift_variables import lift_variables, name_ends
from .quantization import FileInfo
from .rules import TfliteTable, reads

__all__ = ["read", "reads", "to_ir"]


def to_ir(graph: Graph, *, rules: Mapping[str, Callable[..., Any]] | None = None) -> Graph:
    """Rewrite a graph of TensorFlow Lite's operators into the IR.

    Raises:
        Unconvertible: for every node no rule takes.
    """
    before, graph = graph, lift_variables(graph)
    table = add_rules(reads, rules, graph.operators())
    info = graph.source_info
    if isinstance(table, TfliteTable) and isinstance(info, FileInfo):
        table = table.with_quantizations(info.quantizations)
    done = replace(table.rewrite(graph, OnnxBuilder(graph.name)), source_info=None)
    return hoist(done if before is graph else name_ends(done, before))
