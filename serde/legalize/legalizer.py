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

Only steps 3 and 7 work on other opsets than the IR's; ``VersionedBuilder`` has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serde.errors import ConversionError, Problem, Unconvertible
from serde.ir.builder import Builder, Operand
from serde.ir.graph import IR_OPSET, DType, Graph, Node, Shape, Tensor, Value
from serde.rewrite.custom_ops import Readers
from serde.rewrite.inline import inline_subgraph
from serde.rewrite.subgraphs import Body
from serde.spec import inference, schema
from serde.spec.memo import memoize
from serde.spec.onnx_builder import TypedCall
from serde.version_converter.adapters import upgrades

from . import emulate_types, scalarize_sequences
from .adapters import next_change, with_outputs
from .emulate_types import EmulatedTypes
from .target import Target
from .versioned_builder import VersionedBuilder

NO_READERS = Readers()


class Legalizer(VersionedBuilder):
    """Emits operators of the IR, or of any opset, in forms that a target accepts.

    ``readers`` are for operators of other domains. ``diagnostics`` tell why a value's node could
    not be made legal and was kept.
    """

    def __init__(
        self, name: str, target: Target, outer: Builder | None = None, opset: int = IR_OPSET,
        readers: Readers = NO_READERS,
    ) -> None:  # fmt: skip
        super().__init__(name, target, outer, opset)
        around = outer if isinstance(outer, Legalizer) else None
        self.readers = readers
        self.diagnostics: dict[Value, str] = {} if around is None else around.diagnostics
        own = EmulatedTypes(target.opset, target.emulated)
        self.emulated_types: EmulatedTypes = own if around is None else around.emulated_types
        self.known_sequences: dict[Value, scalarize_sequences.KnownSequence] = (
            {} if around is None else around.known_sequences
        )
        self._legal: dict[Any, TypedCall] = {} if around is None else around._legal
        self.scalarizes = not target.sequences
        self.resolving = self.scalarizes or target.opset < min(opset, scalarize_sequences.OPTIONALS)

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
        return self._downgrade(call) if isinstance(call, TypedCall) else call

    def legalize_bodies(self, node: Node, inputs: tuple[Value | None, ...]) -> Any:
        """Legalize a node whose subgraphs are handed to the rule as ``Body``."""
        outputs = len(node.outputs)
        if node.op not in self.target.legalizations:  # the loop carries a sequence of known tensors
            body: Any = node.attrs["body"]
            return scalarize_sequences.unroll_sequence_loop(self, inputs, body, outputs)
        operator = schema.operator(node.op)
        full = {**operator.defaults, **node.attrs}
        return self.apply_legalization(TypedCall(operator, inputs, full, [None] * outputs))

    def _legalize(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        key = None if self._adapting == op else self._key(op, inputs, attrs, outputs)
        if key is None:
            return self._legalize_anew(op, inputs, attrs, outputs)
        if (known := self._legal.get(key)) is not None:
            return self.append(known.with_inputs(inputs))
        made = len(self.nodes), len(self.names.used)
        result = self._legalize_anew(op, inputs, attrs, outputs)
        if made == (len(self.nodes) - 1, len(self.names.used) - outputs):
            self._remember(key, op, tuple(inputs), result)
        return result

    def _remember(self, key: Any, op: str, inputs: tuple[Any, ...], result: Any) -> None:
        """Keep the one node that an operator became for others that ``key`` cannot tell from it.

        Legalizations look at more than the key holds. So may adapters: at numbers, but not at
        weights, and at emulated types.
        """
        node, results = self.nodes[-1], result if isinstance(result, tuple) else (result,)
        is_same = node.op == op and (node.inputs, node.outputs) == (inputs, results)
        if not is_same or op in self.target.legalizations:
            return
        are_weights = all(v is None or v.tensor is None or _is_weight(v.tensor) for v in inputs)
        if not self._adapts(op) or (are_weights and not self.emulated_types.logical_types):
            types = [inference.type_of(v) for v in results]
            operator = schema.operator(op, self.opset)
            call = TypedCall(operator, inputs, node.attrs, types, results[0].shape_data)
            memoize(self._legal, key, lambda: call)

    def _legalize_anew(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        if self._goes_down(op):
            return self._downgrade_older(op, inputs, attrs, outputs)
        newer = next_change(op, self._current_opset, IR_OPSET)
        if newer is not None:
            return self._adapt(upgrades[newer], newer, op, inputs, attrs, outputs)
        if self._start < IR_OPSET:  # a file may give attributes of other opsets
            attrs = self._known_attrs(schema.operator(op), attrs)
        is_remembered = op not in self.target.legalizations
        before, self._current_opset = self._current_opset, IR_OPSET
        try:
            resolve = self._resolve if is_remembered else self.resolve
            call = resolve(op, inputs, attrs, outputs)
            if not isinstance(call, TypedCall):
                return call
            promoted = self.target.promoted_types(call.operator, call.inputs)
            if promoted:
                return self._promote(call, promoted, self.emit)
            result = self.apply_legalization(call)
            if result is not None:
                return result
            return self._downgrade(call)
        finally:
            self._current_opset = before

    def apply_legalization(self, call: TypedCall) -> Any:
        """What the target's rule makes of a call; None if there is none, or it does not apply."""
        table = self.target.legalizations
        rule = table.rules.get(call.op)
        if rule is None:
            return None
        attrs = {n: _body(v) if isinstance(v, Graph) else v for n, v in call.attrs.items()}
        bound = with_outputs(rule, table.bind(rule, call.op, attrs), len(call.types))
        with self._apply_at(IR_OPSET):
            results = rule.function(self, *call.inputs, **bound)
        return None if results is None else _refine(results, call)

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
        """A builder for a subgraph."""
        return Legalizer(name, self.target, self, self._start, self.readers)

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


def _is_weight(tensor: Tensor) -> bool:
    """Whether a constant has more numbers than one that sets how an operator works."""
    return tensor.dtype.kind == "f" and tensor.size > inference.FLOATS


def _body(graph: Graph) -> Body:
    """A subgraph that a rule built, as one that a rule can inline."""
    return Body(graph, lambda body, g, args: tuple(inline_subgraph(g, body, args)))


def _refine(results: Any, call: TypedCall) -> Any:
    """Results of a rule, with what inference knew of the types of the call's own outputs."""
    if len(call.types) == 1 and isinstance(results, tuple):
        results = results[0]
    values = results if isinstance(results, tuple) else (results,)
    for value, known in zip(values, call.types, strict=False):
        if value is None or known is None or value.tensor is not None:
            continue
        value.dtype = value.dtype or known.dtype
        if value.shape is None or (known.shape is not None and None in value.shape):
            value.shape = known.shape
    return results
