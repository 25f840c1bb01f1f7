"""Long short-term memories whose output is projected to fewer numbers, which ONNX's LSTM is not.

Each layer and direction is a Scan. Of the parameters, a layer's input, hidden and projecting
weights come direction by direction, then all biases (rnn-inl.h).
"""

from __future__ import annotations

from serde.errors import require
from serde.ir.geometry import may_be_same
from serde.ir.graph import Value

from ...rnn_sizes import RnnSizes
from ..identity import read_dropout
from ..linear import transpose_if

GATES = 4  # input, forget, cell, output


def run_projected_lstm(g, x: Value, flat: Value, states, sizes: RnnSizes, rate: float):
    """The outputs of the last layer, and what all layers remember in the end.

    ``rate`` is the share of what a layer gives to the next that is dropped in training.
    """
    count, features = flat.static_shape[0], x.ranked_shape[2]
    first = sizes.find_features(count)
    require(first is not None, f"{count} parameters do not fit the layers")
    same = may_be_same(features, first)
    require(same, f"parameters for {first} features, and the data have {features}")
    hidden, layers, directions, small = sizes.hidden, sizes.layers, sizes.directions, sizes.output
    widths = [first] + [small * directions] * (layers - 1)
    shapes = [s for width in widths for s in weight_shapes(width, hidden, small) * directions]
    shapes += [(GATES * hidden,)] * (2 * layers * directions)
    pieces = iter(take_pieces(g, flat, shapes))
    weights = [[next(pieces) for _ in range(3)] for _ in range(layers * directions)]
    biases = [[next(pieces) for _ in range(2)] for _ in range(layers * directions)]
    ends = []
    for layer in range(layers):
        x = read_dropout(g, x, p=rate) if layer and rate else x
        outputs = []
        for at in range(layer * directions, (layer + 1) * directions):
            begin = [
                initial_state(g, s, at, x, n) for s, n in zip(states, (small, hidden), strict=True)
            ]
            run = run_direction(g, x, weights[at], biases[at], begin, at % directions)
            ends.append(run[:2])
            outputs.append(run[2])
        x = g.Concat(*outputs, axis=2)
    return (x, *(g.stack(column, 0) for column in zip(*ends, strict=True)))


def weight_shapes(size: int, hidden: int, small: int):
    """The shapes of one direction's weights."""
    return [(GATES * hidden, size), (GATES * hidden, small), (small, hidden)]


def take_pieces(g, flat: Value, shapes):
    """Pieces of the parameters in the shapes given."""
    at, pieces = 0, []
    for shape in shapes:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        pieces.append(g.Reshape(g.slice_axis(flat, 0, at, at + count), list(shape)))
        at += count
    return pieces


def initial_state(g, state: Value | None, at: int, x: Value, size: int):
    """What one direction remembers at first: zeros where there is no state."""
    if state is None:
        batch = g.shape_from([g.size_of(x, 1), size])
        return g.Expand(g.scalar(0, x), batch)
    return g.Gather(state, at, axis=0)


def run_direction(g, x: Value, weights, biases, begin, backward: int):
    """The state and the memory in the end, and the outputs of all steps."""
    by_input, by_state, down = (transpose_if(g, w, True) for w in weights)
    x_gates = g.Add(g.MatMul(x, by_input), g.Add(*biases))

    def step(g, state, memory, now):
        gates = g.Add(now, g.MatMul(state, by_state))
        parts = g.Split(gates, num_outputs=GATES, axis=1, outputs=GATES)
        put, keep, out = (g.Sigmoid(parts[i]) for i in (0, 1, 3))
        cell = g.Add(g.Mul(keep, memory), g.Mul(put, g.Tanh(parts[2])))
        y = g.MatMul(g.Mul(out, g.Tanh(cell)), down)
        return y, cell, y

    turn = {"scan_input_directions": (backward,), "scan_output_directions": (backward,)}
    return g.scan(step, begin, [x_gates], **turn)
