"""Forms of operators without windows that several targets lack, and what is written for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from serde.decompositions import elementwise, normalization
from serde.ir.graph import Value

from .form import Call, Form, by, decompose


def bounds_of(call: Call) -> list[Value]:
    """The bounds of a Clip."""
    return [v for v in call.inputs[1:3] if v is not None]


def are_crossed(call: Call) -> bool:
    """Whether the lower bound of a Clip, a constant, is above the upper one."""
    bounds = bounds_of(call)
    return len(bounds) == 2 and float(bounds[0].array()) > float(bounds[1].array())


def clip_by_extremes(g: Any, call: Call) -> Any:
    """The larger and the smaller of elements and bounds."""
    low, high = call.operand(1), call.operand(2)
    y = call.x if low is None else g.Max(call.x, low)
    return y if high is None else g.Min(y, high)


def take_first(g: Any, call: Call) -> Any:
    """The first operand."""
    return g.Identity(call.x)


def fold_pairs(op: str = "") -> Callable[[Any, Call], Any]:
    """A rewrite by an operator of two operands, one after the other."""
    return lambda g, call: reduce(g[op or call.op], call.inputs)


def divide_sum(g: Any, call: Call) -> Any:
    """A Mean as a Sum, divided."""
    total = g.Sum(*call.inputs)
    return g.Div(total, float(len(call.inputs))) if len(call.inputs) > 1 else total


def trains(call: Call) -> bool:
    """Whether a BatchNormalization is of the batch's own statistics."""
    return bool(call.attrs["training_mode"]) or call.outputs > 1


def unify_types(g: Any, call: Call) -> Any:
    """BatchNormalization in the widest of its element types."""
    return normalization.unify_batch_norm(g, call.x, call.inputs[1:], **call.attrs)


def normalize_by_channel(g: Any, call: Call) -> Any:
    """BatchNormalization by a difference and a quotient."""
    return normalization.normalize_channels(g, call.x, call.inputs[1:], call.attrs["epsilon"])


def scale_by_channel(g: Any, call: Call) -> Any:
    """BatchNormalization by one factor and one summand for each channel."""
    return normalization.scale_channels(g, call.x, call.inputs[1:], call.attrs["epsilon"])


NO_BOUNDS = Form("no bounds", lambda call: not bounds_of(call), take_first)
COMPUTED_BOUNDS = Form(
    "computed bounds", lambda call: any(v.tensor is None for v in bounds_of(call)), clip_by_extremes
)
CROSSED_BOUNDS = Form("a lower bound above the upper one", are_crossed, clip_by_extremes)
ONE_OPERAND = Form("one operand", lambda call: len(call.inputs) == 1, take_first)
MORE_OPERANDS = Form("more than two operands", lambda call: len(call.inputs) > 2, fold_pairs())
SUMMANDS = Form("any number of operands", lambda call: True, fold_pairs("Add"))
MEAN = Form("any number of operands", lambda call: True, divide_sum)
WRAP = Form("mode='wrap'", lambda call: call.attrs["mode"] == "wrap", decompose(19))
ALLOW_ZERO = Form("allowzero=1", lambda call: bool(call.attrs["allowzero"]), decompose(14))
BATCH_DIMS = Form("batch_dims", lambda call: bool(call.attrs["batch_dims"]), decompose(12))
NEGATIVE_LAMBD = Form("lambd below 0", lambda call: call.attrs["lambd"] < 0, decompose(9))
TRAINING = Form(
    "training_mode=1", lambda call: bool(call.attrs["training_mode"]),
    by(normalization.train_batch_norm, "training_mode"),
)  # fmt: skip
MIXED_TYPES = Form(
    "several element types",
    lambda call: not trains(call) and len({v.type for v in call.inputs}) > 1, unify_types,
)  # fmt: skip
COMPUTED_PARAMETERS = Form(
    "computed parameters",
    lambda call: not trains(call) and any(v.tensor is None for v in call.inputs[1:]),
    normalize_by_channel,
)
SLOPES = Form("slopes that are not one by channel", lambda call: True, by(elementwise.prelu))
EVEN_WINDOW = Form(
    "a window of an even size", lambda call: call.attrs["size"] % 2 == 0,
    by(normalization.local_response),
)  # fmt: skip
LAYER_WEIGHTS = Form("weights of other sizes", lambda call: True, decompose(17))
