"""Recurrent layers: MXNet's fused RNN becomes one ONNX node a layer, and a node one RNN.

All parameters come as one vector: for each layer and direction the input and the hidden weights,
then for each the two biases (rnn-inl.h). A layer's directions share a node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from serde.decompositions.composites import emit_projected_lstm
from serde.decompositions.recurrent import unroll_recurrent
from serde.errors import require
from serde.ir import arrays
from serde.ir.geometry import may_be_same
from serde.ir.graph import DType, Tensor, Value
from serde.spec.expressions import END

from ...rnn_sizes import RnnSizes
from ...rules import reads
from ...target import legalizations, writes
from ..identity import read_dropout

GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}  # MXNet's gates among ONNX's
DIRECTIONS = {"forward": 1, "bidirectional": 2}
ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
PLAIN = ({"Tanh"}, {"Relu"})


class Cell(NamedTuple):
    """ONNX's operator for a mode, and its gates in terms of MXNet's: i f g o, r z n."""

    op: str
    gates: tuple[int, ...]
    attrs: dict[str, object]


CELLS = {
    "lstm": Cell("LSTM", (0, 3, 1, 2), {}),
    "gru": Cell("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "rnn_relu": Cell("RNN", (0,), {"activations": ("Relu",)}),
    "rnn_tanh": Cell("RNN", (0,), {"activations": ("Tanh",)}),
}
ONLY = {
    "lstm_state_clip_min": ("None",),
    "lstm_state_clip_max": ("None",),
    "lstm_state_clip_nan": (False,),
}


@reads("RNN", ignore=("state_outputs",), only=ONLY)
def read_rnn(
    g, x, parameters, state=None, cell_state=None, lengths=None, *, state_size: int,
    num_layers: int, mode: str, bidirectional=False, use_sequence_length=False, p=0.0,
    projection_size: int | None = None,
):  # fmt: skip
    """Sequence lengths count, as MXNet documents and does on GPUs; on CPUs it ignores them.

    ``p`` is the share of what each layer but the last gives that is dropped in training.
    """
    require(mode in CELLS, f"mode={mode!r} is unknown")
    if mode != "lstm" and use_sequence_length:
        cell_state, lengths = None, cell_state if lengths is None else lengths
    require(not use_sequence_length or lengths is not None, "use_sequence_length without lengths")
    cell, directions = CELLS[mode], 2 if bidirectional else 1
    sizes = RnnSizes(state_size, num_layers, directions, len(cell.gates), projection_size)
    states = [None if s is None or is_zero(g, s) else s for s in (state, cell_state)]
    if projection_size is not None:
        require(mode == "lstm" and not use_sequence_length, f"projection_size of a {mode}")
    lengths = g.cast(lengths, DType.INT32) if use_sequence_length else None
    vector = Vector(g, parameters, cell, sizes)
    features = vector.features()
    if x.shape is not None:
        same = may_be_same(x.shape[-1], features)
        require(same, f"parameters for {features} features, and the data have {x.shape[-1]}")
    widths = [features] + [sizes.output * directions] * (num_layers - 1)
    weights = [vector.weights(width) for width in widths]
    biases = [vector.biases() for _ in widths]
    ends = []
    for layer in range(num_layers):
        x = read_dropout(g, x, p=p) if layer and p else x
        initial = [layer_state(g, s, layer, directions) for s in states]
        y, *last = layer_node(g, cell, x, weights[layer], biases[layer], initial, sizes, lengths)
        x = y if projection_size is not None else join_directions(g, y, directions)
        ends.append(last)
    finals = [g.Concat(*column, axis=0) for column in zip(*ends, strict=True)]
    return (x, *finals)


class Vector:
    """The flat parameters, taken from the front piece by piece."""

    def __init__(self, g, flat: Value, cell: Cell, sizes: RnnSizes) -> None:
        self.g, self.flat, self.at = g, flat, 0
        self.cell, self.sizes = cell, sizes

    def features(self) -> int:
        """The size of the first layer's input, which is what is left of the parameters for it."""
        hidden, layers = self.sizes[:2]
        require(hidden > 0 and layers > 0, f"{layers} layers of {hidden} cells")
        require(self.flat.rank == 1, f"parameters of {self.flat.rank} axes, not in one row")
        count = self.flat.static_shape[0]
        size = self.sizes.find_features(count)
        require(size is not None, f"{count} parameters do not fit the layers")
        return size  # type: ignore[return-value]

    def take(self, count: int) -> Value:
        piece = self.g.slice_axis(self.flat, 0, self.at, self.at + count)
        self.at += count
        return piece

    def take_gates(self, *tail: int) -> Value:
        """One matrix or bias: its gates in ONNX's order, an axis for the direction in front."""
        gates, hidden = self.sizes.gates, self.sizes.hidden
        piece = self.take(gates * hidden * math.prod(tail))
        piece = self.g.Reshape(piece, [gates, hidden, *tail])
        if gates > 1:
            piece = self.g.Gather(piece, self.cell.gates, axis=0)
        return self.g.Reshape(piece, [1, gates * hidden, *tail])

    def take_projection(self) -> Iterator[Value]:
        """The matrix that gives one direction's outputs, if there is one."""
        if self.sizes.projection is not None:
            shape = (1, self.sizes.projection, self.sizes.hidden)
            yield self.g.Reshape(self.take(math.prod(shape)), shape)

    def weights(self, features: int) -> list[Value]:
        """Those of a layer: for data, for states, and the projection, if there is one."""
        sets = [
            (self.take_gates(features), self.take_gates(self.sizes.output), *self.take_projection())
            for _ in range(self.sizes.directions)
        ]
        return [self.g.Concat(*matrices, axis=0) for matrices in zip(*sets, strict=True)]

    def biases(self) -> Value:
        pairs = [(self.take_gates(), self.take_gates()) for _ in range(self.sizes.directions)]
        return self.g.Concat(*(self.g.Concat(*pair, axis=1) for pair in pairs), axis=0)


def is_zero(g, state: Value) -> bool:
    """Whether a state is zeros, which ONNX's operators begin with by themselves."""
    maker = g.producer(state)
    if maker is not None and maker.op == "Expand":
        state = maker.inputs[0]
    return state.tensor is not None and not state.array().any()


def layer_state(g, state: Value | None, layer: int, directions: int):
    """One layer's part of a begin state, None where it is all zeros."""
    if state is None:
        return None
    return g.slice_axis(state, 0, layer * directions, (layer + 1) * directions)


def layer_node(g, cell: Cell, x, weights, bias, initial, sizes: RnnSizes, lengths):
    count, directions = 3 if cell.op == "LSTM" else 2, sizes.directions
    attrs = dict(cell.attrs)
    if "activations" in attrs:
        attrs["activations"] = tuple(attrs["activations"]) * directions  # type: ignore[arg-type]
    direction = "bidirectional" if directions == 2 else "forward"
    states = initial[: count - 1]
    if sizes.projection is not None:
        return emit_projected_lstm(g, x, *weights, bias, *states, direction=direction)
    return g[cell.op](
        x, *weights, bias, lengths, *states, hidden_size=sizes.hidden, direction=direction,
        outputs=count, **attrs,
    )  # fmt: skip


def join_directions(g, y: Value, directions: int):
    """``(length, directions, batch, hidden)`` as ``(length, batch, directions * hidden)``."""
    if directions == 1:
        return g.Squeeze(y, [1])
    return g.Reshape(g.Transpose(y, perm=(0, 2, 1, 3)), [0, 0, -1])


def write_layer(
    op, s, x, w, r, b=None, lengths=None, state=None, cell=None, peepholes=None, *, hidden_size,
    direction, activations=None, linear_before_reset=1, input_forget=0,
):  # fmt: skip
    require(direction in DIRECTIONS, f"direction={direction!r}")
    require(lengths is None and peepholes is None, "sequence lengths or peepholes")
    require(linear_before_reset and not input_forget, "linear_before_reset=0 or input_forget=1")
    count, mode = DIRECTIONS[direction], mode_of(op, activations, DIRECTIONS[direction])
    vector = s.const(pack_parameters(op, w, r, b), name=f"{w.name}_parameters")
    states = [emit_begin_state(s, x, state, count, hidden_size)]
    if op == "LSTM":
        states.append(emit_begin_state(s, x, cell, count, hidden_size))
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
        require(kinds in PLAIN, f"activations={activations}")
        return "rnn_tanh" if kinds == {"Tanh"} else "rnn_relu"
    usual = activations is None or tuple(activations) == ACTIVATIONS[op] * count
    require(usual, f"activations={activations}")
    return op.lower()


def emit_begin_state(s, x: Value, state: Value | None, count: int, hidden: int):
    """A begin state; MXNet infers the batch of zeros, which stands as 0, or as -1 in 2.0.

    In the body of a loop or a branch it infers none.
    """
    batch = -1 if s.release.has_np_shape else 0
    if s.is_inner and isinstance(size := x.ranked_shape[1], int):
        batch = size
    return s["_zeros"](shape=(count, batch, hidden)) if state is None else state


def pack_parameters(op: str, w: Value, r: Value, b: Value | None) -> Tensor:
    """All parameters in MXNet's order: the weights of each direction, then the biases of each."""
    require(all(v is None or v.tensor is not None for v in (w, r, b)), "weights that are computed")
    directions, rows, _ = w.static_shape
    size = sum(v.tensor.size for v in (w, r) if v.tensor) + directions * 2 * rows
    return Tensor(w.type, (size,), partial(_vector, GATES[op], w, r, b))


def _vector(gates: tuple[int, ...], w: Value, r: Value, b: Value | None) -> Any:
    directions, rows, _ = w.static_shape
    biases = arrays.zeros((directions, 2 * rows), w.type.numpy) if b is None else b.array()
    parts = [_reorder_gates(m.array()[d], gates) for d in range(directions) for m in (w, r)]
    parts += [_reorder_gates(half, gates) for bias in biases for half in np.split(bias, 2)]
    return np.concatenate([p.ravel() for p in parts])


def _reorder_gates(matrix: Any, gates: tuple[int, ...]) -> Any:
    blocks = np.split(matrix, len(gates))
    return np.concatenate([blocks[g] for g in gates])


for _op in GATES:
    writes(_op, only={"layout": (0,)})(partial(write_layer, _op))


def legalize_layer(
    op, g, x, w, r, b=None, lengths=None, state=None, cell=None, peepholes=None, *, hidden_size,
    direction, layout=0, activations: tuple[str, ...] | None = None, clip: float | None = None,
    outputs: int = 1, **more,
):  # fmt: skip
    """Leave what MXNet's RNN does; turn a layer that runs backwards; else take it step by step."""
    operands = [x, w, r, b, lengths, state, cell, peepholes][: 8 if op == "LSTM" else 6]
    form = {"hidden_size": hidden_size, "activations": activations, "clip": clip,
            "outputs": outputs, **more}  # fmt: skip
    if layout:
        return g.decompose(op, 14, *operands, direction=direction, layout=1, **form)
    count = 2 if direction == "bidirectional" else 1
    names = activations or ACTIVATIONS[op] * count
    usual = set(names) in PLAIN if op == "RNN" else names == ACTIVATIONS[op] * count
    has_constant_weights = all(v is None or v.tensor is not None for v in (w, r, b))
    own_gates = op != "GRU" or more.get("linear_before_reset")
    native = (
        own_gates
        and not more.get("input_forget")
        and clip is None
        and usual
        and has_constant_weights
    )
    if not native or lengths is not None or peepholes is not None:
        return unroll_recurrent(op, g, *operands, direction=direction, **form)
    if direction != "reverse":
        return None
    turned = g.slice_axis(x, 0, -1, -END, -1)
    results = g[op](turned, *operands[1:], direction="forward", **form)
    first, *rest = results if isinstance(results, tuple) else (results,)
    return (g.slice_axis(first, 0, -1, -END, -1), *rest)


for _op in GATES:
    legalizations(_op)(partial(legalize_layer, _op))
