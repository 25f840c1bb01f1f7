"""From operators of TensorFlow Lite to the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from serde.errors import Problem, Unconvertible
from serde.ir.graph import EMPTY, DType, Graph
from serde.passes.layout.hoist import hoist
from serde.rewrite.rules import add_rules
from serde.spec.onnx_builder import OnnxBuilder

from . import read
from .passes.dilate import merge_blocks
from .passes.lift_variables import lift_variables, name_ends
from .quantization import FileInfo
from .rules import TfliteTable, reads

COMPLEX_END = "is of complex numbers: begin and end the model at their parts (--outputs)"

__all__ = ["read", "reads", "to_ir"]


def to_ir(graph: Graph, *, rules: Mapping[str, Callable[..., Any]] | None = None) -> Graph:
    """Rewrite a graph of TensorFlow Lite's operators into the IR.

    Raises:
        Unconvertible: for every node no rule takes, and inputs and outputs of complex numbers.
    """
    problems = [
        Problem("tensor", EMPTY, COMPLEX_END, (v.name,), reads.name)
        for v in (*graph.inputs, *graph.outputs)
        if v.dtype is DType.COMPLEX64
    ]
    if problems:
        raise Unconvertible(reads.name, problems)
    lifted = lift_variables(graph)
    before, graph = (None if lifted is graph else graph), merge_blocks(lifted)
    table = add_rules(reads, rules, graph.operators())
    info = graph.source_info
    if isinstance(table, TfliteTable) and isinstance(info, FileInfo):
        table = table.with_quantizations(info.quantizations)
    done = replace(table.rewrite(graph, OnnxBuilder(graph.name)), source_info=None)
    return hoist(done if before is None else name_ends(done, before))
