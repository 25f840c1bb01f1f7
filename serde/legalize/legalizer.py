"""The one builder that makes operators legal for a target.

Every operator, whether it comes from the graph, from a legalization, a version adapter or a
decomposition, passes ``Legalizer.emit``. In this order:

1. scalarize  sequences of known contents stand for the tensors in them, where the target has none
2. emulate    operands whose element type the target lacks stand in a wider one
3. upgrade    an operator of an older opset becomes one of the IR's
4. resolve    canonical form, simplification, type inference, constant folding
5. promote    operands of an element type the target's operator lacks are cast, results cast back
6. legalize   the target's own rule, if it has one and the rule does not return None
7. downgrade  version adapters to the target's opset, or below the version that introduced the
              operator where the target lacks it: that adapter is its decomposition

Only steps 3 and 7 work on other opsets than the IR's: ``routes`` tells the way of an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from serde.errors import ConversionError, Problem, Unconvertible, UnsupportedAttribute
from serde.ir.builder import Builder, Operand, normalize_attribute
from serde.ir.graph import IR_OPSET, DType, Graph, Node, Shape, Value
from serde.rewrite.custom_ops import Readers
from serde.rewrite.functions import emit_subgraph
from serde.rewrite.subgraphs import Body
from serde.spec import canonicalize, inference, schema
from serde.spec.memo import AttributeNumbers
from serde.spec.onnx_builder import OnnxBuilder, TypedCall
from serde.version_converter.adapters import downgrades
from serde.version_converter.element_types import (
    UNINFERRED,
    are_allowed,
    promote_types,
    require_results,
    supports_types,
)

from . import emulate_types, scalarize_sequences
from .emulate_types import EmulatedTypes
from .routes import Step, Way, drop_neutral, next_step, with_outputs
from .target import IR, Target

NO_READERS = Readers()
MAX_DEPTH = 96  # rules applied to what rules emitted


class Legalizer(OnnxBuilder):
    """Emits operators of the IR, or of any opset, in forms that a target accepts.

    ``readers`` are for operators of other domains. ``diagnostics`` tell why a value's node could
    not be made legal and was kept.
    """

    def __init__(
        self, name: str, target: Target, outer: Builder | None = None, opset: int = IR_OPSET,
        readers: Readers = NO_READERS,
    ) -> None:  # fmt: skip
        super().__init__(name, target.opset, outer)
        self.target = target
        self.keeps_weights = self.keeps_weights or target.keeps_weights
        self.for_training = self.for_training or target is not IR  # what the IR holds is meant
        self._start = self._current_opset = opset
        self._adapting = ""  # the operator whose version adapter is running
        self._depth = 0
        around = outer if isinstance(outer, Legalizer) else None
        self.readers = readers
        self.diagnostics: dict[Value, str] = {} if around is None else around.diagnostics
        emulated_types = EmulatedTypes(target.opset, target.emulated)
        self.emulated_types: EmulatedTypes = (
            emulated_types if around is None else around.emulated_types
        )
        self.known_sequences: dict[Value, scalarize_sequences.KnownSequence] = (
            {} if around is None else around.known_sequences
        )
        self.decisions: dict[Any, Any] = {} if around is None else around.decisions
        numbers = AttributeNumbers() if around is None else around.number_attributes
        self.number_attributes: AttributeNumbers = numbers
        self.scalarizes = not target.sequences
        self.resolving = self.scalarizes or target.opset < min(opset, scalarize_sequences.OPTIONALS)

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

    # Emitting an operator

    def emit(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Emit an operator of the present opset in a form that is legal for the target."""
        if self.resolving:
            result = scalarize_sequences.resolve_sequence_operator(self, op, inputs, attrs, outputs)
            if result is not None:
                return result
            if self.known_sequences:
                inputs = [self._materialize(v) for v in inputs]
        return self.node(op, inputs, attrs, outputs)

    def node(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Emit an operator whose operands are tensors, or stand for tensors of emulated types."""
        if not self.emulated_types.lacking or self._adapting == op:
            return self._legalize(op, inputs, attrs, outputs)
        emulation = emulate_types.legalize_type_operator(
            self, self.emulated_types, op, inputs, attrs, outputs
        )
        if emulation is not None:
            return emulation
        if not self.emulated_types.may_concern(inputs, attrs):
            return self._legalize(op, inputs, attrs, outputs)
        opset = self._current_opset
        ties = emulate_types.require_exact(self.emulated_types, op, inputs, opset)
        result = emulate_types.wrap_integers(
            self, op, ties, self._legalize(op, inputs, attrs, outputs)
        )
        emulate_types.mark(self.emulated_types, op, ties, attrs, result, opset)
        return result

    def as_is(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Emit an operator of the IR without the target's legalization of it."""
        call = self.resolve(op, inputs, attrs, outputs)
        return self._lower(call) if isinstance(call, TypedCall) else call

    def decompose(
        self, op: str, version: int, *inputs: Value | None, outputs: int = 1, **attrs: Any
    ) -> Any:
        """What the version adapter below ``version`` makes of an operator in its form there."""
        rule = downgrades[version].rules[op]
        return rule.function(self, *inputs, **with_outputs(rule, attrs, outputs))

    def legalize_bodies(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        """Legalize a node whose subgraphs are handed to the rule as ``Body``."""
        outputs = len(node.outputs)
        if node.op not in self.target.rewrites:  # the loop carries a sequence of known tensors
            body: Any = node.attrs["body"]
            return scalarize_sequences.unroll_sequence_loop(self, inputs, body, outputs)
        operator = schema.operator(node.op)
        full = {**operator.defaults, **node.attrs}
        return self.apply_legalization(TypedCall(operator, inputs, full, [None] * outputs))

    def _legalize(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """Take an operator one step on: to the IR's version, or down to the target's."""
        step = next_step(self.target, op, self._current_opset, self._adapting == op)
        if step.way is Way.UP:
            return self._adapt(step, op, inputs, attrs, outputs)
        if step.way is not Way.IR:
            return self._lower_older(step, op, inputs, attrs, outputs)
        if self._start < IR_OPSET:  # a file may give attributes of other opsets
            attrs = self._known_attrs(schema.operator(op), attrs)
        with self.at_opset(IR_OPSET):
            resolve = self.resolve if op in self.target.rewrites else self._resolve
            call = resolve(op, inputs, attrs, outputs)
            if not isinstance(call, TypedCall):
                return call
            if promoted := self.target.promoted_types(call.operator, call.inputs):
                return self._promote(call, promoted, self.emit)
            result = self.apply_legalization(call)
            return self._lower(call) if result is None else result

    def _lower(self, call: TypedCall) -> Any:
        """Take a legalized call of the IR to the target's opset."""
        step = next_step(self.target, call.op, IR_OPSET, True)
        args = call.op, call.inputs, call.attrs, len(call.types)
        if step.way is Way.DOWN:
            return self._adapt(step, *args)
        return self.append(call) if self._is_standard(call) else self._lower_older(step, *args)

    def _lower_older(
        self, step: Step, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:  # fmt: skip
        """Take an operator that is below the IR's version, or is to be, one step down."""
        is_last = step.way is Way.TARGET
        with self.at_opset(self.opset if is_last else self._current_opset):
            operator = schema.operator(op, self._current_opset)
            operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
            if not is_last:
                if operands and all(v is None or v.tensor is not None for v in operands):
                    value = self.resolve(op, operands, attrs, outputs)  # fold before an adapter
                    if not isinstance(value, TypedCall):
                        return value
                return self._adapt(step, op, operands, attrs, outputs)
            require_results(operator, attrs)
            attrs = self._known_attrs(operator, attrs)
            if promoted := promote_types(operator, operands):
                call = TypedCall(operator, tuple(operands), attrs, [None] * outputs)
                return self._promote(call, promoted, self._lower_promoted)
            call = self.resolve(op, operands, attrs, outputs)
            if not isinstance(call, TypedCall):
                return call
            if (op, operator.since) in UNINFERRED:
                types = inference.infer(schema.operator(op), IR_OPSET, call.inputs, {}, 1)
                call = call._replace(types=types)
            result = self.append(call)
            require_results(operator, {}, result if isinstance(result, tuple) else (result,))
            return result

    def _lower_promoted(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        step = next_step(self.target, op, self._current_opset, True)
        return self._lower_older(step, op, inputs, attrs, outputs)

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
        self, step: Step, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """Apply the version adapter of an operator."""
        rule, table, upwards = step.rule, step.table, step.way is Way.UP
        assert rule is not None and table is not None
        operator = schema.operator(op, self._current_opset)
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        operands = canonicalize.canonicalize_operands(self, op, operands)
        attributes = {k: normalize_attribute(v) for k, v in attrs.items() if v is not None}
        if unknown := sorted(attributes.keys() - operator.attributes):
            raise UnsupportedAttribute(f"{op} has no attribute {', '.join(unknown)}")
        full = canonicalize.complete_attributes(operator, tuple(operands), attributes)
        spoken = schema.find(op, step.speaks + (-1 if upwards else 1)) or operator
        bound = table.bind(rule, op, self._known_attrs(spoken, full))
        with self._apply_at(step.speaks, "" if upwards else op):
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

    def apply_legalization(self, call: TypedCall) -> Any:
        """What the target's rule makes of a call; None if there is none, or it does not apply."""
        table = self.target.rewrites
        rule = table.rules.get(call.op)
        if rule is None:
            return None
        attrs = {n: _body(v) if isinstance(v, Graph) else v for n, v in call.attrs.items()}
        bound = with_outputs(rule, table.bind(rule, call.op, attrs), len(call.types))
        with self._apply_at(IR_OPSET):
            results = rule.function(self, *call.inputs, **bound)
        return None if results is None else call.refine(results)

    def append(self, call: TypedCall) -> Any:
        """Append a node; give a data-dependent length a name where the target wants one."""
        result = super().append(call)
        if call.op in self.target.counted:
            self._name_lengths(call, result if isinstance(result, tuple) else (result,))
        return result

    def _name_lengths(self, call: TypedCall, results: Sequence[Value]) -> None:
        along = self.target.counted[call.op]
        axis: int = call.attrs.get("axis", -1) if along is None else along
        if results[0].ranked_shape[axis] is None:
            sizes = list(results[0].ranked_shape)
            sizes[axis] = self.names.fresh(f"{results[0].name}.count")
            for value in results:
                value.shape = tuple(sizes)

    # Subgraphs, constants and values that stand for others

    def child(self, name: str) -> Legalizer:
        """A builder for a subgraph, whose operators are of the present opset too."""
        child = Legalizer(name, self.target, self, self._start, self.readers)
        child._current_opset = self._current_opset
        return child

    @property
    def loops(self) -> bool:
        """Whether the target has loops of a dynamic trip count."""
        return self.target.control_flow

    def const(self, data: Any, dtype: DType | None = None, name: str = "const") -> Value:
        """A constant; in a wider type where the target has no such elements."""
        constant = super().const(data, dtype, name)
        if constant.dtype not in self.emulated_types.lacking:
            return constant
        return self.emulated_types.emulate(emulate_types.widen_constant(constant), constant.type)

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over; in a wider type where the target has no such elements."""
        if constant.dtype not in self.emulated_types.lacking:
            return super().adopt(constant)
        return self.emulated_types.emulate(
            super().adopt(emulate_types.widen_constant(constant)), constant.type
        )

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        wrap: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare an input; in a wider type where the target lacks its own, if it may be."""
        is_own = self._outer is None and not self.target.emulates_inputs
        if is_own or dtype not in self.emulated_types.lacking or wrap:
            return super().input(name, dtype, shape, wrap)
        assert dtype is not None
        value = super().input(name, emulate_types.STORAGE_TYPE[dtype], shape, wrap)
        return self.emulated_types.emulate(value, dtype)

    def declare(self, value: Value, type_: inference.Type) -> Value:
        """An input of the graph that is rewritten: itself, so that what reads it may stay too."""
        is_typed = value.dtype is not None and value.shape is not None
        if not (self.target.is_standard and self._outer is None and is_typed):
            return super().declare(value, type_)
        if type_ != inference.type_of(value) or not value.name or value.name in self.names.used:
            return super().declare(value, type_)
        self.names.used.add(value.name)
        self.inputs.append(value)
        return value

    def emit_identity(self, value: Value) -> Value:
        """A second name for ``value``, which stands for the same type, or holds the same."""
        if (known := self.known_sequences.get(value)) is not None:
            if self._outer is not None:
                return scalarize_sequences.forward(self, known.values, known.optional)
            try:
                return scalarize_sequences.materialize(self, value)
            except ConversionError as error:
                stage = f"ir → {self.target.name}"
                problem = Problem("output", {}, error.reason, (value.name,), stage)
                raise Unconvertible(stage, [problem]) from error
        alias = super().emit_identity(value)
        logical = self.emulated_types.of(value)
        return alias if logical is None else self.emulated_types.emulate(alias, logical)

    def alias(self, value: Value) -> Value:
        """A second name for ``value``, of the type it is stored in."""
        return super().emit_identity(value)

    def _materialize(self, operand: Operand) -> Operand:
        known = isinstance(operand, Value) and operand in self.known_sequences
        return scalarize_sequences.materialize(self, operand) if known else operand


def _body(graph: Graph) -> Body:
    """A subgraph that a rule built, as one that a rule can inline."""

    def place(body: Graph, g: Any, operands: Sequence[Value]) -> tuple[Value, ...]:
        return emit_subgraph(g, body, operands, g.current_opset)

    return Body(graph, place)
