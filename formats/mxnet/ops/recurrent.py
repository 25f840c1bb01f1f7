"""Recurrent layers: MXNet's fused RNN becomes one ONNX node a layer.

All parameters come as one vector: for each layer and direction the input and the hidden weights,
then for each the two biases (rnn-inl.h). A layer's directions share a node.
"""

from __future__ import annotations

from typing import NamedTuple

from serde.decompositions.expressions import cast, slice_axis
from serde.errors import require
from serde.ir.geometry import may_be_same
from serde.ir.graph import DType, Value

from ..rules import reads
from .lstm_projection import projected


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


@reads("RNN", ignore=("p", "state_outputs"), only=ONLY)
def read_rnn(
    g, x, parameters, state=None, cell_state=None, lengths=None, *, state_size: int,
    num_layers: int, mode: str, bidirectional=False, use_sequence_length=False,
    projection_size: int | None = None,
):  # fmt: skip
    """Sequence lengths count, as MXNet documents and does on GPUs; on CPUs it ignores them."""
    require(mode in CELLS, f"mode={mode!r} is unknown")
    if mode != "lstm" and use_sequence_length:
        cell_state, lengths = None, cell_state if lengths is None else lengths
    require(not use_sequence_length or lengths is not None, "use_sequence_length without lengths")
    if projection_size is not None:
        require(mode == "lstm" and not use_sequence_length, f"projection_size of a {mode}")
        return projected(g, x, parameters, (state, cell_state), state_size, projection_size,
                         num_layers, 2 if bidirectional else 1)  # fmt: skip
    lengths = cast(g, lengths, DType.INT32) if use_sequence_length else None
    cell, directions = CELLS[mode], 2 if bidirectional else 1
    vector = Vector(g, parameters, cell, state_size, directions)
    features = vector.features(num_layers)
    if x.shape is not None:
        same = may_be_same(x.shape[-1], features)
        require(same, f"parameters for {features} features, and the data have {x.shape[-1]}")
    sizes = [features] + [state_size * directions] * (num_layers - 1)
    weights = [vector.weights(size) for size in sizes]
    biases = [vector.biases() for _ in sizes]
    ends = []
    for layer in range(num_layers):
        initial = [layer_state(g, s, layer, directions) for s in (state, cell_state)]
        y, *last = layer_node(g, cell, x, weights[layer], biases[layer], initial, state_size,
                              directions, lengths)  # fmt: skip
        x = joined(g, y, directions)
        ends.append(last)
    finals = [g.Concat(*column, axis=0) for column in zip(*ends, strict=True)]
    return (x, *finals)


class Vector:
    """The flat parameters, taken from the front piece by piece."""

    def __init__(self, g, flat: Value, cell: Cell, hidden: int, directions: int) -> None:
        self.g, self.flat, self.at = g, flat, 0
        self.cell, self.hidden, self.directions = cell, hidden, directions

    def features(self, layers: int) -> int:
        """The size of the first layer's input, which is what is left of the parameters for it."""
        h, rows = self.hidden, len(self.cell.gates) * self.hidden * self.directions
        require(h > 0 and layers > 0, f"{layers} layers of {h} cells")
        require(self.flat.rank == 1, f"parameters of {self.flat.rank} axes, not in one row")
        deeper = (layers - 1) * rows * (self.directions * h + h)
        found, rest = divmod(self.flat.dims[0] - deeper - layers * 2 * rows, rows)
        require(rest == 0 and found > h, f"{self.flat.dims[0]} parameters do not fit the layers")
        return found - h

    def take(self, count: int) -> Value:
        piece = slice_axis(self.g, self.flat, 0, self.at, self.at + count)
        self.at += count
        return piece

    def gated(self, *tail: int) -> Value:
        """One matrix or bias: its gates in ONNX's order, an axis for the direction in front."""
        gates = len(self.cell.gates)
        size = gates * self.hidden
        for n in tail:
            size *= n
        piece = self.g.Reshape(self.take(size), [gates, self.hidden, *tail])
        if gates > 1:
            piece = self.g.Gather(piece, self.cell.gates, axis=0)
        return self.g.Reshape(piece, [1, gates * self.hidden, *tail])

    def weights(self, features: int) -> tuple[Value, Value]:
        pairs = [(self.gated(features), self.gated(self.hidden)) for _ in range(self.directions)]
        w, r = zip(*pairs, strict=True)
        return self.g.Concat(*w, axis=0), self.g.Concat(*r, axis=0)

    def biases(self) -> Value:
        pairs = [(self.gated(), self.gated()) for _ in range(self.directions)]
        return self.g.Concat(*(self.g.Concat(*pair, axis=1) for pair in pairs), axis=0)


def layer_state(g, state: Value | None, layer: int, directions: int):
    """One layer's part of a begin state, None where it is all zeros."""
    if state is None or is_zero(state):
        return None
    return slice_axis(g, state, 0, layer * directions, (layer + 1) * directions)


def is_zero(state: Value) -> bool:
    """Whether a state is constant zeros, or a zeros of a batch still to be inferred."""
    return state.tensor is not None and (0 in state.dims or not state.array().any())


def layer_node(g, cell: Cell, x, weights, bias, initial, hidden: int, directions: int, lengths):
    count = 3 if cell.op == "LSTM" else 2
    attrs = dict(cell.attrs)
    if "activations" in attrs:
        attrs["activations"] = tuple(attrs["activations"]) * directions  # type: ignore[arg-type]
    direction = "bidirectional" if directions == 2 else "forward"
    states = initial[: count - 1]
    return g[cell.op](
        x, *weights, bias, lengths, *states, hidden_size=hidden, direction=direction, outputs=count,
        **attrs,
    )  # fmt: skip


def joined(g, y: Value, directions: int):
    """``(length, directions, batch, hidden)`` as ``(length, batch, directions * hidden)``."""
    if directions == 1:
        return g.Squeeze(y, [1])
    return g.Reshape(g.Transpose(y, perm=(0, 2, 1, 3)), [0, 0, -1])
