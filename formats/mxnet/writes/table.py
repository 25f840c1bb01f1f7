"""The table of rules from the IR to MXNet, and what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serde import schema
from serde.builder import Builder
from serde.errors import require
from serde.geometry import Ints
from serde.graph import DType, Graph, Shape, Tensor, Value
from serde.rules import RuleTable


def _defaults(op: str) -> Mapping[str, Any]:
    found = schema.find(op)
    return {} if found is None else found.defaults


writes = RuleTable("ir → mxnet", defaults=_defaults)
# Element types MXNet's legacy operators compute with.
TYPES = frozenset(
    {DType.FLOAT16, DType.FLOAT32, DType.FLOAT64, DType.INT8, DType.INT32, DType.INT64, DType.UINT8}
)


class SymbolBuilder(Builder):
    """Grows a symbol: ``s.Activation(x, act_type="tanh")``, ``s["_plus_scalar"](x, scalar=1)``."""

    domain = "mxnet"
    identity = "_copy"

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        wrap: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare an input; truth values are numbers inside."""
        self._refuse(name, dtype, shape)
        declared = super().input(name, dtype, shape, wrap)
        if dtype is not DType.BOOL:
            return declared
        inside = self.Cast(declared, dtype="float32")
        inside.dtype, inside.shape = dtype, shape
        return inside  # type: ignore[no-any-return]

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over; truth values become numbers."""
        self._refuse(constant.name, constant.dtype, constant.shape or (1,))
        adopted = super().adopt(constant)
        if adopted.dtype is DType.BOOL:
            numbers = Tensor.of(adopted.array().astype(np.float32))
            adopted = Value(adopted.name, DType.BOOL, numbers.shape, numbers)
        return adopted

    def build(self, outputs: Sequence[Value], **fields: Any) -> Graph:
        """The symbol grown so far; truth values come out as such."""
        made = []
        several = {v for node in self.nodes if len(node.outputs) > 1 for v in node.outputs}
        for value in outputs:
            self._refuse(value.name, value.dtype, value.shape)
            if value in several:  # MXNet names such outputs itself
                value = self._named(value, self["_copy"](value), value.dtype)
            if value.dtype is DType.BOOL:
                value = self._named(value, self.Cast(value, dtype="bool"), DType.BOOL)
            made.append(value)
        return super().build(made, **fields)

    def _named(self, old: Value, new: Value, dtype: DType | None) -> Value:
        """``new`` with the name and type of ``old``, which it stands for."""
        name, old.name = old.name, self.names.fresh(f"{old.name}/inside")
        new.name, new.dtype, new.shape = name, dtype, old.shape
        return new

    def _refuse(self, name: str, dtype: DType | None, shape: Shape | None) -> None:
        known = dtype is None or dtype is DType.BOOL or dtype in TYPES
        require(known, f"{name!r} holds {dtype and dtype.value}, which MXNet does not compute with")
        require(shape != (), f"{name!r} has no axes, and MXNet's tensors have at least one")
        require(0 not in (shape or ()), f"{name!r} has no elements, and MXNet's tensors have some")


def number(value: Value | None) -> float | None:
    """The one number a constant holds, None for anything else."""
    if value is None or value.tensor is None or value.tensor.size != 1:
        return None
    found = value.array().reshape(-1)[0]
    return int(found) if value.type.kind in "iub" else float(found)


def symmetric(pads: Ints) -> Ints:
    """Pads at the beginnings, which are those at the ends."""
    half = len(pads) // 2
    require(pads[:half] == pads[half:], f"pads {pads} differ at the two ends")
    return pads[:half]
