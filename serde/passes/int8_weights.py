"""Weights of uint8 in products of integers, as int8."""

from __future__ import annotations

from dataclasses import replace

from serde.ir.constants import make_constant, shift_bytes
from serde.ir.graph import DType, Graph, Node, Value
from serde.ir.map_nodes import map_nodes

# The operands of weights and of their zero point. ConvInteger is left as it is: ONNX Runtime
# multiplies its weights by the data, int8 by uint8, for which it has no fast kernel.
PLACES = {"MatMulInteger": (1, 3), "QLinearConv": (3, 5), "QLinearMatMul": (3, 5)}
MIDDLE = 128  # what stands for 0 in uint8
NOTE = (
    "{count} product(s) of integers have uint8 weights, which ONNX Runtime computes exactly on "
    "every processor; with --profile onnxruntime it is about twice as fast on processors with VNNI "
    "instructions and as exact on others, with larger weights"
)


def use_int8_weights(graph: Graph) -> Graph:
    """Return ``graph`` with int8 of zero point 0 for constant weights of zero point 128.

    The products are the same. ONNX Runtime's kernels for uint8 by int8 are the faster ones on
    processors with VNNI instructions; on x86 without these they saturate.
    """
    signed: dict[Value, Value] = {}
    return map_nodes(graph, lambda node: _convert_node(node, signed))


def note_uint8_weights(graph: Graph) -> Graph:
    """Return ``graph`` with a note on the weights that ``use_int8_weights`` would convert."""
    count = count_uint8_weights(graph)
    return replace(graph, notes=(*graph.notes, NOTE.format(count=count))) if count else graph


def count_uint8_weights(graph: Graph) -> int:
    """How many products have weights that ``use_int8_weights`` would convert."""
    return sum(_shifted_weights(node) is not None for node in graph.all_nodes())


def _shifted_weights(node: Node) -> tuple[Value, Value] | None:
    """The weights of a product and their zero point, where these are uint8 for signed integers."""
    at_weights, at_zero = PLACES.get(node.op, (0, 0))
    if node.domain or not at_weights or len(node.inputs) <= at_zero:
        return None
    weights, zero = node.inputs[at_weights], node.inputs[at_zero]
    if weights is None or zero is None or not _is_shifted(weights, zero):
        return None
    return weights, zero


def _convert_node(node: Node, signed: dict[Value, Value]) -> Node:
    shifted = _shifted_weights(node)
    if shifted is None:
        return node
    inputs = list(node.inputs)
    for at, value in zip(PLACES[node.op], shifted, strict=True):
        inputs[at] = signed.setdefault(value, _as_int8(value))
    return replace(node, inputs=tuple(inputs))


def _is_shifted(weights: Value, zero: Value) -> bool:
    """Whether constant uint8 stand for signed integers."""
    if weights.tensor is None or zero.tensor is None or weights.dtype is not DType.UINT8:
        return False
    return bool((zero.array() == MIDDLE).all())


def _as_int8(value: Value) -> Value:
    """A constant of uint8 less 128."""
    assert value.tensor is not None
    return make_constant(f"{value.name}/int8", shift_bytes(value.tensor))
