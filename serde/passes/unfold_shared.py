"""Large constants that were folded from weights which others read as well: computed again.

Folded, both are in the file: a table of words and its transposition take twice the space.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serde.ir.graph import Graph, Node, Tensor, Value
from serde.ir.replace_uses import replace_values
from serde.spec import schema
from serde.spec.folding import LIMIT, LazyResult
from serde.spec.number_traits import MATRIX_PRODUCTS
from serde.spec.traits import ARITHMETIC, RESHAPES

SAME_FORM = frozenset({"Cast", "Reshape", "Transpose"})  # at all opsets, but for attributes
# Operators that cost little, once for each session: runtimes fold them when they load a file.
CHEAP = SAME_FORM | RESHAPES | ARITHMETIC | {"Concat", "Gather", "Neg", "Slice"}
# Operators that every runtime lets read what others compute; of some it wants constant weights.
READERS = SAME_FORM | ARITHMETIC | MATRIX_PRODUCTS | {"Concat", "Gather"}


def unfold_shared(graph: Graph) -> Graph:
    """Return a graph of ONNX's operators with nodes in place of such constants.

    Bodies of functions stay as they are.
    """
    sources = {v.tensor: v for v in graph.constants() if v.tensor is not None}
    others = (n for n in graph.all_nodes() if n.op not in READERS or n.domain)
    fixed = {v for node in others for v in node.inputs}.union(graph.outputs)
    instead: dict[Value, Value] = {}
    nodes: list[Node] = []
    for value in sources.values():
        folded = None if value in fixed else _find_folded(graph, value, sources)
        if folded is not None:
            instead[value] = Value(value.name, value.dtype, value.shape)
            nodes.append(_make_node(graph, folded, instead[value], sources))
    if not nodes:
        return graph
    done = replace_values(graph, instead)
    return replace(done, nodes=(*nodes, *done.nodes))


def _find_folded(graph: Graph, value: Value, sources: Mapping[Tensor, Value]) -> LazyResult | None:
    """How a large constant is computed, if it is of constants that the graph has as well."""
    folded = value.tensor.load if value.tensor is not None else None
    if not isinstance(folded, LazyResult) or not _is_large(value) or folded.op not in CHEAP:
        return None
    large = [v for v in folded.inputs if v is not None and _is_large(v)]
    if not large or len(folded.types) != 1 or not _has_form(graph, folded):
        return None
    origins = [sources.get(v.tensor) for v in large if v.tensor is not None]
    is_source = (v is not None and _find_folded(graph, v, sources) is None for v in origins)
    return folded if all(is_source) else None


def _is_large(value: Value) -> bool:
    return value.tensor is not None and value.tensor.size > LIMIT


def _has_form(graph: Graph, folded: LazyResult) -> bool:
    """Whether the operator is spelled as where it was folded, and takes the elements."""
    now, before = (schema.operator(folded.op, v) for v in (graph.opset, folded.opset))
    is_same = now.attributes == before.attributes and len(now.inputs) == len(before.inputs)
    first = folded.inputs[0]
    is_taken = first is not None and first.dtype in now.input(0).types
    return is_taken and (is_same or folded.op in SAME_FORM)


def _make_node(
    graph: Graph, folded: LazyResult, y: Value, sources: Mapping[Tensor, Value]
) -> Node:  # fmt: skip
    known = schema.operator(folded.op, graph.opset).attributes
    attrs = {n: a for n, a in folded.attrs.items() if n in known}
    constants = (v for v in folded.inputs if v is not None and v.tensor is not None)
    unfolded = {v: sources.get(v.tensor, v) for v in constants if v.tensor is not None}
    inputs = tuple(v and unfolded[v] for v in folded.inputs)
    return Node(folded.op, inputs, (y,), attrs, "", y.name)
