"""What runs TensorFlow Lite's files, as profiles: LiteRT, Coral's Edge TPU, and TFLite Micro."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from serde.errors import Problem, Unconvertible
from serde.ir.graph import EMPTY, DType, Graph, Node, Value
from serde.plugins.consumer import Consumer

STAGE = "ir → tflite"
# Those of Coral's list of supported operations, for the Edge TPU's runtime 14.
EDGE_TPU = frozenset(
    "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D EXPAND_DIMS FULLY_CONNECTED "
    "L2_NORMALIZATION LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL PACK PAD PRELU QUANTIZE "
    "REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_N1_TO_1 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR "
    "RSQRT SLICE SOFTMAX SPACE_TO_DEPTH SPLIT SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM "
    "TANH TRANSPOSE TRANSPOSE_CONV".split()
)
# Those that TFLite Micro's resolver of all operators registered in August 2026.
MICRO = frozenset(
    "ABS ADD ADD_N ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS "
    "BROADCAST_TO CAST CEIL CONCATENATION CONV_2D COS CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE "
    "DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR "
    "FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GREATER GREATER_EQUAL HARD_SWISH IF "
    "L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR "
    "LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL PACK PAD "
    "PADV2 PRELU QUANTIZE REDUCE_ALL REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE RESIZE_BILINEAR "
    "RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT_V2 SHAPE SIN SLICE SOFTMAX "
    "SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE "
    "STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE TRANSPOSE_CONV UNPACK WHILE ZEROS_LIKE".split()
)
OPERATORS: Mapping[str, frozenset[str]] = {"edgetpu": EDGE_TPU, "tflite-micro": MICRO}
CUT = "Leave it out of the part for the device (--outputs, serde partition)"
QUANTIZE = "Quantize every layer to int8, with QuantizeLinear and DequantizeLinear around it"
STATIC = "Give numbers (--static, --input)"


def find_problems(profile: str, title: str, graph: Graph) -> Iterator[Problem]:
    """What a profile lacks: operators, sizes by name, and what ``CHECKS`` have of it."""
    for node in graph.all_nodes():
        reason = None
        if any(not v.is_static for v in node.outputs):
            reason = f"{title} takes no sizes by name. {STATIC}"
        elif profile in CHECKS:
            reason = CHECKS[profile](node, graph)
        if reason is None and node.op not in OPERATORS[profile] and not _is_end(node, graph):
            reason = f"{title} has no {node.op}. {CUT}"
        if reason is not None:
            name = node.sources[0].name if node.sources else node.outputs[0].name
            yield Problem(node.op, EMPTY, reason, (name,), STAGE)


def require_operators(profile: str, title: str, graph: Graph) -> Graph:
    """The graph, all of which a profile takes.

    Raises:
        Unconvertible: for all nodes that it does not take, at once.
    """
    if problems := [*find_problems(profile, title, graph)]:
        raise Unconvertible(STAGE, problems)
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
    data = [v for v in (node.inputs[0], *node.outputs) if v is not None]
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


CHECKS: Mapping[str, Callable[[Node, Graph], str | None]] = {"edgetpu": check_edgetpu}
CONSUMERS: Mapping[str, Consumer] = {
    "litert": Consumer("litert", "LiteRT", next_step="LiteRT runs {name!r}"),
    "edgetpu": Consumer(
        "edgetpu", "Edge TPU", also_called=("coral",), next_step="edgetpu_compiler {name}",
        prepare=partial(require_operators, "edgetpu", "the Edge TPU"),
    ),
    "tflite-micro": Consumer(
        "tflite-micro", "TFLite Micro", also_called=("tflm",),
        next_step="tflite_micro.runtime.Interpreter.from_file({name!r})",
        prepare=partial(require_operators, "tflite-micro", "TFLite Micro"),
    ),
}  # fmt: skip
