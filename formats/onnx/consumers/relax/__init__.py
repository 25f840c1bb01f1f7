"""ONNX for TVM's importer into Relax (``tvm.relax.frontend.onnx``, apache-tvm 0.27)."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.graph import Graph
from serde.legalize.convert import require_legal, scalarize_sequences, without_functions
from serde.legalize.walk import legalize
from serde.passes import tidy

from .target import OPSET, RELAX, data_dependent

__all__ = ["OPSET", "RELAX", "for_relax"]


def for_relax(graph: Graph) -> Graph:
    """Legalize the IR for the importer.

    Raises:
        Unconvertible: for all inputs, outputs and nodes that cannot be made legal, at once.
    """
    legal = legalize(scalarize_sequences(without_functions(graph)), RELAX, tidy)
    return require_legal(legal, replace(RELAX, data_dependent=data_dependent(legal.graph)))
