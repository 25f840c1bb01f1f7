"""Quantized outputs that are one step off: kernels of integers round in more than one way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from serde.ir.graph import DType, Graph, Node, Value
from serde.spec.expressions import number
from serde.spec.traits import RESHAPES

from .compare_outputs import Array

MOVES = RESHAPES | {"Identity", "Transpose"}  # which may be behind a quantization
QUANTIZES_LAST = frozenset({"QLinearConv", "QLinearMatMul", "QuantizeLinear"})
MOST = 0.5  # the share of elements that may be a step off: of a wrong zero point all are
NEAR = 1e-3  # of a step, by which products of floats with a scale may be off


def find_step(graph: Graph, value: Value) -> float | None:
    """What neighbouring numbers of a quantized output differ by; None where it is not quantized.

    Integers that are computed otherwise, such as places and tokens, are not quantized.
    """
    makers = {v: node for node in graph.nodes for v in node.outputs}
    node = _find_maker(makers, value)
    if node is None or node.domain:
        return None
    if node.op in QUANTIZES_LAST:
        return 1.0
    if node.op != "DequantizeLinear" or node.inputs[0] is None:
        return None
    quantized, step = _find_maker(makers, node.inputs[0]), number(node.inputs[1])
    is_quantized = quantized is not None and quantized.op in QUANTIZES_LAST
    return float(step) if is_quantized and step is not None else None


class Rounding(NamedTuple):
    """A QuantizeLinear of one scale."""

    scale: float
    zero: int
    dtype: DType

    def quantize(self, x: Array) -> Array:
        """The integers of real numbers."""
        bounds = np.iinfo(self.dtype.numpy)
        steps = np.rint(np.nan_to_num(x.astype(np.float64)) / self.scale) + self.zero
        return np.asarray(np.clip(steps, bounds.min, bounds.max).astype(np.int64))

    def read_real(self, q: Array) -> Array:
        """The real numbers of integers."""
        return np.asarray(((q.astype(np.float64) - self.zero) * self.scale).astype(np.float32))


def find_roundings(graph: Graph) -> Mapping[str, Rounding]:
    """How values are quantized, by their names and by those of the integers."""
    return dict(_list_roundings(graph))


def _list_roundings(graph: Graph) -> Iterator[tuple[str, Rounding]]:
    for node in graph.nodes:
        if node.op != "QuantizeLinear" or node.domain or node.outputs[0].type.bits < 8:
            continue
        scale = number(node.inputs[1]) or 0
        zero = number(node.inputs[2]) if len(node.inputs) > 2 else 0
        if 0 < scale < np.inf and zero is not None and node.outputs[0].type.kind in "iu":
            rounding = Rounding(float(scale), int(zero), node.outputs[0].type)
            for value in (node.inputs[0], node.outputs[0]):
                if value is not None:
                    yield value.name, rounding


def _find_maker(makers: Mapping[Value, Node], value: Value) -> Node | None:
    """The node that computes the elements of a value, maybe in another order."""
    node = makers.get(value)
    while node is not None and node.op in MOVES and node.inputs[0] is not None:
        node = makers.get(node.inputs[0])
    return node


def describe_steps(step: float, got: Any, expected: Any) -> str:
    """What to say of an output that is one step off in some elements; nothing where it is more."""
    if not isinstance(got, np.ndarray) or not isinstance(expected, np.ndarray):
        return ""
    if (got.shape, got.dtype) != (expected.shape, expected.dtype) or not got.size:
        return ""
    gap: Array = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    count = int((gap > step / 2).sum())
    is_near = bool((gap <= step * (1 + NEAR)).all()) and count <= max(1, MOST * gap.size)
    return f"{count:,} of {gap.size:,} elements are one quantization step off" if is_near else ""
