"""From ATen operators to the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from serde.decompositions.random_source import with_random
from serde.ir.graph import Graph
from serde.rewrite.rules import add_rules
from serde.spec.onnx_builder import OnnxBuilder

from . import ops
from .ops.random import draws
from .rules import reads

__all__ = ["ops", "reads", "to_ir"]


def to_ir(
    graph: Graph, *, rules: Mapping[str, Callable[..., Any]] | None = None,
    random: str = "refuse", training: bool = False,
) -> Graph:  # fmt: skip
    """Rewrite a graph of ATen operators into the IR; ``training`` keeps Dropout.

    ``random`` chooses how operators that draw random numbers are converted: ``refuse`` refuses
    them, with ``onnx`` the runtime draws them, with ``input`` they read noise from an input of the
    model.

    Raises:
        Unconvertible: for every node no rule takes.
    """
    builder = OnnxBuilder(graph.name)
    builder.for_training = builder.keeps_weights = training
    table = with_random(reads, draws, random)
    return add_rules(table, rules, graph.operators()).rewrite(graph, builder)
