"""The tables of rules from the IR to Relay, the builder they emit with, and what they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from serde.errors import require
from serde.ir.builder import Builder
from serde.ir.builder import set_type as set_type
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Shape, Value
from serde.legalize.target import legalization_table
from serde.rewrite.writer_table import WriterTable
from serde.spec.traits import SEQUENCES

DOMAIN = "relay"  # of nodes that legalizations leave for a rule of their own

DYNAMIC_SEQUENCE = (
    "Relay has no sequences: the tensors in one are followed where its length and the positions "
    "are constant, and they are not, or it is an input or output. Give static shapes "
    "(--input)"
)
writes = WriterTable(
    "ir → relay", "Relay", ("", DOMAIN), dict.fromkeys(SEQUENCES, DYNAMIC_SEQUENCE)
)
# Operators Relay has not, or not in such a form, as operators of the IR that it has. A rule that
# returns None leaves the operator as it is.
legalizations = legalization_table("ir → relay")
# Element types Relay's operators compute with; TVM declares more than it has kernels for.
INLINED = frozenset(  # types of which TVM writes constants without axes into its code
    {DType.INT32, DType.INT64, DType.FLOAT32, DType.FLOAT64, DType.BOOL}
)
TYPES = frozenset(
    {DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.BOOL}
    | {DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


class CallBuilder(Builder):
    """Grows a graph of Relay calls: ``r.nn.relu(x)``, ``r.cast(x, dtype="int32")``.

    An operator that takes a tuple has its fields as operands; ``encode.py`` groups them.
    """

    domain = "relay"
    identity = "copy"

    def __init__(self, name: str, opset: int = 0, outer: Builder | None = None) -> None:
        super().__init__(name, opset, outer)
        self.inside = outer is not None
        self.adopted: set[Value] = outer.adopted if isinstance(outer, CallBuilder) else set()

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        wrap: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare an input; those of subgraphs are checked here, others by ``illegal_reason``."""
        declared = super().input(name, dtype, shape, wrap)
        if self.inside:
            reason = illegal_reason(declared)
            require(reason is None, reason or "")
        return declared

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over; the second time it is the one that is there."""
        reason = illegal_reason(constant)
        require(reason is None, reason or "")
        if constant in self.adopted and constant.name in self.names.used:
            return constant
        value = super().adopt(constant)
        if value is constant:
            self.adopted.add(value)
        return value


def illegal_reason(value: Value) -> str | None:
    """Why Relay has no such tensor: of what it is made, or what is not known of it."""
    if value.container:
        return f"{value.name!r} is {' of '.join(value.container)}, which Relay has no type for"
    if value.dtype not in TYPES:
        described = {None: "elements of unknown type", DType.STRING: "strings"}
        shown = described.get(value.dtype) or f"elements of {value.dtype.value}"  # type: ignore[union-attr]
        return f"{value.name!r} holds {shown}, which Relay does not compute with"
    return f"{value.name!r} is of unknown rank: give its shape" if value.shape is None else None


def emit_scalar(r: CallBuilder, number: Any, dtype: DType | None) -> Value:
    """A constant of no axes."""
    return r.const(np.array(number), dtype)


def emit_cast(r: CallBuilder, x: Value, dtype: DType) -> Value:
    """``x`` as elements of another type; a boolean is what is not zero."""
    if x.dtype is dtype:
        return x
    if dtype is DType.BOOL:
        return set_type(r.not_equal(x, emit_scalar(r, 0, x.type)), dtype, x.shape)
    return set_type(r.cast(x, dtype=dtype.value), dtype, x.shape)


def lift_scalars(r: CallBuilder, *values: Value) -> list[Value]:
    """Operands of which computed ones without axes get one, where others are of dynamic sizes.

    TVM 0.17 fails on a computed number in the function for the shape of an open result, and what
    is fused into that function as well; and on a constant of a type that it does not inline.
    """
    if all(v.is_static for v in values) or not max(v.rank for v in values):
        return list(values)
    return [_lift_scalar(r, v) if v.shape == () else v for v in values]


def _lift_scalar(r: CallBuilder, value: Value) -> Value:
    lifted: Value = value
    if value.tensor is None:
        lifted = r.annotation.stop_fusion(r.reshape(value, newshape=(1,)))
    elif value.dtype not in INLINED:
        lifted = r.const(value.array().reshape(1), value.dtype)
    return lifted


def format_pads(pads: Ints) -> Ints:
    """Pads as Relay spells them: those at the beginnings, where those at the ends are the same."""
    begin, end = halves(pads)
    return begin if begin == end else pads


def halves(pads: Ints) -> tuple[Ints, Ints]:
    """Pads at the beginnings and at the ends."""
    half = len(pads) // 2
    return pads[:half], pads[half:]


def dims_or(x: Value, what: str) -> tuple[int, ...]:
    """The static sizes of ``x``, or a refusal that names what needs them."""
    require(x.is_static, f"{what} of dynamic size")
    return x.static_shape
