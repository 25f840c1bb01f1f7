"""Legalizations for tract: forms that it lacks or computes wrongly, in tract 0.23.9."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.decompositions import recurrent, reduction
from serde.ir.graph import DType, Value
from serde.legalize.target import legalization_table
from serde.version_converter.adapters.quantization import emit_quantize
from serde.version_converter.adapters.recurrent import KINDS

legalize = legalization_table("ir → tract")
STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}  # operands that are initial states


def legalize_recurrent(op, g, *operands, outputs=1, hidden_size: int, **form):
    """tract aborts where a state that is left out has a symbolic size, and reverses wrongly."""
    x, w = operands[:2]
    if form.get("direction") == "reverse":
        form |= {"hidden_size": hidden_size, "outputs": outputs}
        return recurrent.unroll_recurrent(op, g, *operands, **form)
    given = [*operands, *[None] * (8 - len(operands))]
    lacking = [i for i in STATES[op] if given[i] is None]
    if x.is_static or not lacking:
        return None
    batch = 0 if form.get("layout") else 1
    sizes = [w.static_shape[:1], g.Shape(x, start=batch, end=batch + 1), [hidden_size]]
    sizes = [sizes[1], sizes[0], sizes[2]] if form.get("layout") else sizes
    zeros = make_zeros(g, x, g.Concat(*sizes, axis=0))
    states = [zeros if i in lacking else v for i, v in enumerate(given)]
    while states[-1] is None:
        states.pop()
    return g.as_is(op, tuple(states), {"hidden_size": hidden_size, **form}, outputs=outputs)


def make_zeros(g, like: Value, shape: Value):
    """Zeros of a dynamic shape."""
    return g.Expand(g.const(np.zeros((), like.type.numpy)), shape)


@legalize("QuantizeLinear")
def legalize_quantize(g, x, scale, zero=None, *, axis: int, block_size: int = 0, **form):
    """tract takes constant scales only."""
    if scale.tensor is not None:
        return None
    dtype = DType.UINT8 if zero is None else zero.type
    return emit_quantize(g, x, scale, zero, dtype, axis, block_size)


@legalize("MatMul")
def legalize_matmul(g, a, b):
    """tract takes one vector only."""
    if a.rank > 1 or b.rank > 1:
        return None
    return g.Squeeze(g.MatMul(g.Unsqueeze(a, [0]), b), [0])


def legalize_extreme(op, g, x, axes=None, **form):
    """tract gives the farthest finite number for elements that are all infinite."""
    return reduction.extreme_of_infinite(op, g, x, axes, **form)


for _op in ("ReduceMax", "ReduceMin"):
    legalize(_op)(partial(legalize_extreme, _op))
for _op in KINDS:
    legalize(_op)(partial(legalize_recurrent, _op))
