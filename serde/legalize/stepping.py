"""The builder that takes every operator from its opset to another, one change at a time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar

from serde.errors import (
    ConversionError,
    Problem,
    Unconvertible,
    UnsupportedAttribute,
    show_attribute,
)
from serde.ir.builder import Builder, Operand, plain
from serde.ir.graph import IR_OPSET, DType, Graph, Shape, Value
from serde.legalize import emulate_types, scalarize_sequences
from serde.legalize.emulate_types import Carried
from serde.rewrite.custom_ops import Readers
from serde.rewrite.rules import Rule, RuleTable
from serde.spec import canonicalize, folding, inference, schema
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters import above, below
from serde.version_converter.element_types import UNINFERRED, require_results, widening

NO_READERS = Readers()


class Stepping(OnnxBuilder):
    """Emit operators of one opset as what they are at another.

    ``scalarizes``: sequences and optionals are followed as the tensors they hold at every opset.
    """

    scalarizes: ClassVar[bool] = False

    def __init__(
        self, name: str, start: int, target: int, outer: Builder | None = None,
        spelled_out: frozenset[str] = frozenset(), readers: Readers = NO_READERS,
    ) -> None:  # fmt: skip
        super().__init__(name, target, outer)
        self.readers = readers  # of operators of other domains
        self.start, self._level = start, start
        self.spelled_out = spelled_out  # operators the target is not to have, though its opset does
        around = outer if isinstance(outer, Stepping) else None
        self.carried: Carried = Carried(target) if around is None else around.carried
        self.held: dict[Value, scalarize_sequences.Held] = {} if around is None else around.held
        self.resolving = self.scalarizes or target < min(start, scalarize_sequences.OPTIONALS)

    def child(self, name: str) -> Stepping:
        """A builder for a subgraph, between the same opsets."""
        return type(self)(name, self.start, self.opset, self, self.spelled_out, self.readers)

    def const(self, data: Any, dtype: DType | None = None, name: str = "const") -> Value:
        """A constant; in a wider type where the target has no such elements."""
        made = super().const(data, dtype, name)
        return self._widened(made) if made.dtype in self.carried.lacking else made

    def adopt(self, constant: Value) -> Value:
        """Bring a constant over; in a wider type where the target has no such elements."""
        if constant.dtype not in self.carried.lacking:
            return super().adopt(constant)
        assert constant.dtype is not None
        return self.carried.stands(super().adopt(emulate_types.widened(constant)), constant.dtype)

    def _widened(self, made: Value) -> Value:
        assert made.dtype is not None
        return self.carried.stands(emulate_types.widened(made), made.dtype)

    def input(
        self, name: str, dtype: DType | None = None, shape: Shape | None = None,
        wrap: tuple[str, ...] = (),
    ) -> Value:  # fmt: skip
        """Declare an input; one of a subgraph in a wider type where the target lacks its own."""
        if self._outer is None or dtype not in self.carried.lacking or wrap:
            return super().input(name, dtype, shape, wrap)
        assert dtype is not None
        made = super().input(name, emulate_types.CARRIERS[dtype], shape, wrap)
        return self.carried.stands(made, dtype)

    def again(self, value: Value) -> Value:
        """A second name for ``value``, which stands for the same type, or holds the same."""
        if (held := self.held.get(value)) is not None:
            if self._outer is not None:
                return scalarize_sequences.stand_in(self, held.values, held.optional)
            try:
                return scalarize_sequences.constructed_after_all(self, value)
            except ConversionError as error:
                stage = f"ir → opset {self.opset}"
                problem = Problem("output", {}, error.reason, (value.name,), stage)
                raise Unconvertible(stage, [problem]) from error
        made = super().again(value)
        meant = self.carried.of(value)
        return made if meant is None else self.carried.stands(made, meant)

    def renamed(self, value: Value) -> Value:
        """A second name for ``value``, which stands for no other type."""
        return super().again(value)

    def next_step(self, op: str) -> int | None:
        """The next version that changes ``op``, on its way from the present level to the target."""
        if op in self.spelled_out and (first := schema.first_version(op)) is not None:
            return next_step(op, self._level, min(self.opset, first - 1))
        return next_step(op, self._level, self.opset)

    @property
    def level(self) -> int:
        """The opset whose operators can be emitted now."""
        return self._level

    @contextmanager
    def speaking(self, level: int) -> Iterator[None]:
        """Emit operators of opset ``level`` within the block."""
        before, self._level = self._level, level
        try:
            yield
        finally:
            self._level = before

    def emit(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Emit ``op`` of the present level, through every change up to the target."""
        if self.resolving:
            found = scalarize_sequences.resolved(self, op, inputs, attrs, outputs)
            if found is not None:
                return found
            if self.held:
                inputs = [self._constructed(v) for v in inputs]
        return self.node(op, inputs, attrs, outputs)

    def _constructed(self, operand: Operand) -> Operand:
        isolated = isinstance(operand, Value) and operand in self.held
        return scalarize_sequences.constructed_after_all(self, operand) if isolated else operand

    def node(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int = 1
    ) -> Any:
        """Emit ``op`` as a node, whatever its operands are known to hold."""
        if not self.carried.lacking:
            return self._step(op, inputs, attrs, outputs)
        found = emulate_types.said(self, self.carried, op, inputs, attrs, outputs)
        if found is not None:
            return found
        bodies = any(isinstance(a, Graph) for a in attrs.values())
        if not bodies and not any(v in self.carried.meant for v in inputs if isinstance(v, Value)):
            return self._step(op, inputs, attrs, outputs)
        level = self._level
        ties = emulate_types.require_exact(self.carried, op, inputs, level)
        made = emulate_types.wrapped(self, op, ties, self._step(op, inputs, attrs, outputs))
        emulate_types.mark(self.carried, op, ties, attrs, made, level)
        return made

    def _step(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        version = self.next_step(op)
        if version is None:
            with self.speaking(self.opset):
                return self._settle(op, inputs, attrs, outputs)
        operator = schema.operator(op, self._level)
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        operands = canonicalize.operands(self, op, operands)
        given = {k: plain(v) for k, v in attrs.items() if v is not None}
        if unknown := sorted(given.keys() - operator.attributes):
            raise UnsupportedAttribute(f"{op} has no attribute {', '.join(unknown)}")
        full = canonicalize.complete(operator, tuple(operands), given)
        down = version <= self._level
        if down and (known := self._known(operator, operands, full, outputs)) is not None:
            return known
        table = below[version] if down else above[version]
        rule = table.rules[op]
        spoken = schema.find(op, version if down else version - 1) or operator
        bound = _bound(table, rule, op, self._allowed(spoken, full))
        with self.speaking(version - 1 if down else version):
            made = rule.function(self, *operands, **_counted(rule, bound, outputs))
        return made[0] if outputs == 1 and isinstance(made, tuple) else made

    def _known(
        self, operator: schema.Operator, operands: Sequence[Value | None], attrs: Mapping[str, Any],
        outputs: int,
    ) -> Value | None:  # fmt: skip
        """The result of an operator on small constants, so that no rule has to spell it out."""
        read = tuple(operands)
        if outputs != 1 or not read or any(v is not None and v.tensor is None for v in read):
            return None
        types = inference.infer(operator, self._level, read, attrs, 1)
        found = folding.fold(operator.name, self._level, read, attrs, types)
        return None if found is None else self.const(found[0])

    def _settle(
        self, op: str, inputs: Sequence[Operand], attrs: Mapping[str, Any], outputs: int
    ) -> Any:
        """Emit at the target, in wider types where the target's operator lacks the narrow ones."""
        operator = schema.operator(op, self.opset)
        operands = [self._operand(operator, i, inputs) for i in range(len(inputs))]
        require_results(operator, attrs)
        wider = widening(operator, operands)
        if not wider:
            made = super().emit(op, operands, self._allowed(operator, attrs), outputs)
            require_results(operator, {}, made if isinstance(made, tuple) else (made,))
            if (op, operator.since) in UNINFERRED:
                newest = schema.operator(op)
                made.shape = inference.infer(newest, IR_OPSET, tuple(operands), {}, 1)[0].shape
            return made
        code = schema.ELEMENT_CODES
        cast = [
            v if v is None or (to := wider.get(operator.input(i).tie)) is None or v.dtype is None
            else self.Cast(v, to=code[to])
            for i, v in enumerate(operands)
        ]  # fmt: skip
        narrow = {
            operator.input(i).tie: v.dtype
            for i, v in enumerate(operands)
            if v is not None and v.dtype is not None
        }
        made = super().emit(op, cast, self._allowed(operator, attrs), outputs)
        results = made if isinstance(made, tuple) else (made,)
        back = tuple(
            self.Cast(v, to=code[narrow[tie]])
            if (tie := operator.outputs[min(i, len(operator.outputs) - 1)].tie) in wider
            else v
            for i, v in enumerate(results)
        )
        return back if isinstance(made, tuple) else back[0]

    def _allowed(self, operator: schema.Operator, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Drop attributes the target lacks where they have the value that changes nothing."""
        given = {k: v for k, v in attrs.items() if v is not None}
        extra = given.keys() - operator.attributes
        if extra:
            defaults = schema.operator(operator.name, max(self.start, self.opset)).defaults
            for name in sorted(extra):
                if plain(given.pop(name)) != defaults.get(name):
                    shown = f"{name}={show_attribute(attrs[name])}"
                    raise UnsupportedAttribute(
                        f"{operator.name} has no {shown} at opset {self._lacking(operator, name)}"
                        f"{_since(operator.name, name)}"
                    )
        return given

    def _lacking(self, operator: schema.Operator, attribute: str) -> int:
        """The opset that has no such attribute: that of the source, or else the target's."""
        found = schema.find(operator.name, self.start)
        return self.opset if found is None or attribute in found.attributes else self.start


def _bound(table: RuleTable, rule: Rule, op: str, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Bind ``attrs``; a rule ending in ``**rest`` is handed those it does not name as they are."""
    if not _takes_rest(rule.function):
        return table.bind(rule, op, attrs)
    named = {n: v for n, v in attrs.items() if n in rule.attributes}
    return {**attrs, **table.bind(rule, op, named)}


@cache
def _takes_rest(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


def _counted(rule: Rule, bound: dict[str, Any], outputs: int) -> dict[str, Any]:
    """Tell a rule how many outputs are wanted, if it asks by declaring ``outputs``."""
    return {**bound, "outputs": outputs} if "outputs" in rule.attributes else bound


def _since(op: str, attribute: str) -> str:
    versions = (v for v in range(1, IR_OPSET + 1) if (o := schema.find(op, v)) and
                attribute in o.attributes)  # fmt: skip
    found = list(versions)
    if not found:
        return ""
    if found[-1] < IR_OPSET:
        return f"; opset {found[-1]} is the last that has it"
    return f"; opset {found[0]} is the lowest that has it"


@cache
def next_step(op: str, level: int, target: int) -> int | None:
    """The next version between ``level`` and ``target`` that changes ``op``, None if none does."""
    if target < level:
        return next((v for v in range(level, target, -1) if op in below.get(v, ())), None)
    return next((v for v in range(level + 1, target + 1) if op in above.get(v, ())), None)


from serde.version_converter.adapters import families  # noqa: E402,F401
