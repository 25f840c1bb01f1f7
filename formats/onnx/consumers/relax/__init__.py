"""ONNX for TVM's importer into Relax (``tvm.relax.frontend.onnx``, apache-tvm 0.27)."""

from __future__ import annotations

from serde.errors import Unconvertible
from serde.ir.graph import Graph
from serde.legalize.convert import scalarize_sequences, without_functions
from serde.legalize.walk import grouped, legalize
from serde.passes import tidy

from .target import OPSET, RELAX, illegal_inputs, illegal_nodes

__all__ = ["OPSET", "RELAX", "for_relax"]


def for_relax(graph: Graph) -> Graph:
    """Legalize the IR for the importer.

    Raises:
        Unconvertible: for all inputs, outputs and nodes that cannot be made legal, at once.
    """
    legal = legalize(scalarize_sequences(without_functions(graph)), RELAX, tidy)
    problems = [*illegal_inputs(graph), *legal.emulated_outputs(), *grouped(illegal_nodes(legal))]
    if problems:
        raise Unconvertible(f"ir → {RELAX.name}", problems)
    return legal.graph
