"""What Coral's Edge TPU and TFLite Micro take of TensorFlow Lite's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from serde.errors import Problem, Unconvertible
from serde.ir.graph import EMPTY, DType, Graph, Node, Value

from .support_table import parse_table
from .target import QuantizedValue, writes

# Those of Coral's list of supported operations, for the Edge TPU's runtime 14.
EDGE_TPU = frozenset(
    "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D EXPAND_DIMS FULLY_CONNECTED "
    "L2_NORMALIZATION LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL PACK PAD PRELU QUANTIZE "
    "REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR "
    "RSQRT SLICE SOFTMAX SPACE_TO_DEPTH SPLIT SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM "
    "TANH TRANSPOSE TRANSPOSE_CONV".split()
)
# Those that TFLite Micro's resolver of all operators registered in August 2026, but for those whose
# places and numbers of the turn are int32 there; and the element types of data that is not
# quantized, measured beside onnx.reference.
MICRO_TYPES = parse_table("""
bool: IF LOGICAL_AND LOGICAL_NOT LOGICAL_OR REDUCE_ALL
bool float32 int16 int32 int64 int8: CONCATENATION
bool float32 int16 int32 int64 int8 uint8: BROADCAST_TO EXPAND_DIMS RESHAPE SQUEEZE
bool float32 int16 int32 int8: CAST SLICE STRIDED_SLICE
bool float32 int32 int64: EQUAL NOT_EQUAL
float32: AVERAGE_POOL_2D BATCH_MATMUL CEIL CONV_2D COS CUMSUM DEPTHWISE_CONV_2D ELU EXP FLOOR
  FLOOR_MOD FULLY_CONNECTED HARD_SWISH L2_NORMALIZATION LEAKY_RELU LOG LOGISTIC LOG_SOFTMAX
  MAX_POOL_2D MEAN NEG PRELU QUANTIZE RELU RELU6 ROUND RSQRT SIN SOFTMAX SQRT SUM TANH
  TRANSPOSE_CONV
float32 int16: ABS
float32 int16 int32 int64 int8: MAXIMUM MINIMUM
float32 int16 int32 int8: PAD PADV2
float32 int16 int8: SELECT_V2 TRANSPOSE
float32 int32: ADD DIV MUL SUB
float32 int32 int64: GREATER GREATER_EQUAL LESS LESS_EQUAL
float32 int8: DEPTH_TO_SPACE DEQUANTIZE GATHER GATHER_ND REDUCE_MAX REDUCE_MIN SPACE_TO_DEPTH
""")
MICRO = frozenset(MICRO_TYPES)
OPERATORS: Mapping[str, frozenset[str]] = {"edgetpu": EDGE_TPU, "tflite-micro": MICRO}
SIGNED = frozenset({"tflite-micro"})  # profiles whose layers are not of uint8
DATA = {"SELECT_V2": 1, "TRANSPOSE_CONV": 2}  # the operand that tells the type, if not the first
CUT = "Leave it out of the part for the device (--outputs, serde partition)"
QUANTIZE = "Quantize every layer to int8, with QuantizeLinear and DequantizeLinear around it"
WIDEN = "Cast it to float32 or int32 before, or quantize it to int8"
FLOATS = "Leave out --fp16 and --weights fp16, or give --fp32"
STATIC = "Give numbers (--static, --input)"


def find_data(node: Node) -> Value | None:
    """The operand that is computed with."""
    return node.inputs[DATA.get(node.op, 0)]


def find_problems(profile: str, title: str, graph: Graph) -> Iterator[Problem]:
    """What a profile lacks: operators, sizes by name, and what ``CHECKS`` have of it."""
    for node in graph.all_nodes():
        if any(not v.is_static for v in node.outputs):
            reason: str | None = f"{title} takes no sizes by name. {STATIC}"
        else:
            reason = CHECKS[profile](node, graph)
        if reason is None and node.op not in OPERATORS[profile] and not _is_end(node, graph):
            reason = f"{title} has no {node.op}. {CUT}"
        if reason is not None:
            name = node.sources[0].name if node.sources else node.outputs[0].name
            yield Problem(node.op, EMPTY, reason, (name,), writes.name)


def require_operators(profile: str, title: str, graph: Graph) -> Graph:
    """The graph, all of which a profile takes.

    Raises:
        Unconvertible: for all nodes that it does not take, at once.
    """
    if problems := [*find_problems(profile, title, graph)]:
        raise Unconvertible(writes.name, problems)
    return graph


# The Edge TPU


class Limit(NamedTuple):
    """A form of an operator that is not mapped to the device, and what to do."""

    what: str
    has: Callable[[Node], bool]
    advice: str


def _has_activation(node: Node) -> bool:
    return bool(node.attrs.get("fused_activation_function"))


def _reduces_samples(node: Node) -> bool:
    axes, x = node.inputs[1], node.inputs[0]
    return axes is not None and x is not None and x.rank > 1 and 0 in axes.ints()


def _is_long(node: Node) -> bool:
    *rows, row = node.outputs[0].static_shape
    return math.prod(rows) > 1 or row > LONGEST


def _has_rows(node: Node) -> bool:
    return math.prod(node.outputs[0].static_shape[:-1]) > 1


def _has_constants(node: Node) -> bool:
    return any(v is not None and v.tensor is not None for v in node.inputs)


def _has_steps(node: Node) -> bool:
    return node.inputs[3] is None or any(step != 1 for step in node.inputs[3].ints())


def _dilates_unevenly(node: Node) -> bool:
    return node.attrs["dilation_h_factor"] != node.attrs["dilation_w_factor"]


LONGEST = 16_000  # elements of a SOFTMAX
ACTIVATED = Limit("an activation that is part of it", _has_activation, "Put it elsewhere")
SAMPLES = Limit("a reduction over the batch", _reduces_samples, "Reduce along other axes")
UNEVEN = Limit("two dilations", _dilates_unevenly, "Use the same in both directions")
LIMITS: Mapping[str, tuple[Limit, ...]] = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), (ACTIVATED,)),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), (SAMPLES,)),
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D"), (UNEVEN,)),
    "CONCATENATION": (Limit("a constant operand", _has_constants, CUT),),
    "FULLY_CONNECTED": (Limit("several rows", _has_rows, "Give a batch of 1 (--input)"),),
    "SOFTMAX": (Limit(f"several rows, or more than {LONGEST} elements", _is_long, CUT),),
    "STRIDED_SLICE": (Limit("steps other than 1", _has_steps, CUT),),
}


def _is_end(node: Node, graph: Graph) -> bool:
    """Whether a node quantizes an input or dequantizes a result, which the host does."""
    if node.op == "QUANTIZE":
        return node.inputs[0] in graph.inputs
    return node.op == "DEQUANTIZE" and node.outputs[0] in graph.outputs


def check_edgetpu(node: Node, graph: Graph) -> str | None:
    """Why the Edge TPU does not take a node, None where it does."""
    if _is_end(node, graph):
        return None
    data = [v for v in (find_data(node), *node.outputs) if v is not None]
    others = [v for v in data if v.dtype not in (DType.INT8, DType.UINT8)]
    if others:
        return f"the Edge TPU computes with int8 only, and {others[0].name!r} is of " \
               f"{others[0].type.value}. {QUANTIZE}"  # fmt: skip
    if any(_is_wide(v) for v in data):
        return "the Edge TPU takes sizes above 1 along the last three axes only. " \
               "Give a batch of 1 (--input)"  # fmt: skip
    limit = next((limit for limit in LIMITS.get(node.op, ()) if limit.has(node)), None)
    return limit and f"the Edge TPU has no {node.op} with {limit.what}. {limit.advice}"


def _is_wide(value: Value) -> bool:
    return math.prod(value.static_shape[:-3]) > 1


# TFLite Micro


def check_micro(node: Node, graph: Graph) -> str | None:
    """Why TFLite Micro does not take a node, None where it does."""
    known = MICRO_TYPES.get(node.op)
    if known is None:
        return None
    data = (find_data(node), *(node.outputs if node.op == "CAST" else ()))
    values = [v for v in data if v is not None]
    if node.op.startswith("GATHER"):
        values += [v for v in node.inputs[1:] if v is not None and v.dtype is not DType.INT32]
    plain = (v for v in values if not isinstance(v, QuantizedValue) or v.scales is None)
    other = next((v for v in plain if v.dtype not in known or _is_test(node, v)), None)
    if other is None:
        return None
    if other.tensor is not None and other.dtype is DType.FLOAT16:
        return f"TFLite Micro has no weights of float16. {FLOATS}"
    return f"TFLite Micro has no {node.op} of {other.type.value}. {WIDEN}"


def _is_test(node: Node, value: Value) -> bool:
    """Whether a value is cast to booleans."""
    return node.op == "CAST" and value in node.outputs and value.dtype is DType.BOOL


CHECKS: Mapping[str, Callable[[Node, Graph], str | None]] = {
    "edgetpu": check_edgetpu, "tflite-micro": check_micro,
}  # fmt: skip
require_edgetpu = partial(require_operators, "edgetpu", "the Edge TPU")
require_micro = partial(require_operators, "tflite-micro", "TFLite Micro")
