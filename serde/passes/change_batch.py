"""Give a graph another batch than the one it was made for.

Exporters write ``Reshape(x, [1, 12, 64])`` where the model means "the batch, 12, 64": the checker
is content and the model fails at any other batch. The batch is followed through the graph at its
old size (``batch.analysis``), and what holds that size is written anew (``batch.rewriting``).
Operators that do not work sample by sample along the axis of the batch are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from serde.errors import UsageError
from serde.ir.dim_expr import evaluate
from serde.ir.graph import Dim, Graph, Value
from serde.ir.replace_uses import replace_values
from serde.passes.batch.coordinates import rules
from serde.passes.batch.request import find_batch_axes, read_request
from serde.passes.dce import drop_dead
from serde.passes.drop_neutral import drop_neutral
from serde.rewrite.driver import again
from serde.rewrite.rules import RuleTable
from serde.spec.onnx_builder import OnnxBuilder

if TYPE_CHECKING:
    from serde.passes.batch.analysis import Analysis

BATCH = "N"
ANOTHER = 31  # a batch no model is made with, and fewer samples than tables for them have
NAME = re.compile(r"[A-Za-z_]\w*")


def rebatch(graph: Graph, batch: Any = BATCH) -> Graph:
    """Return an IR graph whose inputs have another batch.

    Args:
        graph: a graph without functions.
        batch: a number or a name for the first axis of all inputs; or a mapping of names of inputs
            and outputs to axes, such as ``{"*": "N", "state": (1, "N"), "rate": None}``.

    Raises:
        UsageError: where the inputs do not share a batch. Unconvertible: with the nodes that do
            not work sample by sample.
    """
    size = read_request(batch).size
    old, axes, _ = find_batch_axes(graph, read_request(batch))
    if old == size:
        return graph
    # which few models need
    from serde.passes.batch.rewriting import check_sizes, infer_again, write_batch

    if not isinstance(old, int):  # all sizes that depend on it have names
        instead = {v: replace_dim(v, axis, size) for v, axis in axes.items()}
        inputs = tuple([instead.get(v, v) for v in graph.inputs])
        return infer_again(replace(replace_values(graph, instead), inputs=inputs))
    analysis = find_places(graph, batch)
    check_sizes(write_batch(analysis, ANOTHER))
    return infer_again(write_batch(analysis, size))


def find_places(graph: Graph, batch: Any) -> Analysis:
    """Where the batch lies in the values of a graph, whose constants are folded."""
    from serde.passes.batch.analysis import Analysis
    from serde.passes.batch.rewriting import check_sizes

    typed = check_sizes(graph, is_typed=True)
    if not rules.rules.keys().isdisjoint(typed.operators()):
        typed = rules.rewrite(typed, OnnxBuilder(graph.name))
    folded = drop_dead(drop_neutral(typed))
    old, axes, outputs = find_batch_axes(folded, read_request(batch))
    assert isinstance(old, int)
    return Analysis(folded, old, axes, outputs).run()


def dimension_names(graph: Graph) -> set[str]:
    """The names of the dimensions of a graph's inputs."""
    return {d for v in graph.inputs for d in v.shape or () if isinstance(d, str)}


def size_names(graph: Graph) -> set[str]:
    """The names of the dimensions of a graph's inputs, and those in expressions among these."""
    dims = dimension_names(graph)
    return dims.union(*map(NAME.findall, dims))


def fix_dimensions(graph: Graph, sizes: Mapping[str, int], declared: Collection[str] = ()) -> Graph:
    """Return an IR graph in which the dimensions that ``sizes`` names have its sizes.

    So do those that are expressions of these names, such as ``past + 1``. ``declared`` are the
    names that inputs had which may have been left out since.
    """
    known = size_names(graph)
    if unknown := sorted(set(sizes) - known - set(declared)):
        have = ", ".join(sorted(dimension_names(graph))) or "none"
        raise UsageError(f"no dimension is called {', '.join(unknown)}; the inputs have: {have}")
    unused = [n for n in sizes if n not in known]
    notes = (f"no input that is kept has the dimension {n}" for n in unused)
    instead = {}
    for v in graph.inputs:
        shape = v.shape and tuple(_fix(d, sizes) for d in v.shape)
        instead[v] = Value(v.name, v.dtype, shape, container=v.container)
    renewed = replace(
        replace_values(graph, instead),
        inputs=tuple(instead[v] for v in graph.inputs),
        notes=(*graph.notes, *notes),
    )
    return RuleTable("sizes", fallback=again).rewrite(renewed, OnnxBuilder(graph.name))


def _fix(dim: Dim, sizes: Mapping[str, int]) -> Dim:
    size = evaluate(dim, sizes) if isinstance(dim, str) else dim
    if isinstance(size, int) and size < 0:
        raise UsageError(f"the dimension {dim} would be {size}: give larger sizes")
    return size


def replace_dim(value: Value, axis: int, dim: Dim) -> Value:
    """A value like ``value`` with ``dim`` along ``axis``."""
    shape = value.shape
    if shape is None or len(shape) <= axis:
        return value
    shape = (*shape[:axis], dim, *shape[axis + 1 :])
    return Value(value.name, value.dtype, shape, container=value.container)
