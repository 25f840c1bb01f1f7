"""The least version of an operator whose kernels take a form of it, and the release that has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from serde.errors import Problem, UsageError
from serde.ir.graph import EMPTY, DType, Graph, Node

from .target import QuantizedValue
from .version_data import FIRST, RELEASES

FORM = re.compile(r"(1|2)\.(\d{1,2})(\.\d{1,2})?", re.ASCII)
NIBBLES = frozenset({DType.INT4, DType.INT2})
I8, I16, I32, I64, BOOL = DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL
# Versions by the type of the first operand; the first is 1, or as ``FIRST`` has it.
OF_8_BITS = frozenset(
    "AVERAGE_POOL_2D MAX_POOL_2D SOFTMAX MEAN MIRROR_PAD REDUCE_MAX REDUCE_MIN RELU6 RELU TANH "
    "LOGISTIC CONCATENATION PAD PADV2 ADD EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL MAXIMUM "
    "MINIMUM SLICE STRIDED_SLICE TRANSPOSE GATHER SUM LOG_SOFTMAX DEPTH_TO_SPACE SPACE_TO_DEPTH "
    "TOPK_V2 EXP LOG REDUCE_PROD ARG_MAX ARG_MIN BATCH_MATMUL GELU MUL ABS FLOOR_MOD RSQRT".split()
)
OF_16_BITS: Mapping[str, int] = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "SOFTMAX", "MEAN", "MIRROR_PAD"), 3),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "RELU", "RELU6", "TANH", "LOGISTIC"), 3),
    **dict.fromkeys(("CONCATENATION", "PAD", "PADV2", "ADD", "BATCH_MATMUL", "DEQUANTIZE"), 3),
    **dict.fromkeys(("MUL", "GATHER", "SLICE", "MAXIMUM", "MINIMUM"), 4),
    **dict.fromkeys(("SUB", "TRANSPOSE"), 5),
    "LEAKY_RELU": 2, "GATHER_ND": 3, "FLOOR_MOD": 2, "BROADCAST_TO": 3, "CONV_2D": 4,
    "DEPTHWISE_CONV_2D": 5, "FULLY_CONNECTED": 7,
}  # fmt: skip
BY_TYPE: Mapping[DType, Mapping[str, int]] = {
    I8: {
        **dict.fromkeys(OF_8_BITS, 2), "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4,
        "SUB": 3, "TILE": 3, "BROADCAST_TO": 3, "DEQUANTIZE": 2,
    },
    I16: OF_16_BITS,
    DType.FLOAT16: {"DEQUANTIZE": 3},
    I32: {"ABS": 5, "SIGN": 2},
    I64: {"ADD": 4, "SUB": 4, "MUL": 5},
    BOOL: {"GATHER": 3, "TRANSPOSE": 3, "STRIDED_SLICE": 3, "GATHER_ND": 5},
}  # fmt: skip
# Versions of operands of more than four axes, or of five.
OF_MANY_AXES = {"PAD": 4, "PADV2": 4, "SLICE": 5, "STRIDED_SLICE": 4, "TRANSPOSE": 4}
REPEATS_MANY = {"MAXIMUM": 3, "MINIMUM": 3, "SUB": 3, "DIV": 2}
# Types that kernels of other operators than CAST have in newer releases than the table tells of.
YOUNG_TYPES = frozenset({DType.FLOAT16, DType.FLOAT64, DType.UINT16, DType.UINT32})
CASTS = (  # versions of CAST by the types of its operand and result, the first that fits
    (5, frozenset({DType.FLOAT64, DType.FLOAT16})), (4, frozenset({DType.UINT16})),
    (3, frozenset({I8})), (2, frozenset({DType.UINT32})),
)  # fmt: skip


def find_version(node: Node) -> int:
    """The version that a file declares for an operator."""
    first = next((v for v in node.inputs if v is not None), None)
    dtype = None if first is None else first.dtype
    rank = 0 if first is None else first.rank
    version = BY_TYPE.get(dtype, EMPTY).get(node.op, FIRST.get(node.op, 1))  # type: ignore[arg-type]
    if rank > 4:
        version = max(version, OF_MANY_AXES.get(node.op, 1))
    if node.op in REPEATS_MANY and rank > 4 and len({v.shape for v in node.inputs if v}) > 1:
        version = max(version, REPEATS_MANY[node.op])
    return max(version, FORMS[node.op](node) if node.op in FORMS else 1)


def _of_cast(node: Node) -> int:
    types = {v.dtype for v in (*node.inputs, *node.outputs) if v is not None}
    return next((version for version, of in CASTS if types & of), 1)


def _of_fully_connected(node: Node) -> int:
    if node.inputs[2] is None:
        return 6
    return 5 if node.attrs.get("keep_num_dims") else 1


def _of_depthwise(node: Node) -> int:
    return 2 if {node.attrs["dilation_h_factor"], node.attrs["dilation_w_factor"]} != {1} else 1


def _of_convolution(node: Node) -> int:
    x, w = node.inputs[:2]
    assert x is not None and w is not None
    return 6 if x.ranked_shape[-1] != w.ranked_shape[-1] else 1


def _of_transpose(node: Node) -> int:
    return 6 if node.outputs[0].rank > 5 else 1


def _of_transposed_convolution(node: Node) -> int:
    if node.attrs.get("fused_activation_function"):
        return 4
    return 3 if len(node.inputs) > 3 else 2 if node.outputs[0].dtype is I8 else 1


def _of_product(node: Node) -> int:
    """A kernel of quantized numbers whose rescaling is by 1 or more."""
    scales = [_scale(v) for v in (*node.inputs, *node.outputs)]
    x, y, result = scales
    return 3 if x and y and result and x * y / result >= 1 else 1


def _scale(value: object) -> float | None:
    if isinstance(value, QuantizedValue) and value.scales is not None:
        return float(value.scales.scale[0])
    return None


def _of_quantize(node: Node) -> int:
    return 2 if node.outputs[0].dtype is I16 else 1


def _of_dequantize(node: Node) -> int:
    x = node.inputs[0]
    is_single = not isinstance(x, QuantizedValue) or x.scales is None or x.scales.is_per_tensor
    return 6 if x is not None and x.dtype in NIBBLES else 1 if is_single else 5


FORMS = {
    "CAST": _of_cast, "CONV_2D": _of_convolution, "DEPTHWISE_CONV_2D": _of_depthwise,
    "DEQUANTIZE": _of_dequantize, "FULLY_CONNECTED": _of_fully_connected, "MUL": _of_product,
    "QUANTIZE": _of_quantize, "TRANSPOSE": _of_transpose,
    "TRANSPOSE_CONV": _of_transposed_convolution,
}  # fmt: skip


# Releases


@cache
def read_releases() -> Mapping[str, tuple[str, ...]]:
    """The releases of TensorFlow that brought the versions of each operator, from the first on."""
    rows = (line.split() for line in RELEASES.splitlines())
    return {op: tuple(releases) for op, *releases in rows}


def parse_release(text: str) -> tuple[int, int]:
    """A release as numbers.

    Raises:
        UsageError: where it is none.
    """
    match = FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"no release of TensorFlow Lite: {text!r}. Give one as 2.9")
    return int(match[1]), int(match[2])


def find_release(node: Node) -> str | None:
    """The release that brought what an operator needs; None where it is newer than the table."""
    types = {v.dtype for v in node.inputs if v is not None}
    if node.op != "CAST" and types & YOUNG_TYPES:
        return None
    releases, version = read_releases().get(node.op, ()), find_version(node)
    at = version - FIRST.get(node.op, 1)
    return releases[at] if at < len(releases) else None


def lacks_operator(op: str, release: tuple[int, int] | None) -> bool:
    """Whether a release has no version of an operator."""
    first = read_releases().get(op, (None,))[0]
    return release is not None and (first is None or parse_release(first) > release)


def find_newer(graph: Graph, release: str, stage: str) -> Iterator[Problem]:
    """The operators that a release lacks."""
    limit = parse_release(release)
    for node in graph.all_nodes():
        needed = find_release(node)
        if needed is None or parse_release(needed) > limit:
            source = node.sources[0].name if node.sources else node.outputs[0].name
            since = f"came with {needed}" if needed else "is newer than 2.10"
            reason = (
                f"TensorFlow Lite {release} has no {node.op} of version {find_version(node)}, "
                f"which {since}. Write for a newer one (--tflite)"
            )
            yield Problem(node.op, EMPTY, reason, (source,), stage)
