"""A builder for operators of any opset: version adapters take them to that of a target.

A version adapter emits its own operator in an older form, which goes on downwards; any other
operator it emits starts anew. Below the version that introduced an operator, the adapter is its
decomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from serde.errors import ConversionError, UnsupportedAttribute
from serde.ir.builder import Builder, Operand, normalize_attribute
from serde.ir.graph import IR_OPSET, DType, Value
from serde.rewrite.rules import RuleTable
from serde.spec import canonicalize, inference, schema
from serde.spec.onnx_builder import OnnxBuilder, TypedCall
from serde.version_converter.adapters import downgrades
from serde.version_converter.element_types import (
    UNINFERRED,
    are_allowed,
    promote_types,
    require_results,
    supports_types,
)

from .adapters import drop_neutral, next_change, with_outputs
from .target import Target

MAX_DEPTH = 96  # rules applied to what rules emitted


class VersionedBuilder(OnnxBuilder):
    """Emits operators of opset ``opset``, and takes them to the opset of a target."""

    def __init__(
        self, name: str, target: Target, outer: Builder | None = None, opset: int = IR_OPSET
    ) -> None:
        super().__init__(name, target.opset, outer)
        self.target = target
        self._start = self._current_opset = opset
        self._adapting = ""  # the operator whose version adapter is running
        self._depth = 0

    @property
    def current_opset(self) -> int:
        """The opset whose operators can be emitted now."""
        return self._current_opset

    @contextmanager
    def at_opset(self, opset: int) -> Iterator[None]:
        """Emit operators of opset ``opset`` within the block."""
        before, self._current_opset = self._current_opset, opset
        try:
            yield
        finally:
            self._current_opset = before

    @contextmanager
    def _apply_at(self, opset: int, adapting: str = "") -> Iterator[None]:
        """Run a rule that emits operators of opset ``opset``."""
        if self._depth >= MAX_DEPTH:
            raise ConversionError("its legalization does not end")
        before = self._current_opset, self._adapting
        self._current_opset, self._adapting, self._depth = opset, adapting, self._depth + 1
        try:
            yield
        finally:
            (self._current_opset, self._adapting), self._depth = before, self._depth - 1

    def decompose(
        self, op: str, version: int, *inputs: Value | None, outputs: int = 1, **attrs: Any
    ) -> Any:
        """What the version adapter below ``version`` makes of an operator in its form there."""
        rule = downgrades[version].rules[op]
        return rule.function(self, *inputs, **with_outputs(rule, attrs, outputs))

    def _goes_down(self, op: str) -> bool:
        """Whether an operator needs no form of the IR on its way to the target."""
        if self._adapting == op or (self.target.is_standard and self._current_opset >= self.opset):
            return True
        return self._current_opset < IR_OPSET and self.target.lowest_opset(op) < min(
            self._current_opset, self.opset
        )

    def _adapts(self, op: str) -> bool:
        """Whether versions differ in an operator, from the present opset over the IR's down."""
        pairs = (self._current_opset, IR_OPSET), (IR_OPSET, self.target.lowest_opset(op))
        return any(next_change(op, first, last) is not None for first, last in pairs)

    def _downgrade(self, call: TypedCall) -> Any:
        """Take a legalized call of the IR to the target's opset."""
        version = next_change(call.op, IR_OPSET, self.target.lowest_opset(call.op))
        if version is not None:
            args = call.op, call.inputs, call.attrs, len(call.types)
            return self._adapt(downgrades[version], version - 1, *args)
        if self._is_standard(call):
            return self.append(call)
        return self._downgrade_older(call.op, call.inputs, call.attrs, len(call.types))

    def _downgrade_older(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        lowest = self.target.lowest_opset(op)
        version = (
            next_change(op, self._current_opset, lowest) if lowest < self._current_opset else None
        )
        if version is not None:
            operator = schema.operator(op, self._current_opset)
            operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
            args = op, operands, attrs, outputs
            if operands and all(v is None or v.tensor is not None for v in operands):
                value = self.resolve(*args)  # fold before an adapter decomposes it
                if not isinstance(value, TypedCall):
                    return value
            return self._adapt(downgrades[version], version - 1, *args)
        before, self._current_opset = self._current_opset, self.opset
        try:
            operator = schema.operator(op, self.opset)
            operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
            require_results(operator, attrs)
            attrs = self._known_attrs(operator, attrs)
            promoted = promote_types(operator, operands)
            if promoted:
                call = TypedCall(operator, tuple(operands), attrs, [None] * outputs)
                return self._promote(call, promoted, self._downgrade_older)
            call = self.resolve(op, operands, attrs, outputs)
            if not isinstance(call, TypedCall):
                return call
            if (op, operator.since) in UNINFERRED:
                types = inference.infer(schema.operator(op), IR_OPSET, call.inputs, {}, 1)
                call = call._replace(types=types)
            result = self.append(call)
            require_results(operator, {}, result if isinstance(result, tuple) else (result,))
            return result
        finally:
            self._current_opset = before

    def _known_attrs(
        self, operator: schema.Operator, attrs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Drop attributes the target lacks where they have the value of no effect."""
        if attrs.keys() <= operator.attributes:
            return attrs
        source = schema.find(operator.name, self._start)
        in_source = source is None or attrs.keys() <= source.attributes
        newest, lacking = max(self._start, self.opset), self.opset if in_source else self._start
        return drop_neutral(operator, attrs, newest, lacking)

    def _is_standard(self, call: TypedCall) -> bool:
        """Whether a call of the IR is, as it stands, one of the target's opset."""
        operator = schema.find(call.op, self.opset)
        if operator is None or not call.attrs.keys() <= operator.attributes:
            return False
        results = tuple([t and (t.dtype, t.container) for t in call.types])
        is_allowed = are_allowed(operator.name, operator.since, "outputs", results)
        return is_allowed and supports_types(operator, "inputs", call.inputs)

    def _adapt(
        self, table: RuleTable, opset: int, op: str, inputs: Sequence[Operand],
        attrs: Mapping[str, Any], outputs: int,
    ) -> Any:  # fmt: skip
        """Apply the version adapter of an operator, which emits operators of opset ``opset``."""
        rule, upwards = table.rules[op], opset > self._current_opset
        operator = schema.operator(op, self._current_opset)
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        operands = canonicalize.canonicalize_operands(self, op, operands)
        attributes = {k: normalize_attribute(v) for k, v in attrs.items() if v is not None}
        if unknown := sorted(attributes.keys() - operator.attributes):
            raise UnsupportedAttribute(f"{op} has no attribute {', '.join(unknown)}")
        full = canonicalize.complete_attributes(operator, tuple(operands), attributes)
        spoken = schema.find(op, opset - 1 if upwards else opset + 1) or operator
        bound = table.bind(rule, op, self._known_attrs(spoken, full))
        with self._apply_at(opset, "" if upwards else op):
            result = rule.function(self, *operands, **with_outputs(rule, bound, outputs))
        return result[0] if outputs == 1 and isinstance(result, tuple) else result

    def _promote(
        self, call: TypedCall, promoted: Mapping[str, DType], emit: Callable[..., Any]
    ) -> Any:
        """Emit a call with operands cast to wider types and results cast back."""
        operator, original = call.operator, dict[str, DType]()
        operands = list(call.inputs)
        for index, value in enumerate(operands):
            tie = operator.input(index).tie
            if value is not None and tie in promoted:
                original.setdefault(tie, value.type)
                operands[index] = self._cast(value, promoted[tie])
        result = emit(call.op, operands, call.attrs, len(call.types))
        results = result if isinstance(result, tuple) else (result,)
        last = len(operator.outputs) - 1
        ties = [operator.outputs[min(i, last)].tie for i in range(len(results))]
        back = [
            v if v is None or tie not in promoted else self._cast(v, original[tie])
            for v, tie in zip(results, ties, strict=True)
        ]
        return tuple(back) if isinstance(result, tuple) else back[0]

    def _cast(self, value: Value, dtype: DType) -> Value:
        if value.dtype is dtype:
            return value
        with self._apply_at(IR_OPSET):
            return self.Cast(value, to=schema.ELEMENT_CODES[dtype])  # type: ignore[no-any-return]
