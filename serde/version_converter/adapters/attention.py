"""Attention."""

from __future__ import annotations

from functools import partial

from serde.ir.graph import Value

from . import downgrades
from .function_bodies import expand_function

downgrades[23]("Attention")(partial(expand_function, "Attention"))


@downgrades[25]("Attention")
def attention_through_windows(
    g, *operands: Value, left_window_size: int, right_window_size: int, outputs=1, **rest
):
    """Before opset 25 every key before and behind a query was seen."""
    if left_window_size < 0 and right_window_size < 0:
        return g.Attention(*operands, outputs=outputs, **rest)
    windows = {"left_window_size": left_window_size, "right_window_size": right_window_size}
    return expand_function("Attention", g, *operands, outputs=outputs, **windows, **rest)


@downgrades[24]("Attention")
def attention_to_whole_sequences(g, *operands: Value, outputs=1, **rest):
    """Before opset 24 keys had no length of their own."""
    if len(operands) < 7 or operands[6] is None:
        return g.Attention(*operands[:6], outputs=outputs, **rest)
    return expand_function("Attention", g, *operands, outputs=outputs, **rest)
