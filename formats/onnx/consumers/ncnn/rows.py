"""Rows that are normalized apart from the samples: ncnn takes the first axis for that of these."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from serde.ir.builder import Names
from serde.ir.graph import Graph, Node, Tensor, Value

from ..used_names import used_names


def reshape_rows(graph: Graph) -> Graph:
    """Return a graph that normalizes rows in tensors of another first axis.

    pnnx follows the axis of the samples through a Reshape by its size.
    """
    names = used_names(graph)
    nodes = [new_node for node in graph.nodes for new_node in _reshape_around(node, names)]
    return replace(graph, nodes=tuple(nodes))


def _reshape_around(node: Node, names: Names) -> Iterator[Node]:
    x = node.inputs[0] if node.op == "LayerNormalization" else None
    if x is None:
        yield node
        return
    *sizes, width = x.static_shape
    rows = math.prod(sizes)
    flat = (1, rows, width) if sizes[0] != 1 else (rows, 1, 1, width)
    y = node.outputs[0]
    narrow, normal = (_rename(v, names, flat) for v in (x, y))
    yield _reshape(x, narrow, names)
    attrs = {**node.attrs, "axis": len(flat) - 1}
    yield replace(node, inputs=(narrow, *node.inputs[1:]), outputs=(normal,), attrs=attrs)
    yield _reshape(normal, y, names)


def _rename(x: Value, names: Names, shape: tuple[int, ...]) -> Value:
    return replace(x, name=names.fresh(f"{x.name}/rows"), shape=shape, tensor=None)


def _reshape(x: Value, y: Value, names: Names) -> Node:
    sizes = Tensor.of(np.asarray(y.static_shape, np.int64))
    shape = Value(names.fresh(f"{y.name}/shape"), sizes.dtype, sizes.shape, sizes)
    return Node("Reshape", (x, shape), (y,), {"allowzero": 0}, "", y.name)
