"""One ONNX recurrent layer becomes MXNet's fused RNN; its parameters become one vector."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.graph import Tensor, Value

from ..target import writes

GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}  # MXNet's gates among ONNX's
DIRECTIONS = {"forward": 1, "bidirectional": 2}
USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
OPEN = {"layout": (0,), "clip": (None,), "activation_alpha": (), "activation_beta": ()}


def write_layer(
    op, s, x, w, r, b=None, lengths=None, state=None, cell=None, peepholes=None, *, hidden_size,
    direction, activations=None, linear_before_reset=1, input_forget=0,
):  # fmt: skip
    require(direction in DIRECTIONS, f"direction={direction!r}")
    require(lengths is None and peepholes is None, "sequence lengths or peepholes")
    require(linear_before_reset and not input_forget, "linear_before_reset=0 or input_forget=1")
    count, mode = DIRECTIONS[direction], mode_of(op, activations, DIRECTIONS[direction])
    vector = s.const(packed(op, w, r, b), name=f"{w.name}_parameters")
    states = [begin(s, state, count, hidden_size)]
    if op == "LSTM":
        states.append(begin(s, cell, count, hidden_size))
    y, *ends = s.RNN(
        x, vector, *states, mode=mode, state_size=hidden_size, num_layers=1,
        bidirectional=count == 2, state_outputs=True, outputs=1 + len(states),
    )  # fmt: skip
    if count == 1:
        return (s.expand_dims(y, axis=1), *ends)
    split = s.Reshape(y, shape=(0, 0, 2, -1))
    return (s.transpose(split, axes=(0, 2, 1, 3)), *ends)


def mode_of(op: str, activations: Any, count: int) -> str:
    """MXNet's name for the cell; refuses activations it has no cell for."""
    if op == "RNN":
        kinds = set(activations or ("Tanh",))
        require(kinds in ({"Tanh"}, {"Relu"}), f"activations={activations}")
        return "rnn_tanh" if kinds == {"Tanh"} else "rnn_relu"
    usual = activations is None or tuple(activations) == USUAL[op] * count
    require(usual, f"activations={activations}")
    return op.lower()


def begin(s, state: Value | None, count: int, hidden: int):
    """A begin state; MXNet infers the batch of zeros, which stands as 0."""
    return s["_zeros"](shape=(count, 0, hidden)) if state is None else state


def packed(op: str, w: Value, r: Value, b: Value | None) -> Tensor:
    """All parameters in MXNet's order: the weights of each direction, then the biases of each."""
    require(all(v is None or v.tensor is not None for v in (w, r, b)), "weights that are computed")
    directions, rows, _ = w.dims
    size = sum(v.tensor.size for v in (w, r) if v.tensor) + directions * 2 * rows
    return Tensor(w.type, (size,), partial(_vector, GATES[op], w, r, b))


def _vector(gates: tuple[int, ...], w: Value, r: Value, b: Value | None) -> Any:
    directions, rows, _ = w.dims
    biases = np.zeros((directions, 2 * rows), w.type.numpy) if b is None else b.array()
    parts = [_ordered(m.array()[d], gates) for d in range(directions) for m in (w, r)]
    parts += [_ordered(half, gates) for bias in biases for half in np.split(bias, 2)]
    return np.concatenate([p.ravel() for p in parts])


def _ordered(matrix: Any, gates: tuple[int, ...]) -> Any:
    blocks = np.split(matrix, len(gates))
    return np.concatenate([blocks[g] for g in gates])


for _op in GATES:
    writes(_op, only={k: v for k, v in OPEN.items() if k == "layout"})(partial(write_layer, _op))
