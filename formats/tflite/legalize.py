"""What TensorFlow Lite's kernels take, and operators of the IR in the form that they take."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from serde.decompositions.normalization import local_response
from serde.decompositions.table import add_decompositions
from serde.ir import constants
from serde.ir.graph import IR_OPSET, DType, Graph
from serde.legalize.convert import scalarize_sequences, without_functions
from serde.legalize.forms import operators as forms
from serde.legalize.forms import windows
from serde.legalize.forms.form import CONSTANT, Call, Form, Lacks, decompose
from serde.legalize.target import Target
from serde.legalize.walk import Legalized, legalize
from serde.passes import tidy
from serde.spec import schema
from serde.spec.traits import BROADCASTS, COMPARISONS, RESHAPES, WINDOWS

from .forms import COMPUTED_PADS, EDGE, INFINITE, MANY_AXES, NEGATIVE_PADS, VOLUME, crd
from .layer_forms import GROUPS, PHASES, TRANSPOSED
from .limits import OPERATORS
from .ops.layers import agrees_with_same
from .ops.quantization import (
    compute_quantized,
    dequantize,
    has_constant_scales,
    is_quantized,
    is_quantized_weight,
)
from .support_table import KERNELS, STORED
from .target import DOMAIN, TITLE, is_weight, legalizations, writes
from .versions import lacks_operator

FLOAT = frozenset({DType.FLOAT32})
MOST_AXES = 6  # of an input
# Operators of the IR that older releases, or profiles, have no operator for, and that have a
# decomposition.
YOUNG = {
    "CumSum": "CUMSUM", "Gelu": "GELU", "HardSwish": "HARD_SWISH", "Sign": "SIGN",
    "LRN": "LOCAL_RESPONSE_NORMALIZATION", "LSTM": "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "RNN": "UNIDIRECTIONAL_SEQUENCE_RNN",
}  # fmt: skip
PHASE_OPERATORS = frozenset({"DEPTH_TO_SPACE", "TILE"})  # that convolutions of ``PHASES`` need
CONTROL_FLOW = frozenset({"If", "Loop"})  # which run what other operators compute
# Operators whose first operand and results are images, with channels last in the file.
IMAGES = WINDOWS | {"DepthToSpace", "LRN", "Resize", "SpaceToDepth"}


def is_no_image(call: Call) -> bool:
    """Whether the first operand has other than two axes of an image."""
    return call.x.rank != 4


def is_no_layer(call: Call) -> bool:
    """Whether the first operand has other than two or three axes of an image."""
    return call.x.rank not in (4, 5)


def is_constant(at: int):  # type: ignore[no-untyped-def]
    """A test for a constant operand."""
    return lambda call: (v := call.operand(at)) is None or v.tensor is not None


def need_constant(at: int, name: str) -> Form:
    """An operand that is to be a constant."""
    return Form(f"a computed {name!r}", lambda call: not is_constant(at)(call), advice=CONSTANT)


def need_length(at: int, name: str) -> Form:
    """An operand that is to be a list of so many numbers, computed or not."""

    def has_open_length(call: Call) -> bool:
        value = call.operand(at)
        return value is not None and not (value.shape and isinstance(value.shape[0], int))

    return Form(f"a {name!r} of unknown length", has_open_length, advice=CONSTANT)


def need_constants(**places: int) -> list[Form]:
    """Operands that are to be constants, each with its place."""
    return [need_constant(at, name) for name, at in places.items()]


def widen_line(g, call: Call):  # type: ignore[no-untyped-def]
    """A layer of one axis as one of two, the first of size 1."""
    operands = [g.Unsqueeze(v, [2]) if at < 2 else v for at, v in enumerate(call.inputs)]
    attrs = dict(call.attrs)
    for name, fill in (("kernel_shape", 1), ("strides", 1), ("dilations", 1)):
        if attrs.get(name) is not None:
            attrs[name] = (fill, *attrs[name])
    if attrs.get("pads") is not None:
        attrs["pads"] = (0, attrs["pads"][0], 0, attrs["pads"][1])
    if attrs.get("output_padding") is not None:
        attrs["output_padding"] = (0, *attrs["output_padding"])
    return g.Squeeze(g[call.op](*operands, **attrs), [2])


def has_own_pads(call: Call) -> bool:
    """Whether a mean has pads that SAME does not stand for, or counts them."""
    pads = call.window.pads or ()
    if not any(pads) or call.x.rank != 4 or not windows.is_fixed(call):
        return any(pads) and windows.is_fixed(call)
    w = call.window
    is_same = agrees_with_same(call.x.ranked_shape[2:], w.kernel_shape, w.strides, pads)
    return bool(call.attrs["count_include_pad"]) or not is_same


LINE = Form(
    "one axis of windows",
    lambda call: call.x.rank == 3 and call.outputs == 1 and windows.is_fixed(call)
    and call.attrs.get("output_shape") is None,
    widen_line,
)  # fmt: skip
NO_IMAGE = Form("other than one to three axes of windows", is_no_image, advice="Reshape the tensor")
NO_LAYER = NO_IMAGE._replace(has=is_no_layer)
OPEN_PADS = Form(
    "auto_pad", lambda call: not windows.is_fixed(call), advice="Give numbers for pads"
)
LAST_INDEX = Form(
    "select_last_index=1", lambda call: bool(call.attrs["select_last_index"]), decompose(12)
)
NO_WEIGHT = Form(
    "blocks, or scales that are computed", lambda call: not is_quantized_weight(call),
    dequantize,
)  # fmt: skip
INFINITE_SCALE = Form(
    "a scale that is infinite or no number",
    lambda call: (v := call.inputs[1]).tensor is not None and not np.isfinite(v.array()).all(),
    advice="Quantize the model again, with finite numbers in masks (-1e4)",
)  # fmt: skip
NO_DOUBLE = "Give --fp32; quantized layers of MXNet are with --integers qdq"
OUTSIDE = "Compute it outside of the model: end the model before it (--outputs)"
LACKS: Lacks = {
    **{op: [MANY_AXES] for op in BROADCASTS - COMPARISONS if op in writes.rules},
    **{op: [INFINITE, MANY_AXES] for op in COMPARISONS},
    "Max": [forms.ONE_OPERAND, forms.MORE_OPERANDS, MANY_AXES],
    "Min": [forms.ONE_OPERAND, forms.MORE_OPERANDS, MANY_AXES],
    "Sum": [forms.SUMMANDS],
    "Mean": [forms.MEAN],
    "Clip": [forms.NO_BOUNDS, forms.COMPUTED_BOUNDS, forms.CROSSED_BOUNDS],
    "Conv": [
        LINE, NO_LAYER, OPEN_PADS, GROUPS.where(lambda call: call.x.rank == 5),
        windows.COMPUTED_BIAS.where(lambda call: not is_weight(call.g, call.operand(2))),
    ],
    "DequantizeLinear": [INFINITE_SCALE, NO_WEIGHT.where(lambda call: not is_quantized(call))],
    "QuantizeLinear": [
        INFINITE_SCALE,
        Form("scales by axis or computed", lambda call: not is_quantized(call), compute_quantized),
    ],
    "ConvTranspose": [
        OPEN_PADS, *TRANSPOSED, LINE, NO_LAYER,
    ],
    "MaxPool": [
        windows.PLACES, windows.MAX_DILATIONS, windows.CEIL_MODE, LINE, VOLUME, NO_IMAGE, OPEN_PADS,
    ],
    "AveragePool": [
        windows.AVERAGE_DILATIONS, windows.CEIL_MODE,
        Form("pads", has_own_pads, windows.pad_average),
        LINE, VOLUME, NO_IMAGE, OPEN_PADS,
    ],
    "LpPool": windows.LP_POOL,
    "LRN": [Form(
        "an even window, or other than two axes of an image",
        lambda call: call.attrs["size"] % 2 == 0 or call.x.rank != 4,
        lambda g, call: local_response(g, call.x, **call.attrs),
    )],
    "DepthToSpace": [crd("DepthToSpace")],
    "SpaceToDepth": [crd("SpaceToDepth")],
    "Pad": [
        NEGATIVE_PADS, forms.WRAP, EDGE, *need_constants(constant_value=2, axes=3), COMPUTED_PADS,
        need_constant(1, "pads").where(lambda call: call.attrs["mode"] != "constant"),
        need_length(1, "pads"),
    ],
    "Reshape": [forms.ALLOW_ZERO],
    "Transpose": [Form("more than 6 axes", lambda call: call.x.rank > 6, advice="Reshape first")],
    "BatchNormalization": [
        forms.TRAINING, forms.MIXED_TYPES, forms.COMPUTED_PARAMETERS,
        Form("constants", lambda call: True, forms.scale_by_channel),
    ],
    "GatherND": [forms.BATCH_DIMS],
    **{op: [need_constant(1, "axes")] for op in (
        "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Squeeze", "Unsqueeze",
    )},
    "Slice": [need_length(1, "starts"), *need_constants(axes=3, steps=4)],
    "Expand": [need_length(1, "shape"), Form("more than 6 axes", lambda c: c.x.rank > 6)],
    "TopK": [
        Form("largest=0", lambda call: not call.attrs["largest"], decompose(11)),
    ],
    "ArgMax": [LAST_INDEX],
    "ArgMin": [LAST_INDEX],
    "Split": [need_constant(1, "split")],
}  # fmt: skip


@lru_cache(16)
def tflite_target(
    integers: bool = False, release: tuple[int, int] | None = None, profile: str | None = None
) -> Target:
    """TensorFlow Lite, once all families have filled the tables; the newest release if None.

    Without ``integers`` numbers are not quantized by its kernels, which round halves otherwise.
    """
    allowed = OPERATORS.get(profile or "", {*YOUNG.values()})
    lacking = {
        op for op, code in YOUNG.items() if code not in allowed or lacks_operator(code, release)
    }
    if not integers:
        lacking.add("QuantizeLinear")
    operators = {op: _constrain(op) for op in writes.list_standard() if op not in lacking}
    rules = add_decompositions(legalizations, operators)
    floats = {"DequantizeLinear": [INFINITE_SCALE, NO_WEIGHT], "QuantizeLinear": []}
    lacks = LACKS if integers else {**LACKS, **floats}
    if not OPERATORS.get(profile or "", PHASE_OPERATORS) >= PHASE_OPERATORS:
        by_groups = [form for form in LACKS["ConvTranspose"] if form is not PHASES]
        lacks = {**lacks, "ConvTranspose": by_groups}
    return Target(
        "tflite", title=TITLE, supports=operators, lacks=lacks, legalizations=rules,
        sequences=False, type_advice={DType.FLOAT64: NO_DOUBLE}, operator_advice=OUTSIDE,
        domains=frozenset({DOMAIN}),
    )  # fmt: skip


def _constrain(op: str) -> dict[str, frozenset[DType]]:
    """The element types of each type variable: those whose kernels were measured right."""
    if op in CONTROL_FLOW:
        return {}
    operator = schema.operator(op, IR_OPSET)
    types = KERNELS.get(op, STORED if op in RESHAPES else FLOAT)
    ties: dict[str, frozenset[DType]] = {}
    for at, p in enumerate((*operator.inputs, *operator.outputs)):
        first = operator.inputs[0].tie if operator.inputs else ""
        is_data = p.tie == first or op in ("Where", "OneHot")
        ties.setdefault(p.tie, types if is_data or (at == 0) else STORED)
    if op in COMPARISONS | {"BitCast", "Cast"}:
        ties[operator.outputs[0].tie] = STORED
    return ties


def is_quantized_graph(graph: Graph) -> bool:
    """Whether a graph computes with quantized numbers, which kernels round, by constant scales.

    Those are layers of integers, numbers that are quantized and later dequantized, and what a file
    of this format quantizes. Others round as the standard has it: kernels round halves otherwise.
    """
    nodes = [node for node in graph.all_nodes() if not node.domain]
    quantizing = [
        node for node in nodes
        if node.op == "QuantizeLinear" and constants.is_constant(node.inputs[1:2])
    ]  # fmt: skip
    return (
        any(source.format == DOMAIN for node in quantizing for source in node.sources)
        or any(s.op == "QUANTIZE" and s.format == DOMAIN for node in nodes for s in node.sources)
        or any(
            node.op == "DequantizeLinear" and not constants.is_constant(node.inputs[:1])
            for node in nodes if quantizing
        )
        or any(
            node.op in ("QLinearConv", "QLinearMatMul") and has_constant_scales(node.inputs)
            for node in nodes
        )
    )  # fmt: skip


def legalize_for_tflite(graph: Graph, target: Target) -> Legalized:
    """Rewrite an IR graph into one whose operators, but those without any way, the target has."""
    return legalize(scalarize_sequences(without_functions(graph)), target, tidy)
