"""Recurrent layers for tract: unrolled, or with the states that it needs."""

from __future__ import annotations

import numpy as np

from serde.decompositions import recurrent

LENGTHS, PEEPHOLES = 4, 7  # operands: the length of each sample, and weights of an LSTM's cells
STATES = {"GRU": (5,), "LSTM": (5, 6), "RNN": (5,)}  # operands that are initial states


def legalize_recurrent(op, g, *operands, outputs=1, hidden_size: int, **form):
    """tract aborts where a state that is left out has a symbolic size, and reverses wrongly.

    It takes the default activations for all, and heeds neither ``clip`` nor ``input_forget``. It
    has no lengths of single samples, and no states of two directions. It mixes up the axes of one
    step. It fails at a GRU that has one feature and is linear before it resets, and, without
    peepholes, at an LSTM that returns its cells or has two directions.
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
    if others or is_lacking or direction == "reverse":
        form |= {"hidden_size": hidden_size, "outputs": outputs}
        return recurrent.unroll_recurrent(op, g, *operands, **form)
    if form.get("linear_before_reset") and x.ranked_shape[2] == 1:
        padded = (g.Pad(v, [0, 0, 0, 0, 0, 1]) for v in (x, w))
        form |= {"hidden_size": hidden_size, "outputs": outputs}
        return g[op](*padded, *operands[2:], **form)
    needs_peepholes = op == "LSTM" and (outputs == 3 or direction == "bidirectional")
    needs_peepholes &= inputs[PEEPHOLES] is None
    if needs_peepholes:
        weights = np.zeros((w.static_shape[0], 3 * hidden_size), x.type.numpy)
        inputs[PEEPHOLES] = g.const(weights)
    lacking = [i for i in STATES[op] if inputs[i] is None and not x.is_static]
    if not lacking and not needs_peepholes:
        return None
    if lacking:
        batch = 0 if form.get("layout") else 1
        sizes = [w.static_shape[:1], g.Shape(x, start=batch, end=batch + 1), [hidden_size]]
        sizes = [sizes[1], sizes[0], sizes[2]] if form.get("layout") else sizes
        zeros = g.Expand(g.const(np.zeros((), x.type.numpy)), g.Concat(*sizes, axis=0))
        inputs = [zeros if i in lacking else v for i, v in enumerate(inputs)]
    while inputs[-1] is None:
        inputs.pop()
    return g.as_is(op, tuple(inputs), {"hidden_size": hidden_size, **form}, outputs=outputs)
