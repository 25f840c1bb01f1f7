"""Composite operators: layers that the standard has no operator for, in a domain of our own.

A reader emits one where the training form is asked for. It stays a node for a target that has the
domain, and is decomposed for every other (``serde.decompositions.composites``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serde.errors import require
from serde.ir.graph import Node, Shape, Value

DOMAIN = "serde"
Attrs = Mapping[str, Any]


def infer_projected_lstm(inputs: Sequence[Value | None], attrs: Attrs) -> Sequence[Shape]:
    """The shapes of Y, Y_h and Y_c, where Y has what both directions give side by side.

    The projection comes behind the data, ``w`` and ``r``.
    """
    require(len(inputs) > 3, "a projected LSTM without its projection")
    x, _, _, projection = inputs[:4]
    assert x is not None and projection is not None
    steps, batch, _ = x.ranked_shape
    ways, width, hidden = projection.static_shape
    return (steps, batch, ways * width), (ways, batch, width), (ways, batch, hidden)


def infer_same(inputs: Sequence[Value | None], attrs: Attrs) -> Sequence[Shape]:
    """The shape of the operand."""
    require(len(inputs) == 1 and inputs[0] is not None, "a layer of one operand without it")
    assert inputs[0] is not None
    return (inputs[0].ranked_shape,)


def infer_adaptive_pool(inputs: Sequence[Value | None], attrs: Attrs) -> Sequence[Shape]:
    """The shape of the operand, of other sizes behind the axis of channels."""
    (shape,) = infer_same(inputs, attrs)
    return ((*shape[:2], *attrs["output_size"]),)


SHAPES: Mapping[str, Callable[[Sequence[Value | None], Attrs], Sequence[Shape]]] = {
    "AdaptivePool": infer_adaptive_pool,
    "AlphaDropout": infer_same,
    "FeatureDropout": infer_same,
    "ProjectedLSTM": infer_projected_lstm,
    "StopGradient": infer_same,
}


def infer_types(node: Node) -> None:
    """Give the results of a composite operator the types that follow from its operands."""
    if node.op not in SHAPES:
        return
    shapes, x = SHAPES[node.op](node.inputs, node.attrs), node.inputs[0]
    assert x is not None
    for result, shape in zip(node.outputs, shapes, strict=False):
        result.dtype, result.shape = x.dtype, shape
