"""From a graph of any opset to the IR."""

from __future__ import annotations

from collections.abc import Collection

from serde.ir.graph import Graph
from serde.legalize.convert import raise_to_ir
from serde.rewrite.custom_ops import Readers, without_unused_imports

from . import contrib
from .consumers.onnxruntime.integer_kernels import take_exact_branches
from .moved_attributes import move_attributes


def to_ir(graph: Graph, keep_domain: Collection[str] = (), dequantize: bool = False) -> Graph:
    """Rewrite a graph of any opset into the IR.

    ``keep_domain`` are domains whose operators are carried along even where they could be read as
    operators of the standard: ``com.microsoft``, for a model that stays with ONNX Runtime.
    ``dequantize`` reads operators that quantize what they read as those on floats.
    """
    tables = contrib.FLOAT_TABLES if dequantize else contrib.TABLES
    readers = Readers(
        tables, contrib.REFUSALS, contrib.OPSETS, contrib.SYNONYMS, tuple(keep_domain)
    )
    graph = take_exact_branches(move_attributes(graph))
    return without_unused_imports(raise_to_ir(graph, readers), contrib.TABLES)
