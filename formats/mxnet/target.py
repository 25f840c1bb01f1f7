"""The tables of rules from the IR to MXNet, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from serde.errors import ConversionError, require
from serde.ir.builder import Builder, Operand
from serde.ir.geometry import Ints
from serde.ir.graph import DType, Graph, Node, Shape, Tensor, Value
from serde.legalize.target import legalization_table
from serde.rewrite import custom_ops
from serde.rewrite.rules import RuleTable
from serde.spec import schema

if TYPE_CHECKING:
    from .releases import Release

EXACT = 1 << 53  # integers up to this are floats of 64 bits
# Element types MXNet's legacy operators compute with.
TYPES = frozenset(
    {DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.INT32, DType.INT64, DType.UINT8}
)
# Operators with a number beside the tensor: those of two tensors, and whether it is on the left.
OF_TWO = {
    "_plus_scalar": ("broadcast_add", False),
    "_div_scalar": ("broadcast_div", False),
    "_rdiv_scalar": ("broadcast_div", True),
    "_maximum_scalar": ("broadcast_maximum", False),
    "_minimum_scalar": ("broadcast_minimum", False),
    "_mul_scalar": ("broadcast_mul", False),
    "_power_scalar": ("broadcast_power", False),
    "_rpower_scalar": ("broadcast_power", True),
    "_minus_scalar": ("broadcast_sub", False),
    "_rminus_scalar": ("broadcast_sub", True),
    "_mod_scalar": ("broadcast_mod", False),
    "_not_equal_scalar": ("broadcast_not_equal", False),
}
# Operators that oneDNN of MXNet 2.0 computes in a layout of its own: where the operands' shapes
# differ, what reads the result fails (``!is_view``). A Reshape gives it the plain layout.
BLOCKED = frozenset({"broadcast_add", "broadcast_div", "broadcast_mul", "broadcast_sub"})


def illegal_reason(value: Value) -> str | None:
    """Why MXNet cannot hold a value, None if it can. Booleans are numbers inside."""
    if value.container:
        return f"a {' of '.join(value.container)}, and MXNet has tensors only"
    if value.dtype not in TYPES and value.dtype not in (None, DType.BOOL):
        elements = f"{value.dtype.value} elements, which MXNet does not compute with"
        return f"{elements}. Have the model take and give float32 or int32"
    if 0 in (value.shape or ()):
        return "a tensor without elements, and MXNet's have some"
    return None


class Writes(RuleTable):
    """Rules to MXNet, asked of nodes whose outputs MXNet can hold."""

    def apply(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        """Run the rule of one node."""
        if (error := self.diagnostic(node)) is not None:
            raise error
        if (reason := _illegal_output_reason(node)) is not None:
            raise ConversionError(reason)
        if (error := _foreign_reason(node)) is not None:
            raise error
        mark = len(builder.nodes)
        results = super().apply(node, builder, inputs)
        for value in (v for n in builder.nodes[mark:] for v in n.inputs):
            if value is not None and value.tensor is not None and (reason := illegal_reason(value)):
                raise ConversionError(reason)
        return results

    def refusal(self, node: Node) -> ConversionError | None:
        """Why ``node`` cannot be converted, as far as is known without its inputs."""
        if (reason := _illegal_output_reason(node)) is not None:
            return ConversionError(reason)
        return _foreign_reason(node) or super().refusal(node)


def _foreign_reason(node: Node) -> ConversionError | None:
    """Why a node of another domain than the standard's and MXNet's own is refused."""
    return custom_ops.refuse(node, "MXNet") if node.domain not in ("", "mxnet") else None


def _illegal_output_reason(node: Node) -> str | None:
    """Why MXNet cannot hold what a node gives."""
    return next((r for v in node.outputs if v.name and (r := illegal_reason(v))), None)


writes = Writes("ir → mxnet", defaults=schema.defaults_of)
# Operators MXNet lacks, or has in part, as operators of the IR that it has. A rule that returns
# None leaves the operator as it is.
legalizations = legalization_table("ir → mxnet")


class SymbolBuilder(Builder):
    """Grows a symbol: ``s.Activation(x, act_type="tanh")``, ``s["_plus_scalar"](x, scalar=1)``."""

    domain = "mxnet"
    identity = "_copy"

    def __init__(
        self, name: str, opset: int = 0, outer: Builder | None = None,
        written: Release | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, opset, outer)
        around = outer if isinstance(outer, SymbolBuilder) else None
        self.is_inner = outer is not None
        if written is None and around is None:
            from .releases import get_release

            written = get_release(None)
        self.release: Release = written or around.release  # type: ignore[union-attr]

    def emit(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Append a node, if the release has its operator and attributes."""
        if (reason := self.release.missing_reason(op, attrs)) is not None:
            raise ConversionError(reason)
        if op in OF_TWO and not self._holds(attrs["scalar"], inputs[0].dtype):
            both, is_left = OF_TWO[op]
            scalar = self.const(np.array([attrs["scalar"]]), inputs[0].type)
            return self[both](*((scalar, inputs[0]) if is_left else (inputs[0], scalar)))
        if op in BLOCKED and self.release.has_np_shape:
            inputs = [self._in_plain_layout(v, inputs) for v in inputs]
        return super().emit(op, inputs, attrs, outputs)

    def _in_plain_layout(self, value: Operand, operands: Sequence[Operand]) -> Operand:
        """An operand in the plain layout, where it may be in another one and is broadcast."""
        shapes = [v.shape if isinstance(v, Value) else () for v in operands]
        is_same = None not in shapes and shapes[0] == shapes[1]
        if is_same or not isinstance(value, Value) or value.tensor is not None:
            return value
        if value in self.inputs or (value.shape is not None and len(value.shape) < 3):
            return value
        result = self.Reshape(value, shape=(-2,))  # all axes as they are
        result.dtype, result.shape = value.dtype, value.shape
        return result  # type: ignore[no-any-return]

    def _holds(self, scalar: float, dtype: DType | None) -> bool:
        """Whether a number beside a tensor of that type is what the release computes with."""
        narrow = (DType.FLOAT16, DType.FLOAT32, DType.BOOL)
        return self.release.has_doubles or dtype in narrow or float(np.float32(scalar)) == scalar

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        wrap: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare an input; booleans are numbers inside."""
        declared = super().input(name, dtype, shape, wrap)
        if dtype is not DType.BOOL or self.is_inner:
            return declared
        inside = self.Cast(declared, dtype="float32")
        inside.dtype, inside.shape = dtype, shape
        return inside  # type: ignore[no-any-return]

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over; booleans become numbers."""
        adopted = super().adopt(constant)
        if adopted.dtype is DType.BOOL:
            numbers = Tensor.of(adopted.array().astype(np.float32))
            adopted = Value(adopted.name, DType.BOOL, numbers.shape, numbers)
        return adopted

    def build(self, outputs: Sequence[Value], **fields: Any) -> Graph:
        """The symbol grown so far; booleans come out as such."""
        results = []
        several = {v for node in self.nodes if len(node.outputs) > 1 for v in node.outputs}
        for value in outputs:
            if value in several:  # MXNet names such outputs itself
                value = self._name_like(value, self["_copy"](value), value.dtype)
            if value.dtype is DType.BOOL and not self.is_inner and self.release.has_bool:
                value = self._name_like(value, self.Cast(value, dtype="bool"), DType.BOOL)
            results.append(value)
        return super().build(results, **fields)

    def _name_like(self, old: Value, new: Value, dtype: DType | None) -> Value:
        """``new`` with the name and type of ``old``, which it stands for."""
        name, old.name = old.name, self.names.fresh(f"{old.name}/inside")
        new.name, new.dtype, new.shape = name, dtype, old.shape
        return new


def storage_type_name(dtype: DType) -> str:
    """The element type MXNet computes with for one of the IR."""
    return "float32" if dtype is DType.BOOL else dtype.value


def scalar_value(value: Value | None) -> float | None:
    """The one number a constant holds; None for anything else, and where 64-bit floats lack it.

    MXNet's attributes are such floats.
    """
    if value is None or value.tensor is None or value.tensor.size != 1:
        return None
    number = value.array().reshape(-1)[0]
    if value.type.kind in "iub":
        return int(number) if abs(int(number)) <= EXACT else None
    return float(number)


def require_symmetric_pads(pads: Ints) -> Ints:
    """Pads at the beginnings, which are those at the ends."""
    half = len(pads) // 2
    require(pads[:half] == pads[half:], f"pads {pads} differ at the two ends")
    return pads[:half]
