"""Forms of operators that several consumers lack, as checks of a node."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType, Node, Value
from serde.legalize.target import IllegalForm
from serde.spec import schema

INT32 = np.iinfo(np.int32)
WIDE = frozenset({DType.INT64, DType.UINT64})
BOUNDS = frozenset({"Clip", "Max", "Min", "Slice"})  # operators of which a far bound is none


def require_constants(who: str, *places: int) -> IllegalForm:
    """A check of the operands at these places: the consumer takes constants only."""

    def check(node: Node) -> str | None:
        operands = [(i, node.inputs[i]) for i in places if i < len(node.inputs)]
        at = next((i for i, v in operands if v is not None and v.tensor is None), None)
        if at is None:
            return None
        return f"{who} takes constant {schema.operator(node.op).input(at).name!r} only"

    return check


def require_known_axes(who: str) -> IllegalForm:
    """A check of Squeeze: the consumer takes no rank that depends on sizes."""

    def check(node: Node) -> str | None:
        x, axes = (*node.inputs, None)[:2]
        if axes is not None or (x is not None and x.is_static):
            return None
        return f"{who} squeezes axes of static sizes, or those in 'axes', only"

    return check


def require_known_shape(who: str) -> IllegalForm:
    """A check of Reshape: the consumer gives constants no shape that is computed."""

    def check(node: Node) -> str | None:
        x, shape = node.inputs[:2]
        is_held = x is not None and x.tensor is not None
        is_open = (
            shape is not None and shape.tensor is None and None in (shape.shape_data or (None,))
        )
        return (
            f"{who} has no Reshape of constants to a computed shape"
            if is_held and is_open
            else None
        )

    return check


def check_transposed_pads(node: Node) -> str | None:
    """ConvTranspose: ``auto_pad`` or ``output_shape`` that make no pads of numbers."""
    is_open = str(node.attrs.get("auto_pad", "NOTSET")).startswith("SAME")
    if not is_open and "output_shape" not in node.attrs:
        return None
    return "pads that depend on sizes by name, or are negative: give numbers in 'pads'"


def check_suppressed(who: str) -> IllegalForm:
    """A check of NonMaxSuppression: the consumer loses how many boxes it selects of constants."""

    def check(node: Node) -> str | None:
        is_held = all(v is not None and v.tensor is not None for v in node.inputs[:2])
        return f"{who} has no NonMaxSuppression of constants" if is_held else None

    return check


def require_int32(who: str) -> IllegalForm:
    """A check of the constants of any node: the consumer computes 64-bit integers in 32 bits."""

    def check(node: Node) -> str | None:
        wide = next((v for v in node.inputs if v is not None and _is_beyond(v)), None)
        if wide is None or node.op in BOUNDS:
            return None
        return f"{who} computes {wide.type.value} in 32 bits, which {wide.name!r} does not fit in"

    return check


def _is_beyond(value: Value) -> bool:
    if value.tensor is None or value.dtype not in WIDE or not value.tensor.size:
        return False
    array = value.array()
    return bool(array.max() > INT32.max or array.min() < INT32.min)
