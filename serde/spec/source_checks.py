"""What a node of a file must be before any rule sees it, beyond what onnx's inference checks."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from serde.errors import ConversionError, require, show_attribute
from serde.ir.graph import Node, show_shape
from serde.spec import schema
from serde.spec.memo import memoize, number_attributes
from serde.spec.traits import AXIS, QUANTIZES

_legal: dict[Any, bool] = {}  # forms of nodes that are right
MOST_INPUTS = 1 << 16  # of a node
DIRECTION = {"direction": ("forward", "reverse", "bidirectional")}
LOSS = {"reduction": ("none", "mean", "sum")}
SCATTER = {"reduction": ("none", "add", "mul", "max", "min")}
# What an attribute may be, at any opset.
CHOICES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "BitShift": {"direction": ("LEFT", "RIGHT")},
    "DepthToSpace": {"mode": ("DCR", "CRD")},
    "GRU": {"direction": (*DIRECTION["direction"], "foward")},  # as opset 1 spells its default
    "Gelu": {"approximate": ("none", "tanh")},
    "GridSample": {
        "mode": ("linear", "nearest", "cubic", "bilinear", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    "LSTM": DIRECTION,
    "NegativeLogLikelihoodLoss": LOSS,
    "Pad": {"mode": ("constant", "reflect", "edge", "wrap")},
    "RNN": DIRECTION,
    "Resize": {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": (
            "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
            "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize",
        ),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    },
    "ReverseSequence": {"batch_axis": (1, 0), "time_axis": (0, 1)},
    "RoiAlign": {
        "mode": ("avg", "max"),
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    },
    "ScatterElements": SCATTER,
    "ScatterND": SCATTER,
    "SoftmaxCrossEntropyLoss": LOSS,
    "TfIdfVectorizer": {"mode": ("TF", "IDF", "TFIDF")},
    "Upsample": {"mode": ("nearest", "linear", "bilinear")},
}  # fmt: skip
AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
POSITIVE = frozenset("strides dilations kernel_shape group blocksize".split())  # or lists of such
PER_AXIS = {"strides": 1, "dilations": 1, "pads": 2}  # numbers for each axis of a window
# The ranks of operands, None where any will do; ``LEAST`` are the ranks of the first at least.
RANKS: dict[str, tuple[int | None, ...]] = {
    "AffineGrid": (3, 1),
    "Col2Im": (3, 1, 1),
    "EyeLike": (2,),
    "GRU": (3, 3, 3),
    "LSTM": (3, 3, 3),
    "MaxRoiPool": (4, 2),
    "NonMaxSuppression": (3, 3),
    "RNN": (3, 3, 3),
    "RoiAlign": (4, 2, 1),
    "Slice": (None, 1, 1, 1, 1),
}
SINGLE = {
    "CumProd": (1,),
    "CumSum": (1,),
    "Range": (0, 1, 2),
    "TopK": (1,),
    "Trilu": (1,),
}  # operands of one element
LEAST = {"Det": 2, "DFT": 2, "GatherND": 1, "GlobalAveragePool": 2, "GlobalMaxPool": 2,
         "GridSample": 3, "MatMul": 1, "MaxUnpool": 3, "NegativeLogLikelihoodLoss": 2,
         "ReverseSequence": 2, "STFT": 2, "ScatterND": 1, "SoftmaxCrossEntropyLoss": 2,
         "TopK": 1, "Trilu": 2}  # fmt: skip


def refuse_illegal_node(opset: int, node: Node) -> None:
    """Refuse a node of a file that is none of opset ``opset``."""
    is_given = tuple([v is not None for v in node.inputs])
    key = opset, node.op, number_attributes(node.attrs), is_given, len(node.outputs)
    if key not in _legal:
        _refuse_illegal_form(opset, node)
        if key[2] is not None:
            memoize(_legal, key, lambda: True)
    _check_ranks(node)


def _refuse_illegal_form(opset: int, node: Node) -> None:
    """Refuse what does not depend on types: attributes, and how many operands there are."""
    operator = schema.operator(node.op, opset)
    reason = schema.illegal_attributes_reason(operator, node.attrs)
    require(reason is None, reason or "")
    count, last = len(node.outputs), operator.outputs[-1:]
    most = None if last and last[0].variadic else len(operator.outputs)
    require(count > 0, f"{node.op} without outputs")
    require(most is None or count <= most, f"{node.op} has at most {most} outputs, not {count}")
    arity = len(node.inputs)
    least = operator.raw.min_input
    fits = least <= arity <= MOST_INPUTS and operator.takes(arity)
    require(fits, f"{node.op} with {arity} inputs")
    for at, value in enumerate(node.inputs):
        if value is None:
            formal = operator.input(at)
            require(formal.optional, f"{node.op} without its input {formal.name!r}")
    _check_attributes(node)


def _check_attributes(node: Node) -> None:
    for name, allowed in CHOICES.get(node.op, {}).items():
        value = node.attrs.get(name, allowed[0])
        other = value not in allowed and isinstance(value, type(allowed[0]))
        _require(not other, node, name)
    filling = node.attrs.get("value") if node.op == "ConstantOfShape" else None
    _require(getattr(filling, "size", 1) == 1, node, "value", ": it has one element")
    pad = node.attrs.get("auto_pad", "NOTSET")
    _require(pad in AUTO_PAD or not isinstance(pad, str), node, "auto_pad")
    for name in POSITIVE & node.attrs.keys():
        value = node.attrs[name]
        numbers = value if isinstance(value, tuple) else (value,)
        _require(all(n > 0 for n in numbers if isinstance(n, int)), node, name)
    window = node.attrs.get("kernel_shape")
    if isinstance(window, tuple) and window:
        for name, ends in PER_AXIS.items():
            value = node.attrs.get(name)
            fits = not value or not isinstance(value, tuple) or len(value) == ends * len(window)
            _require(fits, node, name, f" and kernel_shape={window}")


def _require(condition: bool, node: Node, name: str, more: str = "") -> None:
    """Refuse the value of an attribute unless ``condition`` holds."""
    if not condition:
        raise ConversionError(f"{node.op} with {name}={show_attribute(node.attrs[name])}{more}")


def _check_ranks(node: Node) -> None:
    for at, (value, rank) in enumerate(zip(node.inputs, RANKS.get(node.op, ()), strict=False)):
        if value is not None and value.shape is not None and rank is not None:
            shown = f"input {at} of {node.op} is {show_shape(value.shape)}"
            require(len(value.shape) == rank, f"{shown}: it has {rank} axes")
    for at in SINGLE.get(node.op, ()):
        value = node.inputs[at] if at < len(node.inputs) else None
        if value is not None and value.is_static:
            shown = f"input {at} of {node.op} is {show_shape(value.shape)}"
            require(prod(value.static_shape) == 1, f"{shown}: it has one element")
    x = node.inputs[0] if node.inputs else None
    if x is None or x.shape is None:
        return
    least = LEAST.get(node.op, 0)
    if len(x.shape) < least:
        raise ConversionError(f"{node.op} of {show_shape(x.shape)}: it takes {least} axes")
    axis = node.attrs.get("axis")
    if node.op in AXIS - QUANTIZES and isinstance(axis, int):  # of those data may have no axes
        require(-len(x.shape) <= axis <= len(x.shape), f"axis {axis} of {show_shape(x.shape)}")
