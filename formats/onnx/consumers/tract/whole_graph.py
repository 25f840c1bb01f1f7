"""What tract needs of a whole graph: sizes of its own that it can tell to be the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from serde.ir.constants import make_constant
from serde.ir.graph import Dim, Graph, Node, Tensor, Value
from serde.spec.traits import BROADCASTS

from ..used_names import used_names


def prepare(graph: Graph) -> Graph:
    """Return ``graph`` with a size that comes of a number and a name as that number.

    A size by name that is broadcast with a number of 2 or more is 1 or that number. tract does not
    know the result as the number; a ``Gather`` of all places tells it. Subgraphs stay as they are.
    """
    names, nodes = used_names(graph), list[Node]()
    for node in graph.nodes:
        axes = _find_mixed_axes(node)
        if not axes:
            nodes.append(node)
            continue
        (y,) = node.outputs
        steps = [Value(names.fresh(f"{y.name}/broadcast"), y.dtype) for _ in axes]
        nodes.append(replace(node, outputs=(steps[0],)))
        for (axis, size), x, result in zip(axes.items(), steps, [*steps[1:], y], strict=True):
            places = make_constant(names.fresh(f"{y.name}/places"), Tensor.of(np.arange(size)))
            attrs, sources = {"axis": axis}, node.sources
            nodes.append(Node("Gather", (x, places), (result,), attrs, "", x.name, sources))
    return replace(graph, nodes=tuple(nodes)) if len(nodes) > len(graph.nodes) else graph


def _find_mixed_axes(node: Node) -> dict[int, int]:
    """The axes of a result to which operands have a name and a number of 2 or more, and that."""
    y = node.outputs[0] if len(node.outputs) == 1 else None
    if node.op not in BROADCASTS | {"PRelu"} or node.domain or y is None or not y.shape:
        return {}
    operands = [v.shape for v in node.inputs if v is not None and v.shape is not None]
    mixed = {}
    for axis, size in enumerate(y.shape):
        dims: set[Dim] = {
            s[axis - len(y.shape)] for s in operands if axis - len(y.shape) >= -len(s)
        }
        if isinstance(size, int) and size > 1 and any(isinstance(d, str) for d in dims):
            mixed[axis] = size
    return mixed
