"""Recurrent layers, unrolled or as a loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from serde.errors import require
from serde.ir.graph import DType, Value

from .loops import loop_body, reverse_rows

MOST_STEPS = 512
PLAIN = {"Affine", "LeakyRelu", "ThresholdedRelu", "HardSigmoid", "Elu", "ScaledTanh"}


@dataclass
class Direction:
    """One direction of a layer: its weights, activations and states, batch by features."""

    w: Value
    r: Value
    b: Value | None
    f: list[Any]
    h: Value
    c: Value | None
    p: Value | None


def activation(name: str, alpha: float | None, beta: float | None):
    """An activation by its name, with the numbers given for it or the standard's own."""
    given = {"alpha": alpha, "beta": beta}
    some = {n: v for n, v in given.items() if v is not None}
    if name == "Affine":
        return lambda g, x: g.Add(g.Mul(x, some.get("alpha", 1.0)), some.get("beta", 0.0))
    if name == "ScaledTanh":
        one = (alpha if alpha is not None else 1.0, beta if beta is not None else 1.0)
        return lambda g, x: g.Mul(g.Tanh(g.Mul(x, one[1])), one[0])
    if name in PLAIN:
        kept = some if name == "HardSigmoid" else {n: v for n, v in some.items() if n == "alpha"}
        return lambda g, x: g[name](x, **kept)
    return lambda g, x: g[name](x)


def activations(names, alphas, betas, each: int) -> list[list[Any]]:
    """The activations of each direction; numbers are given for those that take any."""
    alphas, betas = list(alphas or ()), list(betas or ())
    made = []
    for name in names:
        takes = name in PLAIN
        alpha = alphas.pop(0) if takes and alphas else None
        beta = betas.pop(0) if name in ("Affine", "HardSigmoid", "ScaledTanh") and betas else None
        made.append(activation(name, alpha, beta))
    return [made[i : i + each] for i in range(0, len(made), each)]


def clip_symmetric(g, x: Value, clip: float | None) -> Value:
    return x if clip is None else g.Clip(x, -clip, clip)


def dense(g, x: Value, w: Value) -> Value:
    return g.MatMul(x, g.Transpose(w, perm=(1, 0)))


def rnn_step(g, x, d: Direction, hidden: int, clip, **_):
    total = g.Add(x, dense(g, d.h, d.r))
    if d.b is not None:
        total = g.Add(total, g.Slice(d.b, [hidden], [2 * hidden], [0], [1]))
    return d.f[0](g, clip_symmetric(g, total, clip)), None


def gru_step(g, x, d: Direction, hidden: int, clip, linear_before_reset: int = 0, **_):
    """``z``, ``r`` and ``h`` in the standard's order."""
    parts = [g.Slice(x, [i * hidden], [(i + 1) * hidden], [1], [1]) for i in range(3)]
    rows = [g.Slice(d.r, [i * hidden], [(i + 1) * hidden], [0], [1]) for i in range(3)]
    bias = [
        g.Slice(d.b, [(3 + i) * hidden], [(4 + i) * hidden], [0], [1]) if d.b is not None else None
        for i in range(3)
    ]
    z, r = (
        d.f[0](
            g,
            clip_symmetric(g, add_bias(g, g.Add(parts[i], dense(g, d.h, rows[i])), bias[i]), clip),
        )
        for i in (0, 1)
    )
    if linear_before_reset:
        inner = g.Mul(r, add_bias(g, dense(g, d.h, rows[2]), bias[2]))
    else:
        inner = add_bias(g, dense(g, g.Mul(r, d.h), rows[2]), bias[2])
    new = d.f[1](g, clip_symmetric(g, g.Add(parts[2], inner), clip))
    return g.Add(g.Mul(g.Sub(1.0, z), new), g.Mul(z, d.h)), None


def add_bias(g, x: Value, b: Value | None) -> Value:
    return x if b is None else g.Add(x, b)


def lstm_step(g, x, d: Direction, hidden: int, clip, input_forget: int = 0, **_):
    """``i``, ``o``, ``f`` and ``c`` in the standard's order; peepholes ``i``, ``o``, ``f``."""
    total = g.Add(x, dense(g, d.h, d.r))
    if d.b is not None:
        total = g.Add(total, g.Slice(d.b, [4 * hidden], [8 * hidden], [0], [1]))
    i, o, f, c = (g.Slice(total, [k * hidden], [(k + 1) * hidden], [1], [1]) for k in range(4))
    peep = [
        g.Slice(d.p, [k * hidden], [(k + 1) * hidden], [0], [1]) if d.p is not None else None
        for k in range(3)
    ]
    i = d.f[0](g, clip_symmetric(g, add_peephole(g, i, peep[0], d.c), clip))
    f = (
        g.Sub(1.0, i)
        if input_forget
        else d.f[0](g, clip_symmetric(g, add_peephole(g, f, peep[2], d.c), clip))
    )
    cell = g.Add(g.Mul(f, d.c), g.Mul(i, d.f[1](g, clip_symmetric(g, c, clip))))
    o = d.f[0](g, clip_symmetric(g, add_peephole(g, o, peep[1], cell), clip))
    return g.Mul(o, d.f[2](g, cell)), cell


def add_peephole(g, x: Value, weight: Value | None, cell: Value | None) -> Value:
    """A gate that sees the cell."""
    return x if weight is None else g.Add(x, g.Mul(weight, cell))


CELLS = {  # gates, activations of a direction, a step
    "RNN": (1, ("Tanh",), rnn_step),
    "GRU": (3, ("Sigmoid", "Tanh"), gru_step),
    "LSTM": (4, ("Sigmoid", "Tanh", "Tanh"), lstm_step),
}


def unroll_recurrent(
    kind, g, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None, *, hidden_size: int,
    direction: str = "forward", layout: int = 0, clip: float | None = None, activations_=None,
    activation_alpha=None, activation_beta=None, outputs: int = 1, **more,
):  # fmt: skip
    gates, usual, step = CELLS[kind]
    ways = 2 if direction == "bidirectional" else 1
    names = activations_ or usual * ways
    x = g.Transpose(x, perm=(1, 0, 2)) if layout else x
    steps, batch = x.ranked_shape[0], x.ranked_shape[1]
    if not g.loops:
        require(isinstance(steps, int), f"a {kind} over a sequence of dynamic length")
        require(steps <= MOST_STEPS, f"a {kind} of {steps} steps")
    chosen = activations(names, activation_alpha, activation_beta, len(usual))
    found = []
    for at in range(ways):
        own = [v and _select_direction(g, v, at) for v in (w, r, b, p)]
        h = _state(g, h0, x, at, hidden_size, layout)
        c = _state(g, c0, x, at, hidden_size, layout) if kind == "LSTM" else None
        d = Direction(own[0], own[1], own[2], chosen[at], h, c, own[3])
        back = direction == "reverse" or at == 1
        row, *last = _run_direction(g, x, d, back, step, lengths, gates, hidden_size, clip, more)
        found.append((row, *(_zero_where_empty(g, v, lengths) for v in last)))
    return _results(g, found, layout, outputs, batch)


def _select_direction(g, x: Value, at: int) -> Value:
    """The part of a weight that one direction has."""
    return g.Squeeze(g.Slice(x, [at], [at + 1], [0], [1]), [0])


def _state(g, given: Value | None, x: Value, at: int, hidden: int, layout: int) -> Value:
    if given is None:
        zeros = g.const([0.0], x.type)
        batch = g.Shape(x, start=1, end=2)
        return g.Expand(zeros, g.Concat(batch, [hidden], axis=0))
    axis = 1 if layout else 0
    return g.Squeeze(g.Slice(given, [at], [at + 1], [axis], [1]), [axis])


def _run_direction(
    g, x, d: Direction, back: bool, step, lengths, gates: int, hidden: int, clip, more
):
    """The outputs of all steps, stacked, and the last states."""
    steps = x.ranked_shape[0]
    projected = g.MatMul(x, g.Transpose(d.w, perm=(1, 0)))
    if d.b is not None:
        projected = g.Add(projected, g.Slice(d.b, [0], [gates * hidden], [0], [1]))
    stepping = partial(step, hidden=hidden, clip=clip, **more)
    if not isinstance(steps, int) or steps > MOST_STEPS:
        return _run_as_loop(g, projected, d, back, stepping, lengths)
    rows: list[Value | None] = [None] * steps
    for at in range(steps)[:: -1 if back else 1]:
        rows[at] = _run_step(g, projected, g.const(at, DType.INT64), d, stepping, lengths)
    return g.Concat(*(g.Unsqueeze(row, [0]) for row in rows), axis=0), d.h, d.c


def _zero_where_empty(g, state: Value | None, lengths: Value | None) -> Value | None:
    """A last state: 0, not the initial state, for an empty sequence, as ONNX Runtime gives it."""
    if state is None or lengths is None:
        return state
    if lengths.tensor is not None and (lengths.array() > 0).all():
        return state
    present = g.Unsqueeze(g.Greater(g.Cast(lengths, to=7), 0), [1])
    return g.Where(present, state, 0.0)  # type: ignore[no-any-return]


def _run_step(g, projected, at: Value, d: Direction, stepping, lengths) -> Value:
    """The output of one step; the states move on, in batches that are as long."""
    h, c = stepping(g, g.Gather(projected, at, axis=0), d)
    row = h
    if lengths is not None:
        on = g.Unsqueeze(g.Greater(g.Cast(lengths, to=7), at), [1])
        row = g.Where(on, h, 0.0)
        h, c = g.Where(on, h, d.h), c and g.Where(on, c, d.c)
    d.h, d.c = h, c if c is not None else d.c
    return row


def _run_as_loop(g, projected, d: Direction, back: bool, stepping, lengths):
    """As many turns as there are steps."""
    total = g.Gather(g.Shape(projected), 0, axis=0)
    states = [v for v in (d.h, d.c) if v is not None]
    inner, (turn, on, *held) = loop_body(g, states)
    turned = replace(d, h=held[0], c=held[1] if len(held) > 1 else None)
    at = inner.Sub(inner.Sub(total, 1), turn) if back else turn
    row = _run_step(inner, projected, at, turned, stepping, lengths)
    after = [v for v in (turned.h, turned.c) if v is not None]
    body = inner.build([on, *after, row])
    *last, rows = g.Loop(total, None, *states, body=body, outputs=len(states) + 1)
    return reverse_rows(g, rows) if back else rows, last[0], last[1] if len(last) > 1 else None


def _results(g, found, layout: int, outputs: int, batch):
    """The outputs as steps, directions, batch, features; batch first with ``layout``."""
    y = g.Concat(*(g.Unsqueeze(stack, [1]) for stack, _, _ in found), axis=1)
    h, c = (
        g.Concat(*(g.Unsqueeze(way[i], [0]) for way in found), axis=0) if found[0][i] else None
        for i in (1, 2)
    )
    if layout:
        y = g.Transpose(y, perm=(2, 0, 1, 3))
        h, c = (v and g.Transpose(v, perm=(1, 0, 2)) for v in (h, c))
    made = (y, h, c)[:outputs]
    return made if outputs > 1 else y


def unroll_rnn(
    g, x, w, r, b=None, lengths=None, h0=None, *, hidden_size: int, direction: str, layout: int,
    clip: float | None = None, activations: tuple[str, ...] | None = None,
    activation_alpha=None, activation_beta=None, outputs: int = 1,
):  # fmt: skip
    return unroll_recurrent(
        "RNN", g, x, w, r, b, lengths, h0, hidden_size=hidden_size, direction=direction,
        layout=layout, clip=clip, activations_=activations, activation_alpha=activation_alpha,
        activation_beta=activation_beta, outputs=outputs,
    )  # fmt: skip


def unroll_gru(
    g, x, w, r, b=None, lengths=None, h0=None, *, hidden_size: int, direction: str, layout: int,
    linear_before_reset: int, clip: float | None = None,
    activations: tuple[str, ...] | None = None, activation_alpha=None, activation_beta=None,
    outputs: int = 1,
):  # fmt: skip
    return unroll_recurrent(
        "GRU", g, x, w, r, b, lengths, h0, hidden_size=hidden_size, direction=direction,
        layout=layout, clip=clip, activations_=activations, activation_alpha=activation_alpha,
        activation_beta=activation_beta, outputs=outputs, linear_before_reset=linear_before_reset,
    )  # fmt: skip


def unroll_lstm(
    g, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None, *, hidden_size: int,
    direction: str, layout: int, input_forget: int, clip: float | None = None,
    activations: tuple[str, ...] | None = None, activation_alpha=None, activation_beta=None,
    outputs: int = 1,
):  # fmt: skip
    return unroll_recurrent(
        "LSTM", g, x, w, r, b, lengths, h0, c0, p, hidden_size=hidden_size, direction=direction,
        layout=layout, clip=clip, activations_=activations, activation_alpha=activation_alpha,
        activation_beta=activation_beta, outputs=outputs, input_forget=input_forget,
    )  # fmt: skip
