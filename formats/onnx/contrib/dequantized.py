"""Operators that quantize what they read as they run, as those on floats.

``dequantize`` asks for floats. Targets other than ONNX Runtime have no such operators: what they
read is quantized in front of them there.
"""

from __future__ import annotations

from serde.decompositions.foreign import foreign_rules
from serde.ir.graph import Value
from serde.rewrite.rules import RuleTable

from .table import DOMAIN

reads_as_floats = RuleTable(f"{DOMAIN} → ir of floats")
foreign_rules[DOMAIN] = decompositions = RuleTable(f"{DOMAIN} → ir without the domain")
INNER = "rounds its states to 8 bits at each step, which is left out: results are a hundredth off"


def dequantize_rows(g, w: Value, scale: Value, zero: Value | None):
    """Weights (directions, inputs, gates) by a scale of each direction, or of each gate of it."""
    rows = g.Transpose(w, perm=(0, 2, 1))
    if scale.rank == 1:
        return g.DequantizeLinear(rows, scale, zero, axis=0)
    zero = None if zero is None else g.Reshape(zero, [-1])
    flat = g.Reshape(rows, [-1, w.static_shape[1]])
    return g.Reshape(g.DequantizeLinear(flat, g.Reshape(scale, [-1]), zero, axis=0), g.Shape(rows))


@reads_as_floats("DynamicQuantizeLSTM")
def read_lstm(g, x, w, r, b, lengths, h, c, p, w_scale, w_zero, r_scale, r_zero, **attrs):
    """Weights of bytes, transposed; the numbers that these are multiplied by are rounded too."""
    w, r = dequantize_rows(g, w, w_scale, w_zero), dequantize_rows(g, r, r_scale, r_zero)
    return g.LSTM(x, w, r, b, lengths, h, c, p, outputs=3, **attrs)


@decompositions("DynamicQuantizeLSTM")
def decompose_lstm(g, x, *operands, **attrs):
    """Rounds the sequence as the operator does; the states inside of it stay floats."""
    g.note(INNER)
    rounded = g.DequantizeLinear(*g.DynamicQuantizeLinear(x, outputs=3))
    return read_lstm(g, rounded, *operands, **attrs)
