"""Composite operators in terms of the standard's, for targets that have none of them."""

from __future__ import annotations

from functools import partial

from serde.errors import require
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Value
from serde.rewrite.rules import RuleTable
from serde.spec.composites import DOMAIN
from serde.spec.weight_origins import is_weight

from .adaptive_pools import adaptive_pool
from .recurrent import (
    CELLS,
    Direction,
    dense,
    initial_state,
    lstm_step,
    make_activation,
    select_direction,
    split_gates,
)

composites = RuleTable(f"{DOMAIN} → ir")


def emit_projected_lstm(g, *operands: Value | None, direction: str):
    """The layer as one node where it is to be trained, which its arrays have to be constants for.

    The operands and results are those of ``run_projected_lstm``.
    """
    if g.for_training and all(v is None or v.tensor is not None for v in operands[1:5]):
        return g.composite("ProjectedLSTM", operands, {"direction": direction})
    return run_projected_lstm(g, *operands, direction=direction)


def emit_adaptive_pool(g, x: Value, sizes: Ints, kind: str, otherwise=adaptive_pool) -> Value:
    """The layer as one node where it is to be trained, else what ``otherwise`` makes of it."""
    if not g.for_training or x.type.kind != "f":
        return otherwise(g, x, sizes, kind)
    (y,) = g.composite("AdaptivePool", (x,), {"output_size": tuple(sizes), "kind": kind})
    return y


@composites("AdaptivePool")
def write_out_adaptive_pool(g, x: Value, *, output_size: Ints, kind: str):
    return adaptive_pool(g, x, output_size, kind)


def emit_stop_gradient(g, x: Value) -> Value:
    """``x``, through which training changes nothing before it."""
    if not g.for_training or x.type.kind != "f" or not (x.tensor is None or is_weight(x)):
        return x
    (y,) = g.composite("StopGradient", (x,), {})
    return y


@composites("StopGradient")
def pass_on(g, x: Value):
    """The operand: the standard has nothing that stops gradients."""
    g.note("passes its operand on, and in training gradients too, which the source stops there: "
           "stop them where you train, as by detach() in PyTorch")  # fmt: skip
    return x


@composites("FeatureDropout")
def drop_features(g, x: Value, *, rate: float):
    """A Dropout of whole channels, which are along the second axis."""
    shape = g.Concat(g.Shape(x, end=2), [1] * (x.rank - 2), axis=0)
    ones = g.Expand(g.scalar(1, x), shape)
    return g.Mul(x, g.Dropout(ones, g.const(rate, DType.FLOAT32)))


@composites("AlphaDropout")
def refuse_alpha_dropout(g, x: Value, *, rate: float):
    """A Dropout that keeps mean and variance, in training alone."""
    require(False, f"AlphaDropout(p={rate:g}) is not of the standard. Convert without --training")


@composites("ProjectedLSTM")
def run_projected_lstm(
    g, x: Value, w: Value, r: Value, projection: Value, b: Value | None = None,
    h0: Value | None = None, c0: Value | None = None, *, direction="forward",
):  # fmt: skip
    """An LSTM whose outputs are projected to fewer numbers, as a Scan for each direction.

    The operands are those of the standard's LSTM, with its order of gates; ``r`` reads what
    ``projection`` gives, which is ``(directions, outputs, hidden)``. The results are the outputs,
    with those of both directions side by side, and the states in the end.
    """
    gates, usual, _ = CELLS["LSTM"]
    functions = [make_activation(name, iter(()), iter(())) for name in usual]
    ways, width, hidden = projection.static_shape
    passes = []
    for at in range(ways):
        own_w, own_r, down, own_b = (
            v and select_direction(g, v, at) for v in (w, r, projection, b)
        )
        own_w, own_r, down = (g.Transpose(v, perm=(1, 0)) for v in (own_w, own_r, down))
        biases = split_gates(g, own_b, 2, gates * hidden)
        rows = dense(g, x, own_w, b and g.Add(*biases))
        h, c = (
            initial_state(g, None, x, at, size, 0) if v is None else g.Gather(v, at, axis=0)
            for v, size in ((h0, width), (c0, hidden))
        )
        step = partial(_step, r=own_r, down=down, functions=functions, hidden=hidden)
        back = int(direction == "reverse" or at == 1)
        turn = {"scan_input_directions": (back,), "scan_output_directions": (back,)}
        h, c, y = g.scan(step, [h, c], [rows], **turn)
        passes.append((y, h, c))
    y, h, c = zip(*passes, strict=True)
    return g.Concat(*y, axis=2), g.stack(h, 0), g.stack(c, 0)


def _step(g, h: Value, c: Value, row: Value, *, r: Value, down: Value, functions, hidden: int):
    direction = Direction([r], [None], functions, h, c, None)
    unprojected, c = lstm_step(g, row, direction, hidden, None)
    h = dense(g, unprojected, down)
    return h, c, h
