"""Sums that MNN takes for biases of layers."""

from __future__ import annotations

CHANNELS = {"Conv": 1, "ConvTranspose": 1, "Gemm": -1, "MatMul": -1}  # the axis of a product's
MOST_BETWEEN = 8  # operators that are looked through


def add_apart(g, a, b):
    """``Add``: MNN makes a constant of as many numbers as a product has channels its bias.

    It does so whatever the shape of the constant, and where a ``Relu`` is in between. It subtracts
    constants as they are.
    """
    for y, c in ((a, b), (b, a)):
        node, between = g.producer(y), 0
        while node is not None and node.op in ("Clip", "Relu") and between < MOST_BETWEEN:
            node, between = g.producer(node.inputs[0]), between + 1
        if node is None or node.op not in CHANNELS or c.tensor is None:
            continue
        count, bias_shape = y.ranked_shape[CHANNELS[node.op]], [1] * y.rank
        bias_shape[CHANNELS[node.op]] = c.tensor.size
        shape = [1] * (y.rank - c.rank) + [*c.static_shape]
        is_as_many = count == c.tensor.size or not isinstance(count, int)
        if is_as_many and (between or shape != bias_shape):
            return g.Sub(y, g.Neg(c))
    return None
