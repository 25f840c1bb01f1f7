"""Forms of operators that several consumers lack, and refuse."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType, Value
from serde.legalize.forms.form import STATIC, Call, Form

INT32 = np.iinfo(np.int32)
WIDE = frozenset({DType.INT64, DType.UINT64})
BOUNDS = frozenset({"Clip", "Max", "Min", "Slice"})  # operators of which a far bound is none


def has_open_axes(call: Call) -> bool:
    """Whether the axes of a Squeeze depend on sizes."""
    return call.operand(1) is None and not call.x.is_static


def has_open_shape(call: Call) -> bool:
    """Whether constants are given a shape that is computed."""
    shape = call.operand(1)
    is_open = shape is not None and shape.tensor is None and None in (shape.shape_data or (None,))
    return call.x.tensor is not None and is_open


def has_open_pads(call: Call) -> bool:
    """Whether ``auto_pad`` or ``output_shape`` make no pads of numbers."""
    is_open = str(call.attrs.get("auto_pad", "NOTSET")).startswith("SAME")
    return is_open or "output_shape" in call.attrs


def find_beyond(call: Call) -> bool | str:
    """The constant that does not fit in 32 bits."""
    if call.op in BOUNDS:
        return False
    return next((repr(v.name) for v in call.inputs if v is not None and _is_beyond(v)), False)


def _is_beyond(value: Value) -> bool:
    if value.tensor is None or value.dtype not in WIDE or not value.tensor.size:
        return False
    array = value.array()
    return bool(array.max() > INT32.max or array.min() < INT32.min)


OPEN_AXES = Form(
    "axes that depend on sizes by name", has_open_axes, advice=f"{STATIC}, or list the axes"
)
OPEN_SHAPE = Form("a constant and a computed shape", has_open_shape, advice=STATIC)
OPEN_PADS = Form(
    "pads that depend on sizes by name, or are negative", has_open_pads,
    advice=f"{STATIC}, or list them in 'pads'",
)  # fmt: skip
# Consumers lose how many boxes are selected.
SUPPRESSED = Form(
    "constant boxes and scores", lambda call: all(v and v.tensor for v in call.inputs[:2]),
    advice="Make the boxes an input",
)  # fmt: skip
BEYOND_INT32 = Form(
    "64-bit constants, computed in 32 bits, that do not fit in these", find_beyond,
    advice="Use constants within 32 bits",
)  # fmt: skip
NO_ELEMENTS = Form(
    "tensors without elements",
    lambda call: any(0 in (v.shape or ()) for v in call.values),
    advice="Leave them out of the model",
)
