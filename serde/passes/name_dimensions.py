"""Names for the dimensions of inputs that have none, or one that is no identifier."""

from __future__ import annotations

import re
from dataclasses import replace

from serde.ir.builder import Names
from serde.ir.dim_expr import split_operands
from serde.ir.graph import Dim, Graph, Value
from serde.ir.replace_uses import replace_values
from serde.passes.change_batch import dimension_names
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def name_dimensions(graph: Graph) -> Graph:
    """Return an IR graph in which identifiers name all dimensions of inputs that are no numbers.

    A dimension without a name has one of its own; equal names stay equal. Expressions of names,
    such as ``past+1``, stay as they are. Shapes are inferred again where anything changed.
    """
    names, renamed = Names(), dict[str, str]()
    names.used.update(d for d in dimension_names(graph) if IDENTIFIER.fullmatch(d))

    def name(value: Value, axis: int, dim: Dim) -> Dim:
        if dim is None:
            return names.fresh(_to_identifier(f"{value.name}_{axis}"))
        if isinstance(dim, int) or IDENTIFIER.fullmatch(dim) or split_operands(dim) is not None:
            return dim
        if dim not in renamed:
            renamed[dim] = names.fresh(_to_identifier(dim))
        return renamed[dim]

    instead: dict[Value, Value] = {}
    for v in graph.inputs:
        shape = v.shape and tuple(name(v, axis, dim) for axis, dim in enumerate(v.shape))
        if shape != v.shape:
            instead[v] = Value(v.name, v.dtype, shape, container=v.container)
    if not instead:
        return graph
    inputs = tuple(instead.get(v, v) for v in graph.inputs)
    renewed = replace(replace_values(graph, instead), inputs=inputs)
    return RuleTable("dimensions", fallback=again).rewrite(renewed, OnnxBuilder(graph.name))


def _to_identifier(text: str) -> str:
    word = re.sub(r"[^A-Za-z0-9_.]+", "_", text)
    return word if IDENTIFIER.fullmatch(word) else f"_{word}"
