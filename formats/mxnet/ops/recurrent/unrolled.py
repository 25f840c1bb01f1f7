"""Recurrent layers step by step, for those MXNet's RNN is not.

Equations and the order of gates are those of the standard: ``iofc`` for LSTM, ``zrh`` for GRU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from serde.decompositions.expressions import cast, shape_from, size_of, slice_axis
from serde.errors import require
from serde.ir.graph import Value

from ..fallbacks import LAST

Step = Callable[..., list[Value]]
# What else an activation takes, and what it is unless said.
NUMBERS = {
    "Affine": {"alpha": 1.0, "beta": 0.0},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "ScaledTanh": {"alpha": 1.0, "beta": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
}


def make_activation(name: str, alphas, betas):
    """An activation with its numbers, taken from the lists in order."""
    kinds = {k.lower(): k for k in (*NUMBERS, "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")}
    require(name.lower() in kinds, f"activation {name!r}")
    name = kinds[name.lower()]
    given = dict(NUMBERS.get(name, {}))
    for key, numbers in (("alpha", alphas), ("beta", betas)):
        if key in given:
            given[key] = next(numbers, given[key])
    if name == "Affine":
        return lambda g, x: g.Add(g.Mul(x, given["alpha"]), given["beta"])
    if name == "ScaledTanh":
        return lambda g, x: g.Mul(g.Tanh(g.Mul(x, given["beta"])), given["alpha"])
    return lambda g, x: g[name](x, **given)


def unroll_steps(
    op, g, layer, functions, direction, hidden, outputs, x, w, r, b=None, lengths=None, state=None,
    cell=None, peepholes=None,
):  # fmt: skip
    """Every step unrolled, for each direction."""
    steps = x.ranked_shape[0]
    require(isinstance(steps, int), f"{op} over a dynamic number of steps")
    ways = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    per_way = len(functions) // len(ways)
    ys, ends = [], []
    for at, backwards in enumerate(ways):
        of = partial(select_direction, g, at=at)
        states = [
            initial_state(g, x, v, at, hidden)
            for v in ((state, cell) if op == "LSTM" else (state,))
        ]
        run = partial(
            layer, g, functions[at * per_way : (at + 1) * per_way], of(r), of(b), of(peepholes)
        )
        found = run_direction(
            g, run, project_inputs(g, x, of(w), of(b)), lengths, states, steps, backwards
        )
        ys.append(found[0])
        ends.append(found[1])
    y = g.Concat(*(g.Unsqueeze(v, [1]) for v in ys), axis=1)
    last = [g.Concat(*(g.Unsqueeze(v, [0]) for v in vs), axis=0) for vs in zip(*ends, strict=True)]
    return (y, *last)[:outputs]


def select_direction(g, value: Value | None, at: int):
    """The part of a parameter that is one direction's."""
    return None if value is None else g.Gather(value, g.const(at), axis=0)


def initial_state(g, x: Value, state: Value | None, at: int, hidden: int):
    if state is not None:
        return select_direction(g, state, at)
    zero = g.const(np.zeros((), x.type.numpy))
    return g.Expand(zero, shape_from(g, [size_of(g, x, 1), hidden]))


def project_inputs(g, x: Value, w: Value, b: Value | None):
    """What the inputs of all steps come to, bias included."""
    y = g.MatMul(x, g.Transpose(w, perm=[1, 0]))
    return y if b is None else g.Add(y, slice_axis(g, b, 0, 0, b.static_shape[0] // 2))


def run_direction(g, run, inputs: Value, lengths, states, steps: int, backwards: bool):
    """The outputs of all steps, and the states at the end; past a sequence's end nothing moves."""
    ys: list[Value] = []
    for t in range(steps - 1, -1, -1) if backwards else range(steps):
        new = run(g.Gather(inputs, g.const(t), axis=0), *states)
        y = new[0]
        if lengths is not None:
            lives = g.Unsqueeze(g.Greater(lengths, g.const(t, lengths.type)), [1])
            new = [g.Where(lives, a, b) for a, b in zip(new, states, strict=True)]
            y = g.Where(lives, y, cast(g, g.const(0), y.type))
        states = new
        ys.append(g.Unsqueeze(y, [0]))
    if lengths is not None:  # ONNX Runtime gives 0, not the initial state, for an empty sequence
        present = g.Unsqueeze(g.Greater(lengths, g.const(0, lengths.type)), [1])
        states = [g.Where(present, v, cast(g, g.const(0), v.type)) for v in states]
    return g.Concat(*(ys[::-1] if backwards else ys), axis=0), states


def project_state(g, r: Value, b: Value | None, h: Value):
    """What the state comes to, for all gates."""
    y = g.MatMul(h, g.Transpose(r, perm=[1, 0]))
    return y if b is None else g.Add(y, slice_axis(g, b, 0, b.static_shape[0] // 2, LAST))


def split_gates(g, x: Value, count: int):
    size = x.static_shape[-1] // count if isinstance(x.ranked_shape[-1], int) else 0
    return [slice_axis(g, x, x.rank - 1, i * size, (i + 1) * size) for i in range(count)]


def clip_and_apply(g, f, x: Value, clip):
    return f(g, x if clip is None else g.Clip(x, g.const(-clip, x.type), g.const(clip, x.type)))


def rnn_step(g, functions, r, b, peepholes, x, h, *, clip, reset_first, coupled):
    return [clip_and_apply(g, functions[0], g.Add(x, project_state(g, r, b, h)), clip)]


def gru_step(g, functions, r, b, peepholes, x, h, *, clip, reset_first, coupled):
    f, act = functions
    xs, hs = split_gates(g, x, 3), split_gates(g, project_state(g, r, b, h), 3)
    z, reset = (clip_and_apply(g, f, g.Add(xs[i], hs[i]), clip) for i in (0, 1))
    if reset_first:
        own = slice_axis(g, r, 0, r.static_shape[0] // 3 * 2, LAST)
        bias = None if b is None else slice_axis(g, b, 0, b.static_shape[0] // 6 * 5, LAST)
        inner = g.MatMul(g.Mul(reset, h), g.Transpose(own, perm=[1, 0]))
        inner = inner if bias is None else g.Add(inner, bias)
    else:
        inner = g.Mul(reset, hs[2])
    new = clip_and_apply(g, act, g.Add(xs[2], inner), clip)
    return [g.Add(g.Mul(g.Sub(1.0, z), new), g.Mul(z, h))]


def lstm_step(g, functions, r, b, peepholes, x, h, c, *, clip, reset_first, coupled):
    f, act, out = functions
    i, o, forget, new = (
        g.Add(a, b_)
        for a, b_ in zip(
            split_gates(g, x, 4), split_gates(g, project_state(g, r, b, h), 4), strict=True
        )
    )
    looks = [None] * 3 if peepholes is None else split_gates(g, peepholes, 3)
    i = clip_and_apply(g, f, i if looks[0] is None else g.Add(i, g.Mul(looks[0], c)), clip)
    forget = forget if looks[2] is None else g.Add(forget, g.Mul(looks[2], c))
    forget = g.Sub(1.0, i) if coupled else clip_and_apply(g, f, forget, clip)
    cell = g.Add(g.Mul(forget, c), g.Mul(i, clip_and_apply(g, act, new, clip)))
    o = clip_and_apply(g, f, o if looks[1] is None else g.Add(o, g.Mul(looks[1], cell)), clip)
    return [g.Mul(o, out(g, cell)), cell]


LAYERS: dict[str, Step] = {"LSTM": lstm_step, "GRU": gru_step, "RNN": rnn_step}
