"""Recurrent layers, unrolled or as a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from serde.decompositions.table import decompositions
from serde.errors import require
from serde.ir.builder import ensure_distinct_outputs
from serde.ir.graph import DType, Value

from .loops import STATIC, loop_body, reverse_rows

MOST_STEPS = 512
# The numbers that an activation takes, and what they are where none are given.
NUMBERS = {
    "Affine": {"alpha": 1.0, "beta": 0.0},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "ScaledTanh": {"alpha": 1.0, "beta": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
}


@dataclass
class Direction:
    """One direction of a layer: what its state is multiplied by, activations and states.

    ``r`` and ``b`` have the columns of all gates, or of those that are computed at once.
    """

    r: list[Value]
    b: list[Value | None]
    f: list[Any]
    h: Value
    c: Value | None
    p: Value | None


def make_activation(name: str, alphas: Iterator[float], betas: Iterator[float]):
    """An activation by its name, in any case, with the next numbers given or the standard's own."""
    kinds = {k.lower(): k for k in (*NUMBERS, "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")}
    require(name.lower() in kinds, f"activation {name!r}")
    name = kinds[name.lower()]
    factors = dict(NUMBERS.get(name, {}))
    for key, numbers in (("alpha", alphas), ("beta", betas)):
        if key in factors:
            factors[key] = next(numbers, factors[key])
    if name == "Affine":
        return lambda g, x: g.Add(g.Mul(x, factors["alpha"]), factors["beta"])
    if name == "ScaledTanh":
        return lambda g, x: g.Mul(g.Tanh(g.Mul(x, factors["beta"])), factors["alpha"])
    return lambda g, x: g[name](x, **factors)


def dense(g, x: Value, w: Value, b: Value | None = None) -> Value:
    y = g.MatMul(x, w)
    return y if b is None else g.Add(y, b)


def split_gates(g, x: Value | None, count: int, hidden: int, axis: int = 0) -> list[Any]:
    """Parts of ``hidden`` elements along an axis; of what is not there, as many None."""
    if x is None:
        return [None] * count
    return [g.slice_axis(x, axis, i * hidden, (i + 1) * hidden) for i in range(count)]


def split_columns(g, x: Value | None, sizes: Sequence[int]) -> list[Any]:
    """Parts along the last axis; of what is not there, as many None."""
    if x is None or len(sizes) == 1:
        return [x] * len(sizes)
    return list(g.Split(x, list(sizes), axis=x.rank - 1, outputs=len(sizes)))


def activate(g, d: Direction, at: int, x: Value, clip: float | None) -> Value:
    """An activation of the direction, of what is clipped first."""
    return d.f[at](g, x if clip is None else g.Clip(x, -clip, clip))


def rnn_step(g, x, d: Direction, hidden: int, clip, **_):
    return activate(g, d, 0, g.Add(x, dense(g, d.h, d.r[0], d.b[0])), clip), None


def gru_step(g, x, d: Direction, hidden: int, clip, linear_before_reset: int = 0, **_):
    """``z``, ``r`` and ``h`` in the standard's order, the first two at once."""
    gates, new = split_columns(g, x, (2 * hidden, hidden))
    inner = dense(g, d.h, d.r[0], d.b[0])
    if linear_before_reset:
        inner, state = split_columns(g, inner, (2 * hidden, hidden))
    z, r = split_columns(g, activate(g, d, 0, g.Add(gates, inner), clip), (hidden, hidden))
    state = g.Mul(r, state) if linear_before_reset else dense(g, g.Mul(r, d.h), d.r[1], d.b[1])
    new = activate(g, d, 1, g.Add(new, state), clip)
    return g.Add(g.Mul(g.Sub(1.0, z), new), g.Mul(z, d.h)), None


def lstm_step(g, x, d: Direction, hidden: int, clip, input_forget: int = 0, **_):
    """``i``, ``o``, ``f`` and ``c`` in the standard's order; peepholes ``i``, ``o``, ``f``."""
    i, o, f, c = split_gates(g, g.Add(x, dense(g, d.h, d.r[0], d.b[0])), 4, hidden, 1)
    peepholes = split_gates(g, d.p, 3, hidden)

    def gate(x, weight, cell):
        return activate(g, d, 0, x if weight is None else g.Add(x, g.Mul(weight, cell)), clip)

    i = gate(i, peepholes[0], d.c)
    f = g.Sub(1.0, i) if input_forget else gate(f, peepholes[2], d.c)
    cell = g.Add(g.Mul(f, d.c), g.Mul(i, activate(g, d, 1, c, clip)))
    o = gate(o, peepholes[1], cell)
    return g.Mul(o, d.f[2](g, cell)), cell


CELLS = {  # gates, activations of a direction, a step
    "RNN": (1, ("Tanh",), rnn_step),
    "GRU": (3, ("Sigmoid", "Tanh"), gru_step),
    "LSTM": (4, ("Sigmoid", "Tanh", "Tanh"), lstm_step),
}


def unroll_recurrent(
    kind, g, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None, *, hidden_size: int,
    direction: str = "forward", layout: int = 0, clip: float | None = None,
    activations: tuple[str, ...] | None = None, activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (), most_steps: int = MOST_STEPS, outputs: int = 1, **more,
):  # fmt: skip
    """The steps one after the other; more than ``most_steps`` as a loop, if the target has them."""
    gates, usual, step = CELLS[kind]
    ways = 2 if direction == "bidirectional" else 1
    x = g.Transpose(x, perm=(1, 0, 2)) if layout else x
    steps = x.ranked_shape[0]
    if not g.loops:
        require(isinstance(steps, int), f"a {kind} over a sequence of dynamic length: {STATIC}")
        require(steps <= MOST_STEPS, f"a {kind} of {steps} steps, of {MOST_STEPS} at most")
    numbers, each = (iter(activation_alpha), iter(activation_beta)), len(usual)
    functions = [make_activation(name, *numbers) for name in activations or usual * ways]
    passes = []
    is_apart = kind == "GRU" and not more.get("linear_before_reset")
    columns = [n * hidden_size for n in ((2, 1) if is_apart else (gates,))]
    for at in range(ways):
        own_w, own_r, own_b, own_p = (v and select_direction(g, v, at) for v in (w, r, b, p))
        own_w, own_r = (g.Transpose(v, perm=(1, 0)) for v in (own_w, own_r))
        biases = split_gates(g, own_b, 2, gates * hidden_size)
        h = initial_state(g, h0, x, at, hidden_size, layout)
        c = initial_state(g, c0, x, at, hidden_size, layout) if kind == "LSTM" else None
        weights, summands = (split_columns(g, v, columns) for v in (own_r, biases[1]))
        d = Direction(weights, summands, functions[at * each : (at + 1) * each], h, c, own_p)
        back = direction == "reverse" or at == 1
        stepping = partial(step, hidden=hidden_size, clip=clip, **more)
        projected = dense(g, x, own_w, biases[0])
        run = _run_direction if isinstance(steps, int) and steps <= most_steps else _run_as_loop
        row, *last = run(g, projected, d, back, stepping, lengths)
        passes.append((row, *(_zero_where_empty(g, v, lengths) for v in last)))
    return gather_results(g, passes, layout, outputs)


def select_direction(g, x: Value, at: int) -> Value:
    """The part of a weight that one direction has."""
    return g.Squeeze(g.Slice(x, [at], [at + 1], [0], [1]), [0])


def initial_state(g, initial: Value | None, x: Value, at: int, hidden: int, layout: int) -> Value:
    if initial is None:
        zeros = g.const([0.0], x.type)
        batch = g.Shape(x, start=1, end=2)
        return g.Expand(zeros, g.Concat(batch, [hidden], axis=0))
    axis = 1 if layout else 0
    return g.Squeeze(g.Slice(initial, [at], [at + 1], [axis], [1]), [axis])


def _run_direction(g, projected: Value, d: Direction, back: bool, stepping, lengths):
    """The outputs of all steps, stacked, and the last states."""
    steps = projected.ranked_shape[0]
    assert isinstance(steps, int)
    rows: list[Value | None] = [None] * steps
    for at in range(steps)[:: -1 if back else 1]:
        rows[at] = _run_step(g, projected, g.const(at, DType.INT64), d, stepping, lengths)
    return g.stack(rows, 0), d.h, d.c


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
    inner, (turn, on, *state_inputs) = loop_body(g, states)
    turned = replace(d, h=state_inputs[0], c=state_inputs[1] if len(state_inputs) > 1 else None)
    at = inner.Sub(inner.Sub(total, 1), turn) if back else turn
    row = _run_step(inner, projected, at, turned, stepping, lengths)
    after = [v for v in (turned.h, turned.c) if v is not None]
    body = inner.build(ensure_distinct_outputs(inner, [on, *after, row]))
    *last, rows = g.Loop(total, None, *states, body=body, outputs=len(states) + 1)
    return reverse_rows(g, rows) if back else rows, last[0], last[1] if len(last) > 1 else None


def gather_results(g, passes, layout: int, outputs: int):
    """The outputs as steps, directions, batch, features; batch first with ``layout``."""
    y = g.stack((stack for stack, _, _ in passes), 1)
    h, c = (g.stack((way[i] for way in passes), 0) if passes[0][i] else None for i in (1, 2))
    if layout:
        y = g.Transpose(y, perm=(2, 0, 1, 3))
        h, c = (v and g.Transpose(v, perm=(1, 0, 2)) for v in (h, c))
    values = (y, h, c)[:outputs]
    return values if outputs > 1 else y


for _kind in CELLS:
    decompositions(_kind)(partial(unroll_recurrent, _kind))
