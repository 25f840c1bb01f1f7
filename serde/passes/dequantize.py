"""A model of quantized numbers as one of floats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.dce import drop_dead
from serde.passes.integer_sums import find_sum, multiply_sum
from serde.passes.quantized_values import find_real, is_of_constants
from serde.passes.regions import Quantization, Quantized, emit_qlinear_conv, is_single
from serde.rewrite.rules import RuleTable, keep
from serde.spec.onnx_builder import OnnxBuilder
from serde.spec.schema import ELEMENT_TYPES

QUANTIZED = re.compile(r"Quantize|Integer|^Q([A-Z]|Linear)")  # operators, also of other domains
SHOWN = 8  # nodes in a note
rules = RuleTable("dequantize", fallback=keep)


def dequantize(graph: Graph) -> Graph:
    """Return an IR graph without functions as one of floats, where integers stand for them.

    Weights that are held as integers become floats, and operators on integers those on the numbers
    that these stand for. Numbers are no longer rounded; those beyond their range are cut off by a
    Clip, as quantizers leave out a Relu or Clip before it. What is computed with integers otherwise
    stays; a note tells of it. Outputs keep their names.
    """
    if not any(map(_is_quantized, graph.all_nodes())) and not _has_tables(graph):
        return graph
    floats = drop_dead(rules.rewrite(graph, OnnxBuilder(graph.name)))
    return replace(floats, notes=(*floats.notes, *_list_left(floats)))


def _is_quantized(node: Node) -> bool:
    return QUANTIZED.search(node.op) is not None


def _has_tables(graph: Graph) -> bool:
    """Whether there are weights of 8 bits or less."""
    return any(v.dtype is not None and v.dtype.kind in "iu" and v.dtype.bits <= 8
               for v in graph.constants())  # fmt: skip


def _list_left(graph: Graph) -> Iterator[str]:
    """What operators on quantized integers stay."""
    names: dict[str, list[str]] = {}
    for node in graph.ordered_nodes():
        if _is_quantized(node):
            names.setdefault(node.qualified_op, []).append(node.name)
    for op, layers in names.items():
        few = ", ".join(map(repr, layers[:SHOWN])) + (", …" if len(layers) > SHOWN else "")
        yield (
            f"dequantize: {op} ×{len(layers)} ({few}) stays: its integers are inputs "
            "or outputs of the model, are read by other operators, or have no constant zero point "
            "or scale"
        )


def find_float(q: Quantized, g: Any, dtype: DType = DType.FLOAT32) -> Value:
    """The numbers that ``q`` stands for: without integers if they can be, else dequantized."""
    real = find_real(g, *q, dtype)
    return g.cast(q.dequantize(g) if real is None else real, dtype)  # type: ignore[no-any-return]


@rules("DequantizeLinear")
def dequantize_values(g, q, scale, zero=None, *, axis=1, block_size=0, output_dtype=0):  # type: ignore
    """Without integers where they were made of floats, or are sums of products."""
    form, dtype = Quantization(scale, zero, axis, block_size), scale.type
    dtype = ELEMENT_TYPES[output_dtype] if output_dtype else dtype
    is_counted = zero is None or (zero.tensor is not None and not zero.array().any())
    if find_sum(g, q) is not None and is_counted and (is_single(scale) or scale.rank == 1):
        behind = q.rank - 1 - axis % q.rank
        along = scale if is_single(scale) else g.Reshape(scale, [-1, *[1] * behind])
        if (y := multiply_sum(g, [q, along])) is not None:
            return g.cast(y, dtype)
    real = find_real(g, q, form, dtype)
    attrs = {"axis": axis, "block_size": block_size, "output_dtype": output_dtype}
    return g.DequantizeLinear(q, scale, zero, **attrs) if real is None else real


rules("QLinearConv")(partial(emit_qlinear_conv, find_float))


@rules("QLinearMatMul")
def multiply_matrices(g, a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero):  # type: ignore
    """A product of the numbers; scales of batches of matrices stay with the integers."""
    operands = (a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)
    if any(v.rank > 1 for v in (*operands[1:3], *operands[4:6], *operands[6:])):
        return g.QLinearMatMul(*operands)
    dtype = a_scale.type
    a = find_float(Quantized(a, Quantization(a_scale, a_zero, -2)), g, dtype)
    b = find_float(Quantized(b, Quantization(b_scale, b_zero, -1)), g, dtype)
    y = g.MatMul(a, b)
    rank = y.rank
    axis = {"axis": rank - 2} if not is_single(y_scale) else {}
    return g.QuantizeLinear(y, y_scale, y_zero, **axis)


@rules("Mul")
def multiply(g, a, b):  # type: ignore
    """Sums of products of integers times their scales are sums of products of numbers."""
    y = multiply_sum(g, [a, b]) if a.type.kind == "f" else None
    return g.Mul(a, b) if y is None else g.cast(y, a.type)


@rules("Cast")
def cast(g, x, *, to, **attrs):  # type: ignore
    """Weights of bytes that stand for themselves, until they are multiplied by a scale."""
    dtype, form = ELEMENT_TYPES[to], Quantization(g.const(np.float32(1), name="scale"))
    is_table = x.type.kind in "iu" and x.type.bits <= 8 and dtype.kind == "f"
    real = find_real(g, x, form, dtype) if is_table and is_of_constants(g, x) else None
    return g.Cast(x, to=to, **attrs) if real is None else real
