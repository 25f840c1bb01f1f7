"""The table of rules from the IR to Relay, the builder they emit with, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serde import schema
from serde.builder import Builder
from serde.errors import ConversionError, UnsupportedOp, require
from serde.geometry import Ints
from serde.graph import DType, Graph, Node, Shape, Value
from serde.rules import RuleTable


def _defaults(op: str) -> Mapping[str, Any]:
    found = schema.find(op)
    return {} if found is None else found.defaults


REFUSED = "refused: "  # begins the domain of a node no way was found for; the reason follows


class _Writes(RuleTable):
    """Passes on why a node could not be recast, so that all refusals come at once."""

    def apply(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        if (error := self.refusal(node)) is not None:
            raise error
        return super().apply(node, builder, inputs)

    def refusal(self, node: Node) -> ConversionError | None:
        if node.domain.startswith(REFUSED):
            return ConversionError(node.domain.removeprefix(REFUSED))
        if node.domain:
            return UnsupportedOp(f"Relay has no operators of the domain {node.domain!r}")
        return super().refusal(node)


writes = _Writes("ir → relay", defaults=_defaults)
# Element types Relay's operators compute with; TVM declares more than it has kernels for.
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

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        wrap: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare an input, which Relay wants to know the rank and the element type of."""
        require(not wrap, f"{name!r} is a {' of '.join(wrap)}, which Relay has no type for")
        require(shape is not None, f"{name!r} is of unknown rank: give its shape")
        refuse_type(name, dtype)
        return super().input(name, dtype, shape)

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over."""
        refuse_type(constant.name, constant.dtype)
        return super().adopt(constant)

    def build(self, outputs: Sequence[Value], **fields: Any) -> Graph:
        """The graph of calls grown so far."""
        for value in outputs:
            require(not value.wrap, f"{value.name!r} is a {' of '.join(value.wrap)}")
            if value.dtype is not None:
                refuse_type(value.name, value.dtype)
        return super().build(outputs, **fields)


def refuse_type(name: str, dtype: DType | None) -> None:
    """Refuse elements that TVM computes nothing with."""
    shown = "elements of unknown type" if dtype is None else dtype.value
    shown = "strings" if dtype is DType.STRING else shown
    require(dtype in TYPES, f"{name!r} holds {shown}, which Relay does not compute with")


def typed(value: Value, dtype: DType | None, shape: Shape | None) -> Value:
    """``value``, made inside a rule, with its type told to what reads it."""
    value.dtype, value.shape = dtype, shape
    return value


def number(value: Value | None) -> int | float | None:
    """The one number a constant holds, None for anything else."""
    if value is None or value.tensor is None or value.tensor.size != 1:
        return None
    return value.array().reshape(-1)[0].item()  # type: ignore[no-any-return]


def scalar(r: CallBuilder, number: Any, dtype: DType | None) -> Value:
    """A constant of no axes."""
    return r.const(np.array(number), dtype)


def cast(r: CallBuilder, x: Value, dtype: DType) -> Value:
    """``x`` as elements of another type; a truth value is what is not zero."""
    if x.dtype is dtype:
        return x
    if dtype is DType.BOOL:
        return typed(r.not_equal(x, scalar(r, 0, x.type)), dtype, x.shape)
    return typed(r.cast(x, dtype=dtype.value), dtype, x.shape)


def windowed(pads: Ints) -> Ints:
    """Pads as Relay spells them: those at the beginnings, where those at the ends are the same."""
    begin, end = halves(pads)
    return begin if begin == end else pads


def halves(pads: Ints) -> tuple[Ints, Ints]:
    """Pads at the beginnings and at the ends."""
    half = len(pads) // 2
    return pads[:half], pads[half:]


def dims_or(x: Value, what: str) -> tuple[int, ...]:
    """The static sizes of ``x``, or a refusal that names what needs them."""
    require(x.is_static, f"{what} of a size that only the run tells")
    return x.dims
