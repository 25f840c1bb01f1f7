"""Recurrent layers as sequence operators where those compute them, otherwise as their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from serde.decompositions import loops
from serde.decompositions import recurrent as steps
from serde.errors import require
from serde.ir.graph import DType, Shape, Value

from ..target import TfliteBuilder, derive, legalizations, writes

FUSED = {"relu": 1, "tanh": 4}  # numbers of ActivationFunctionType
GATES = (0, 2, 3, 1)  # of the input, forgetting, the cell and the output in the standard's order
PEEPHOLES = (0, 2, 1)


def fits_sequence(kind: str, g: Any, x: Value, weights: Sequence[Value | None], attrs: Any) -> bool:
    """Whether a sequence operator computes a layer: its usual activations, of constant weights."""
    usual = [name.lower() for name in steps.CELLS[kind][1]]
    named = [name.lower() for name in attrs.get("activations") or usual]
    ways = 2 if attrs["direction"] == "bidirectional" else 1
    is_usual = named in (usual, usual * ways) or (kind == "RNN" and {*named} <= FUSED.keys())
    is_plain = attrs.get("clip") is None and not attrs.get("input_forget")
    return (
        is_usual and is_plain and x.dtype is DType.FLOAT32
        and all(v is None or v.tensor is not None or find_restored(g, v) for v in weights)
    )  # fmt: skip


def find_restored(g: Any, weight: Value) -> Any:
    """The node that makes a weight of a constant of fewer bits, if the layer can be cut there."""
    maker = g.maker(weight, "Cast", "DequantizeLinear")
    if maker is None or maker.inputs[0].tensor is None:
        return None
    is_cut = maker.op == "Cast" or maker.inputs[1].rank == 0 or maker.attrs["axis"] % weight.rank
    return maker if is_cut and not maker.attrs.get("block_size") else None


def cut_direction(g: Any, weight: Value, at: int) -> Value:
    """The part of a weight that one direction has; what is small is made in float32."""
    maker = None if weight.tensor is not None else find_restored(g, weight)
    if maker is None:
        return g.Slice(weight, [at], [at + 1], [0])  # type: ignore[no-any-return]
    part = g.Slice(maker.inputs[0], [at], [at + 1], [0])
    if maker.op == "Cast" and weight.rank < 3:
        return derive(g, part, lambda a: a.astype(np.float32), part.static_shape, DType.FLOAT32)
    return g[maker.op](part, *maker.inputs[1:], **maker.attrs)  # type: ignore[no-any-return]


def legalize_recurrent(
    kind: str, g, x, w, r, b=None, lengths=None, h0=None, c0=None, p=None, *,
    hidden_size: int, direction: str = "forward", layout: int = 0, outputs: int = 1, **attrs,
):  # fmt: skip
    """One forward or backward layer as it is; both directions as two of them."""
    form = {"direction": direction, "layout": layout, **attrs}
    is_known = kind in g.target.supports and lengths is None
    if not is_known or not fits_sequence(kind, g, x, (w, r, b, p), form):
        is_static = isinstance(x.ranked_shape[1 if layout else 0], int)
        require(is_static, f"a {kind} over a sequence of dynamic length: {loops.STATIC}")
        operands = (x, w, r, b, lengths, h0, c0, p)
        return steps.unroll_recurrent(
            kind, g, *operands, hidden_size=hidden_size, most_steps=loops.LONGEST,
            outputs=outputs, **form,
        )  # fmt: skip
    if layout:
        x = g.Transpose(x, perm=(1, 0, 2))
    ways = ("forward", "reverse") if direction == "bidirectional" else (direction,)
    activations = [*(attrs.get("activations") or steps.CELLS[kind][1] * len(ways))]
    each = len(activations) // len(ways)
    passes = []
    for at, way in enumerate(ways):
        parts = [v and cut_direction(g, v, at) for v in (w, r, b, p)]
        states = [v and g.Slice(v, [at], [at + 1], [1 if layout else 0]) for v in (h0, c0)]
        states = [v and g.Transpose(v, perm=(1, 0, 2)) if layout else v for v in states]
        rest = (*states, parts[3]) if kind == "LSTM" else states[:1]
        results = g.as_is(
            kind, (x, *parts[:3], None, *rest), {"hidden_size": hidden_size, "direction": way,
            "activations": activations[at * each : (at + 1) * each]}, 3 if kind == "LSTM" else 2,
        )  # fmt: skip
        row, *last = results
        passes.append((g.Squeeze(row, [1]), *(g.Squeeze(v, [0]) for v in last), None)[:3])
    return steps.gather_results(g, passes, layout, outputs)


for _kind in steps.CELLS:
    legalizations(_kind)(partial(legalize_recurrent, _kind))


def cut(t: TfliteBuilder, x: Value, at: int, size: int) -> Value:
    """A part of a weight of one direction along its rows, dequantized as the whole is."""
    rows = slice(at * size, (at + 1) * size)
    shape = (size, *x.static_shape[2:])
    maker = t.maker(x, "DEQUANTIZE")
    if maker is None:
        return derive(t, x, lambda a: np.ascontiguousarray(a[0, rows]), shape)
    numbers, *factors = maker.inputs
    axis = maker.attrs.get("axis", 1) - 1
    part = derive(t, numbers, lambda a: np.ascontiguousarray(a[0, rows]), shape)
    if axis == 0:
        factors = [v if v is None or v.rank == 0 else derive(t, v, lambda a: a[rows], (size,))
                   for v in factors]  # fmt: skip
    return t.make("DEQUANTIZE", [part, *factors], x.dtype, shape, axis=axis)


def start(t: TfliteBuilder, x: Value, hidden: int, initial: Value | None) -> Value:
    """A variable that holds a state, which is computed anew in each run of the file."""
    batch = x.ranked_shape[1]
    zeros = t.const(np.zeros((batch if isinstance(batch, int) else 1, hidden), np.float32))
    if initial is not None:
        return select(t, t.reshape(initial, (batch, hidden)), zeros)
    if isinstance(batch, int):
        return select(t, zeros, zeros)
    begin, end, steps = t.ints([0, 0, 0]), t.ints([1, 0, 1]), t.ints([1, 1, 1])
    column = t.make("STRIDED_SLICE", [x, begin, end, steps], x.dtype, (batch, 1),
                    end_mask=2, shrink_axis_mask=1)  # fmt: skip
    return select(t, zeros, column, (batch, hidden))


def select(t: TfliteBuilder, x: Value, other: Value, shape: Shape | None = None) -> Value:
    """A copy of a value in a place of its own, made when another one is there too."""
    operands = [t.const(np.asarray(True)), x, other]
    return t.make("SELECT_V2", operands, x.dtype, shape or x.shape)


def run(t: TfliteBuilder, x: Value, hidden: int, direction: str, emit: Callable[[Value], Value]):
    """What a sequence operator makes of all steps, and the last of them."""
    first = t.ints([0])
    turned = x
    if direction == "reverse":
        turned = t.make("REVERSE_V2", [x, first], x.dtype, x.shape)
    y = emit(turned)
    begin, sizes = t.ints([-1, 0, 0]), t.ints([0, 0, 0])
    h = t.make("STRIDED_SLICE", [y, begin, sizes, t.ints([1, 1, 1])], y.dtype,
               (1, *y.ranked_shape[1:]), end_mask=7)  # fmt: skip
    if direction == "reverse":
        y = t.make("REVERSE_V2", [y, first], y.dtype, y.shape)
    length, batch, _ = y.ranked_shape
    return t.reshape(y, (length, 1, batch, hidden)), h


@writes("RNN", only={"layout": (0,)}, ignore=("activation_alpha", "activation_beta"))
def write_rnn(
    t: TfliteBuilder, x: Value, w: Value, r: Value, b=None, lengths=None, h0=None, *,
    hidden_size: int, direction: str, activations: Sequence[str],
):  # fmt: skip
    bias = sum_biases(t, b, 1, hidden_size)[0]
    shape = (*x.ranked_shape[:2], hidden_size)
    operands = [cut(t, w, 0, hidden_size), cut(t, r, 0, hidden_size), bias]
    options = {"time_major": True, "fused_activation_function": FUSED[activations[0].lower()]}

    def emit(turned: Value) -> Value:
        state = start(t, x, hidden_size, h0)
        return t.make("UNIDIRECTIONAL_SEQUENCE_RNN", [turned, *operands, state], x.dtype, shape,
                      **options)  # fmt: skip

    return run(t, x, hidden_size, direction, emit)


def sum_biases(t: TfliteBuilder, b: Value | None, gates: int, hidden: int) -> list[Value]:
    """The biases of data and of states as one for each gate."""
    if b is None:
        return [t.const(np.zeros(hidden, np.float32))] * gates
    total = derive(t, b, lambda a: a[:, : gates * hidden] + a[:, gates * hidden :],
                   (1, gates * hidden))  # fmt: skip
    return [cut(t, total, at, hidden) for at in range(gates)]


@writes("LSTM", only={"layout": (0,), "input_forget": (0,)},
        ignore=("activations", "activation_alpha", "activation_beta"))  # fmt: skip
def write_lstm(
    t: TfliteBuilder, x: Value, w: Value, r: Value, b=None, lengths=None, h0=None, c0=None, p=None,
    *, hidden_size: int, direction: str,
):  # fmt: skip
    n = hidden_size
    shape = (*x.ranked_shape[:2], n)
    biases = sum_biases(t, b, 4, n)
    state, cell = start(t, x, n, h0), start(t, x, n, c0)
    operands = [
        *(cut(t, w, at, n) for at in GATES), *(cut(t, r, at, n) for at in GATES),
        *(p and cut(t, p, at, n) for at in PEEPHOLES), *(biases[at] for at in GATES), None, None,
        state, cell, None, None, None, None,
    ]  # fmt: skip
    options = {"time_major": True, "fused_activation_function": FUSED["tanh"]}

    def emit(turned: Value) -> Value:
        return t.make("UNIDIRECTIONAL_SEQUENCE_LSTM", [turned, *operands], x.dtype, shape,
                      **options)  # fmt: skip

    y, h = run(t, x, n, direction, emit)
    last = t.reshape(h, cell.ranked_shape)
    return y, h, t.reshape(select(t, cell, last), h.ranked_shape)
