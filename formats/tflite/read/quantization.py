"""Between real numbers and integers that stand for them."""

from __future__ import annotations

from serde.ir.graph import DType, Value
from serde.rewrite.rules import Hint

from ..quantization import Forms, require_scale
from ..rules import reads


@reads("DEQUANTIZE")
def read_dequantize(g, x, *, forms: Hint[Forms]):
    """Halves become floats; integers have a scale."""
    if x.type.kind == "f":
        return g.cast(x, DType.FLOAT32)
    return require_scale(forms[0]).dequantize(g, x)


@reads("DENSIFY")
def read_densify(g, x):
    """A sparse weight, which is read with all its elements."""
    return x


@reads("QUANTIZE")
def read_quantize(g, x: Value, *, forms: Hint[Forms], result_forms: Hint[Forms],
                  results: Hint[tuple[Value, ...]]):  # fmt: skip
    """Real numbers as integers, or integers in another scale."""
    form, kind = require_scale(result_forms[0]), results[0].type
    if x.type.kind != "f":
        x = require_scale(forms[0]).dequantize(g, x)
    if kind is DType.INT32:  # which QuantizeLinear lacks
        scale, zero = form.constants(g, kind)
        counts = g.cast(g.Round(g.Div(x, scale)), kind)
        return counts if form.is_symmetric else g.Add(counts, zero)
    return form.quantize(g, x, kind)
