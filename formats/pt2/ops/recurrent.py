"""Recurrent layers: one node a layer, its directions together."""

from __future__ import annotations

from serde.decompositions.composites import emit_projected_lstm
from serde.errors import require

from ..rules import reads
from .activation import read_dropout

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}  # ONNX's among PyTorch's


def in_order(g, w, op):
    """A weight or a bias with its gates in ONNX's order."""
    gates = GATES[op]
    if len(gates) == 1:
        return w
    parts = g.Split(w, num_outputs=len(gates), axis=0, outputs=len(gates))
    return g.Concat(*(parts[i] for i in gates), axis=0)


def run(g, x, states, params, op, has_biases, layers, dropout, train, bidirectional, batch_first,
        **attrs):  # fmt: skip
    """All layers; the output and the last states."""
    directions = 2 if bidirectional else 1
    require(len(states) == (2 if op == "LSTM" else 1), f"{len(states)} initial states")
    single = x.rank == 2
    if single:
        x, states = g.Unsqueeze(x, [1]), [g.Unsqueeze(s, [1]) for s in states]
    elif batch_first:
        x = g.Transpose(x, perm=[1, 0, 2])
    each = (4 if has_biases else 2) + (op == "LSTM" and is_projected(states))
    require(len(params) == each * layers * directions, f"{len(params)} weights of {layers} layers")
    ends = []
    for layer in range(layers):
        x = read_dropout(g, x, dropout, train) if layer and dropout else x
        first = layer * directions
        sets = [params[(first + d) * each : (first + d + 1) * each] for d in range(directions)]
        w, r = (g.stack([in_order(g, s[k], op) for s in sets], 0) for k in (0, 1))
        b = None
        if has_biases:
            b = g.stack([g.Concat(in_order(g, s[2], op), in_order(g, s[3], op), axis=0)
                         for s in sets], 0)  # fmt: skip
        initial = [g.slice_axis(s, 0, first, first + directions) for s in states]
        direction = "bidirectional" if bidirectional else "forward"
        if each % 2:
            down = g.stack([s[-1] for s in sets], 0)
            x, *last = emit_projected_lstm(g, x, w, r, down, b, *initial, direction=direction)
        else:
            y, *last = g[op](x, w, r, b, None, *initial, hidden_size=r.static_shape[2],
                             direction=direction, outputs=1 + len(states), **attrs)  # fmt: skip
            if bidirectional:
                x = g.Reshape(g.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])
            else:
                x = g.Squeeze(y, [1])
        ends.append(last)
    finals = [g.Concat(*column, axis=0) if layers > 1 else column[0]
              for column in zip(*ends, strict=True)]  # fmt: skip
    if single:
        return (g.Squeeze(x, [1]), *(g.Squeeze(f, [1]) for f in finals))
    return (g.Transpose(x, perm=[1, 0, 2]) if batch_first else x, *finals)


def is_projected(states):
    """Whether the output of an LSTM has another width than its cells."""
    widths = [s.ranked_shape[-1] for s in states]
    return len(set(widths)) > 1


def update_cell(g, gates, cell):
    """The output and the cell after one step of an LSTM."""
    i, f, c, o = g.Split(gates, num_outputs=4, axis=-1, outputs=4)
    cell = g.Add(g.Mul(g.Sigmoid(f), cell), g.Mul(g.Sigmoid(i), g.Tanh(c)))
    return g.Mul(g.Sigmoid(o), g.Tanh(cell)), cell


@reads("lstm.input")
def read_lstm(g, x, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first):
    return run(g, x, list(hx), params, "LSTM", has_biases, layers, dropout, train, bidirectional,
               batch_first)  # fmt: skip


@reads("gru.input")
def read_gru(g, x, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first):
    return run(g, x, [hx], params, "GRU", has_biases, layers, dropout, train, bidirectional,
               batch_first, linear_before_reset=1)  # fmt: skip


@reads.for_each({"rnn_tanh.input": "Tanh", "rnn_relu.input": "Relu"})
def read_rnn(activation, g, x, hx, params, has_biases, layers, dropout, train, bidirectional,
             batch_first):  # fmt: skip
    activations = (activation,) * (2 if bidirectional else 1)
    return run(g, x, [hx], params, "RNN", has_biases, layers, dropout, train, bidirectional,
               batch_first, activations=activations)  # fmt: skip


@reads("lstm_cell")
def read_lstm_cell(g, x, hx, w, r, bw, br):
    gates = [g.MatMul(v, g.Transpose(m, perm=[1, 0])) for v, m in ((x, w), (hx[0], r))]
    gates = [v if b is None else g.Add(v, b) for v, b in zip(gates, (bw, br), strict=True)]
    return update_cell(g, g.Add(*gates), hx[1])


@reads.for_each({"rnn_tanh_cell": "Tanh", "rnn_relu_cell": "Relu"})
def read_rnn_cell(activation, g, x, h, w, r, bw, br):
    sums = [g.MatMul(v, g.Transpose(m, perm=[1, 0])) for v, m in ((x, w), (h, r))]
    return g[activation](g.Add(*(v if b is None else g.Add(v, b)
                                 for v, b in zip(sums, (bw, br), strict=True))))  # fmt: skip


@reads("gru_cell")
def read_gru_cell(g, x, h, w, r, bw, br):
    one, two = (g.MatMul(v, g.Transpose(m, perm=[1, 0])) for v, m in ((x, w), (h, r)))
    one, two = (v if b is None else g.Add(v, b) for v, b in ((one, bw), (two, br)))
    a, b = (g.Split(v, num_outputs=3, axis=-1, outputs=3) for v in (one, two))
    reset, update = (g.Sigmoid(g.Add(a[k], b[k])) for k in (0, 1))
    new = g.Tanh(g.Add(a[2], g.Mul(reset, b[2])))
    return g.Add(new, g.Mul(update, g.Sub(h, new)))
