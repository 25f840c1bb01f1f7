"""Recurrent layers. What they keep between runs are operands and results (``decode.py``)."""

from __future__ import annotations

from typing import NamedTuple

from serde.errors import require
from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..quantization import Forms, Quantization, require_scale
from ..rules import activate, reads
from .shapes import reverse

GATES = ("input", "forget", "cell", "output")
EPSILON = 1e-8  # of a normalized layer
TANH = 4
IGNORED = ("asymmetric_quantize_inputs",)


class Gate(NamedTuple):
    """What a gate multiplies data, states and cells by; None where it does not."""

    w: Value
    r: Value
    peephole: Value | None
    bias: Value | None
    scale: Value | None  # of a normalized layer


class Cell(NamedTuple):
    """A layer of an LSTM. ``forms`` are those of its states, where they are integers."""

    gates: tuple[Gate | None, ...]
    projection: Value | None
    projection_bias: Value | None
    activation: int
    cell_clip: float
    proj_clip: float
    forms: tuple[Quantization | None, Quantization | None]

    @property
    def is_plain(self) -> bool:
        """Whether ONNX's LSTM computes it."""
        return (
            self.gates[0] is not None
            and all(g is not None and g.scale is None and g.bias is not None for g in self.gates)
            and self.projection is None and self.activation == TANH
            and self.cell_clip == self.proj_clip == 0 and self.forms == (None, None)
        )  # fmt: skip


def rows(g, x: Value, w: Value):
    """Data times the rows of a weight."""
    return g.MatMul(x, g.Transpose(w, perm=(1, 0)))


def as_real(g, bias: Value | None, x: Quantization | None, w: Quantization | None):
    """A bias as real numbers; integers count in the unit of the products."""
    if bias is None or bias.type.kind == "f":
        return bias
    is_single = require_scale(x).is_per_tensor and require_scale(w).is_per_tensor
    require(is_single, "scales by channel in a recurrent layer. Quantize it with one scale each")
    unit = float(require_scale(x).scale.flat[0] * require_scale(w).scale.flat[0])
    return g.Mul(g.cast(bias, DType.FLOAT32), unit)


def run_gate(g, gate: Gate, x: Value, h: Value, c: Value):
    """What a gate's activation is of."""
    total = g.Add(rows(g, x, gate.w), rows(g, h, gate.r))
    if gate.peephole is not None:
        total = g.Add(total, g.Mul(c, gate.peephole))
    if gate.scale is not None:
        centered = g.Sub(total, g.ReduceMean(total, [-1], keepdims=1))
        variance = g.ReduceMean(g.Mul(centered, centered), [-1], keepdims=1)
        normal = g.Div(centered, g.Sqrt(g.Add(variance, EPSILON)))
        total = g.Mul(normal, gate.scale)
    return total if gate.bias is None else g.Add(total, gate.bias)


def round_to(g, form: Quantization | None, x: Value, dtype: DType):
    """The real number that the nearest integer stands for."""
    return x if form is None else form.dequantize(g, form.quantize(g, x, dtype))


def step_lstm(g, cell: Cell, x: Value, h: Value, c: Value):
    """The next output and cell."""
    into, forget, new, out = cell.gates
    f = g.Sigmoid(run_gate(g, forget, x, h, c))
    i = g.Sub(1.0, f) if into is None else g.Sigmoid(run_gate(g, into, x, h, c))
    candidate = activate(g, cell.activation, run_gate(g, new, x, h, c))
    c = g.Add(g.Mul(f, c), g.Mul(i, candidate))
    if cell.cell_clip > 0:
        c = g.Clip(c, -cell.cell_clip, cell.cell_clip)
    c = round_to(g, cell.forms[1], c, DType.INT16)
    h = g.Mul(g.Sigmoid(run_gate(g, out, x, h, c)), activate(g, cell.activation, c))
    if cell.projection is not None:
        h = rows(g, h, cell.projection)
        h = h if cell.projection_bias is None else g.Add(h, cell.projection_bias)
        if cell.proj_clip > 0:
            h = g.Clip(h, -cell.proj_clip, cell.proj_clip)
    return round_to(g, cell.forms[0], h, DType.INT8), c


def make_cell(g, operands, forms: Forms, options) -> Cell:
    """The layer of operands in TensorFlow Lite's order, from that of the input gate's weight on."""
    slots = list(operands) + [None] * (24 - len(operands))
    scales = list(forms) + [None] * (24 - len(forms))
    gates: list[Gate | None] = []
    for k in range(4):
        w, r, bias, scale = slots[1 + k], slots[5 + k], slots[12 + k], slots[20 + k]
        peephole = {0: slots[9], 1: slots[10], 3: slots[11]}.get(k)
        bias = as_real(g, bias, scales[0], scales[1 + k])
        gates.append(None if w is None else Gate(w, r, peephole, bias, scale))
    require(
        len(slots) == 24 and None not in (*gates[1:], *slots[18:20]),
        "an LSTM without weights of a gate, or states. Give all but the input gate's",
    )
    require(scales[0] is None or all(v is None for v in slots[20:]),
            "a normalized layer of integers. Convert the model before it is quantized")  # fmt: skip
    projection_bias = as_real(g, slots[17], scales[18], scales[16])
    activation, cell_clip, proj_clip = options
    states = (scales[18], scales[19])
    return Cell(tuple(gates), slots[16], projection_bias, activation, cell_clip, proj_clip, states)


def run_plain(g, cell: Cell, x: Value, h: Value, c: Value):
    """ONNX's LSTM, whose gates are those of the input, the output, the forgetting and the cell."""
    order = [cell.gates[k] for k in (0, 3, 1, 2)]
    w, r, b = (g.Concat(*(gate[k] for gate in order), axis=0) for k in (0, 1, 3))
    zeros = g.const([0.0] * b.static_shape[0], DType.FLOAT32)
    peepholes = [gate.peephole for gate in order[:3] if gate is not None]
    p = None if None in peepholes else g.Unsqueeze(g.Concat(*peepholes, axis=0), [0])
    y, h, c = g.LSTM(
        x, g.Unsqueeze(w, [0]), g.Unsqueeze(r, [0]), g.Unsqueeze(g.Concat(b, zeros, axis=0), [0]),
        None, g.Unsqueeze(h, [0]), g.Unsqueeze(c, [0]), p, hidden_size=c.static_shape[-1],
        outputs=3,
    )  # fmt: skip
    return g.Squeeze(y, [1]), g.Squeeze(h, [0]), g.Squeeze(c, [0])


def run_lstm(g, cell: Cell, x: Value, h: Value, c: Value, time_major: bool):
    """All steps of a sequence."""
    x = x if time_major else g.Transpose(x, perm=(1, 0, 2))
    peepholes = [gate.peephole for k, gate in enumerate(cell.gates) if gate and k != 2]
    if cell.is_plain and (None not in peepholes or not any(peepholes)):
        y, h, c = run_plain(g, cell, x, h, c)
    else:

        def step(inner, h, c, row):
            h, c = step_lstm(inner, cell, row, h, c)
            return h, c, inner.Identity(h)

        h, c, y = g.scan(step, (h, c), (x,))
    return (y if time_major else g.Transpose(y, perm=(1, 0, 2))), h, c


@reads(
    "UNIDIRECTIONAL_SEQUENCE_LSTM", ignore=IGNORED, only={"diagonal_recurrent_tensors": (False,)}
)
def read_sequence_lstm(
    g, x, *operands, fused_activation_function: int = 0, cell_clip: float = 0.0,
    proj_clip: float = 0.0, time_major: bool = False, forms: Hint[Forms],
):  # fmt: skip
    options = (fused_activation_function, cell_clip, proj_clip)
    cell = make_cell(g, (x, *operands), forms, options)
    h, c = operands[17:19]
    return run_lstm(g, cell, x, h, c, time_major)


@reads("LSTM", ignore=IGNORED)
def read_lstm(
    g, x, *operands, fused_activation_function: int = 0, cell_clip: float = 0.0,
    proj_clip: float = 0.0, kernel_type: int = 0, forms: Hint[Forms],
):  # fmt: skip
    """One step; the basic kernel has all gates in one weight, and its states as results."""
    if kernel_type == 1:
        return step_basic(g, x, *operands)
    options = (fused_activation_function, cell_clip, proj_clip)
    cell = make_cell(g, (x, *operands), forms, options)
    h, c = step_lstm(g, cell, x, *operands[17:19])
    return h, h, c


def step_basic(g, x, h, w, b, c):
    joined = g.Concat(x, h, axis=1)
    total = g.Gemm(joined, w, b, transB=1)
    i, new, f, o = g.Split(total, num_outputs=4, axis=1, outputs=4)
    c = g.Add(g.Mul(g.Sigmoid(i), g.Tanh(new)), g.Mul(g.Sigmoid(f), c))
    return g.Mul(g.Sigmoid(o), g.Tanh(c)), c, joined, total


def step_rnn(g, x, w, r, b, h, activation: int):
    return activate(g, activation, g.Add(g.Add(rows(g, x, w), rows(g, h, r)), b))


@reads("RNN", ignore=IGNORED)
def read_rnn(g, x, w, r, b, h, *, fused_activation_function: int = 0):
    y = step_rnn(g, x, w, r, b, h, fused_activation_function)
    return y, y


@reads("UNIDIRECTIONAL_SEQUENCE_RNN", ignore=IGNORED)
def read_sequence_rnn(g, x, w, r, b, h, *, time_major: bool = False,
                      fused_activation_function: int = 0):  # fmt: skip
    x = x if time_major else g.Transpose(x, perm=(1, 0, 2))

    def step(inner, h, row):
        h = step_rnn(inner, row, w, r, b, h, fused_activation_function)
        return h, inner.Identity(h)

    h, y = g.scan(step, (h,), (x,))
    return (y if time_major else g.Transpose(y, perm=(1, 0, 2))), h


# Layers in both directions


def run_both_ways(g, x: Value, run, halves, time_major: bool, merge_outputs: bool):
    """A layer from the beginning and one from the end; what they keep is behind their results."""
    axis = 0 if time_major else 1
    forward, *kept = run(x, halves[0])
    backward, *more = run(reverse(g, x, [axis]), halves[1])
    backward = reverse(g, backward, [axis])
    if merge_outputs:
        return (g.Concat(forward, backward, axis=2), *kept, *more)
    return (forward, backward, *kept, *more)


AUXILIARY = "a second input (aux_input). Join the inputs, and the weights"


@reads("BIDIRECTIONAL_SEQUENCE_RNN", ignore=IGNORED)
def read_bidirectional_rnn(
    g, x, *operands, time_major: bool = False, fused_activation_function: int = 0,
    merge_outputs: bool = False,
):  # fmt: skip
    require(all(v is None for v in operands[8:]), AUXILIARY)

    def run(x: Value, half):
        w, r, b, h = half
        return read_sequence_rnn(g, x, w, r, b, h, time_major=time_major,
                                 fused_activation_function=fused_activation_function)  # fmt: skip

    halves = operands[:4], operands[4:8]
    return run_both_ways(g, x, run, halves, time_major, merge_outputs)


@reads("BIDIRECTIONAL_SEQUENCE_LSTM", ignore=IGNORED)
def read_bidirectional_lstm(
    g, x, *operands, fused_activation_function: int = 0, cell_clip: float = 0.0,
    proj_clip: float = 0.0, merge_outputs: bool = False, time_major: bool = True,
    forms: Hint[Forms],
):  # fmt: skip
    """The weights of both directions, and then the states of both."""
    require(all(v is None for v in operands[38:]), AUXILIARY)
    options = (fused_activation_function, cell_clip, proj_clip)

    def run(x: Value, half: int):
        places = [*range(17 * half, 17 * half + 17), 34 + 2 * half, 35 + 2 * half]
        known = (forms[0], *(forms[1 + at] for at in places))
        cell = make_cell(g, (x, *(operands[at] for at in places)), known, options)
        h, c = (operands[at] for at in places[-2:])
        return run_lstm(g, cell, x, h, c, time_major)

    require(len(operands) > 37, "an LSTM without states. Give all operands")
    return run_both_ways(g, x, run, (0, 1), time_major, merge_outputs)


@reads("SVDF", ignore=IGNORED)
def read_svdf(g, x, features, times, b, state, *, rank: int = 0, fused_activation_function: int = 0,
              forms: Hint[Forms]):  # fmt: skip
    """A filter keeps the features of the last steps, oldest first."""
    filters, memory = times.static_shape
    batch = x.ranked_shape[0]
    kept = g.Reshape(state, [-1, filters, memory])
    new = g.Unsqueeze(rows(g, x, features), [2])
    kept = g.Concat(g.slice_axis(kept, 2, 1, memory), new, axis=2)
    kept = round_to(g, forms[4], kept, DType.INT16)
    y = g.ReduceSum(g.Mul(kept, times), [2], keepdims=0)
    y = g.ReduceSum(g.Reshape(y, [-1, filters // max(rank, 1), rank]), [2], keepdims=0)
    bias = as_real(g, b, forms[2], forms[4])
    y = y if bias is None else g.Add(y, bias)
    size = filters * memory
    require(isinstance(batch, int), "a batch of unknown size. Give it (--static, --input)")
    return activate(g, fused_activation_function, y), g.Reshape(kept, [batch, size])
