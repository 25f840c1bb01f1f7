"""Recurrent layers for tract: unrolled, or with the states that it needs."""

from __future__ import annotations

import numpy as np

from serde.decompositions import recurrent

LENGTHS = 4  # the operand with the length of each sample
STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}  # operands that are initial states


def legalize_recurrent(op, g, *operands, outputs=1, hidden_size: int, **form):
    """tract aborts where a state that is left out has a symbolic size, and reverses wrongly.

    It takes the default activations for all, and heeds neither ``clip`` nor ``input_forget``. It
    has no lengths of single samples, no states of two directions, and none that are left out where
    an LSTM returns three results. It mixes up the axes of one step. It fails at a GRU that has one
    feature and is linear before it resets.
    """
    x, w = operands[:2]
    _, usual, _ = recurrent.CELLS[op]
    functions = tuple(form.get("activations") or usual)
    is_usual = functions in (tuple(usual), tuple(usual) * 2)
    others = form.get("clip") is not None or form.get("input_forget") or not is_usual
    inputs = [*operands, *[None] * (8 - len(operands))]
    direction = form.get("direction")
    has_states = any(inputs[i] is not None for i in STATES[op])
    steps = x.ranked_shape[1 if form.get("layout") else 0]
    is_lacking = inputs[LENGTHS] is not None or x.tensor is not None or steps == 1
    is_lacking |= direction == "bidirectional" and (has_states or not isinstance(steps, int))
    is_lacking |= x.is_static and outputs == 3 and not has_states
    if others or is_lacking or direction == "reverse":
        form |= {"hidden_size": hidden_size, "outputs": outputs}
        return recurrent.unroll_recurrent(op, g, *operands, **form)
    if form.get("linear_before_reset") and x.ranked_shape[2] == 1:
        wide = (g.Pad(v, [0, 0, 0, 0, 0, 1]) for v in (x, w))
        form |= {"hidden_size": hidden_size, "outputs": outputs}
        return g[op](*wide, *operands[2:], **form)
    lacking = [i for i in STATES[op] if inputs[i] is None]
    if x.is_static or not lacking:
        return None
    batch = 0 if form.get("layout") else 1
    sizes = [w.static_shape[:1], g.Shape(x, start=batch, end=batch + 1), [hidden_size]]
    sizes = [sizes[1], sizes[0], sizes[2]] if form.get("layout") else sizes
    zeros = g.Expand(g.const(np.zeros((), x.type.numpy)), g.Concat(*sizes, axis=0))
    states = [zeros if i in lacking else v for i, v in enumerate(inputs)]
    while states[-1] is None:
        states.pop()
    return g.as_is(op, tuple(states), {"hidden_size": hidden_size, **form}, outputs=outputs)
