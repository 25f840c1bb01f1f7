"""A sum with a constant for each channel as the bias of the convolution before it."""

from __future__ import annotations

from serde.ir.constants import make_lazy_constant
from serde.ir.graph import DType, Node
from serde.passes.optional import optional
from serde.rewrite.patterns import Neighbours, Patterns, merge, orders
from serde.spec.traits import CONVOLVES

FLOATS = frozenset({DType.FLOAT16, DType.FLOAT32, DType.FLOAT64})
patterns = Patterns(*CONVOLVES)


@patterns("Add")
def add_bias(near: Neighbours, node: Node) -> Node | None:
    """A convolution without a bias that nothing else reads has the constant as its bias."""
    for x, b in orders(node):
        layer = near.sole_maker(node, x, *CONVOLVES)
        if layer is None or b is None or len(layer.inputs) > 2 or b.dtype not in FLOATS:
            continue
        shape = layer.outputs[0].shape
        if b.tensor is None or shape is None or b.rank > len(shape):
            continue
        size = shape[1]
        by_channel = (1,) * (len(shape) - b.rank) + b.static_shape
        if isinstance(size, int) and by_channel == (1, size, *[1] * (len(shape) - 2)):
            bias = make_lazy_constant(b.name, b, (size,), b.array)
            return merge(layer, node, inputs=(*layer.inputs, bias))
    return None


fold_bias = optional("fold_bias")(patterns.apply)
