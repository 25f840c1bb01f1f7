"""RNN, GRU and LSTM."""

from __future__ import annotations

from functools import partial

from serde.ir.graph import Value

from . import downgrades, upgrades

KINDS = ("RNN", "GRU", "LSTM")
STATES = (5, 6)  # operands that hold an initial state, batch first with layout 1


def time_first(op, g, *operands, layout: int, outputs=1, **rest):
    """Before opset 14 time always came before batch."""
    if not layout:
        return g[op](*operands, outputs=outputs, **rest)
    moved = [
        g.Transpose(v, perm=(1, 0, 2)) if v is not None and i in (0, *STATES) else v
        for i, v in enumerate(operands)
    ]
    results = g[op](*moved, outputs=outputs, **rest)
    y, *states = results if isinstance(results, tuple) else (results,)
    return g.Transpose(y, perm=(2, 0, 1, 3)), *(g.Transpose(v, perm=(1, 0, 2)) for v in states)


def every_output_optional(op, g, *operands, output_sequence: int, outputs=1, **rest):
    """``output_sequence`` set whether the first output is computed; it always is since."""
    return g[op](*operands, outputs=outputs, **rest)


for _op in KINDS:
    downgrades[14](_op)(partial(time_first, _op))
    upgrades[7](_op)(partial(every_output_optional, _op))


@upgrades[3]("GRU")
def restore_gru_direction(g, *operands: Value, direction: str, outputs=1, **rest):
    """The default direction of opset 1 is misspelt."""
    correct = "forward" if direction == "foward" else direction
    return g.GRU(*operands, direction=correct, outputs=outputs, **rest)
