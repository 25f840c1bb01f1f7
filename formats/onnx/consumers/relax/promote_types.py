"""The builder for Relax: operators in types the importer gets right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serde.ir.builder import Operand
from serde.ir.graph import DType, Node, Value
from serde.legalize.recasting import Recasting
from serde.spec import schema
from serde.version_converter.element_types import WIDER, WIDTH_MATTERS

from .support_table import TAKEN
from .target import recasts


class RelaxRecasting(Recasting):
    """Emits operators of the IR as those the importer takes, of types it takes them with."""

    table = recasts

    def _settle(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        operator = schema.operator(op)
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        wider = _wider(operator, operands)
        if not wider:
            return super()._settle(op, operands, attrs, outputs)
        cast = [self._as(v, wider.get(operator.input(i).tie)) for i, v in enumerate(operands)]
        made = self.emit(op, cast, attrs, outputs)
        results = made if isinstance(made, tuple) else (made,)
        back = tuple(
            self._as(v, _given(operator, operands, i) if _tie(operator, i) in wider else None)
            for i, v in enumerate(results)
        )
        return back if isinstance(made, tuple) else back[0]

    def stays(self, node: Node, inputs: Sequence[Value | None]) -> bool:
        """Whether the importer gets a node of an operator without a rule right as it is."""
        return not _wider(schema.operator(node.op), inputs)

    def _as(self, value: Value | None, dtype: DType | None) -> Value | None:
        if value is None or dtype is None or value.dtype is dtype:
            return value
        return self.Cast(value, to=schema.ELEMENT_CODES[dtype])  # type: ignore[no-any-return]


def _tie(operator: schema.Operator, index: int) -> str:
    return operator.outputs[min(index, len(operator.outputs) - 1)].tie


def _given(operator: schema.Operator, operands: Sequence[Value | None], index: int) -> DType | None:
    """The type of the operands an output has its type from."""
    tie = _tie(operator, index)
    tied = (v.dtype for i, v in enumerate(operands) if v and operator.input(i).tie == tie)
    return next(tied, None)


def _wider(operator: schema.Operator, operands: Sequence[Value | None]) -> dict[str, DType]:
    """A wider type for each type variable with which the importer gets the operator wrong."""
    right = TAKEN.get(operator.name)
    if right is None or operator.name in WIDTH_MATTERS:
        return {}
    found: dict[str, DType] = {}
    for i, v in enumerate(operands):
        tie = operator.input(i).tie
        if v is None or v.dtype is None or v.wrap or v.dtype in right.get(tie, (v.dtype,)):
            continue
        wide = next((d for d in WIDER.get(v.dtype, ()) if d in right[tie]), None)
        if wide is not None and v.dtype is not DType.BOOL:
            found[tie] = wide
    return found
