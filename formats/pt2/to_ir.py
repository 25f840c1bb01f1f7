"""From ATen operators to the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from serde.ir.graph import Graph
from serde.rewrite.rules import add_rules
from serde.spec.onnx_builder import OnnxBuilder

from . import ops
from .rules import reads

__all__ = ["ops", "reads", "to_ir"]


def to_ir(
    graph: Graph, *, rules: Mapping[str, Callable[..., Any]] | None = None, training: bool = False
) -> Graph:
    """Rewrite a graph of ATen operators into the IR; ``training`` keeps Dropout.

    Raises:
        Unconvertible: for every node no rule takes.
    """
    builder = OnnxBuilder(graph.name)
    builder.for_training = builder.keeps_weights = training
    return add_rules(reads, rules, graph.operators()).rewrite(graph, builder)
