"""Rule tables: how one vocabulary is rewritten into another.

A rule is a function ``rule(builder, *operands, **attributes) -> output(s)``. Its keyword-only
parameters declare the attributes it handles, with their types and defaults; an attribute it does
not declare is an error, never silently dropped. A parameter of type ``Hint[T]`` is no attribute: it
is what a pass found about the node, which no file can set.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from serde.errors import (
    REQUIRED,
    ConversionError,
    UnsupportedAttribute,
    UnsupportedOp,
    show_attribute,
)
from serde.ir.builder import Builder
from serde.ir.graph import EMPTY, Graph, Node, Value
from serde.rewrite.driver import rewrite
from serde.rewrite.rule import NONE as NONE
from serde.rewrite.rule import Attribute as Attribute
from serde.rewrite.rule import Function as Function
from serde.rewrite.rule import Hint as Hint
from serde.rewrite.rule import Keyed as Keyed
from serde.rewrite.rule import Rule as Rule
from serde.rewrite.rule import always as always
from serde.rewrite.rule import never as never
from serde.rewrite.subgraphs import Body
from serde.spec.memo import memoize

TEXTS = frozenset({str})
Parse = Callable[[Any, Any], Any]
Fallback = Callable[[Builder, Node, tuple[Value | None, ...]], Any]
BodyAttributes = Callable[[Node, Builder, tuple[Value | None, ...]], frozenset[str]]
# Looks at a node, its operands and what a rule made of it, and refuses what is not to be.
Guard = Callable[[Node, Sequence["Value | None"], Sequence["Value | None"]], None]


class RuleTable:
    """Rules by operator name, for one direction of one format.

    ``parse`` turns an attribute's raw value into the type a rule declares; it sees no subgraphs.
    ``fallback`` says what becomes of an operator without a rule; without it such operators are
    refused, for one of
    ``reasons`` where their name is among them. ``hidden`` tells attributes that are annotations,
    not configuration; ``body_attributes``, which attributes of a node the fallback takes as a
    ``Body``; ``unset`` is the raw value of an attribute that is not given. Operators in ``lenient``
    may have attributes that nothing declares: their framework ignores those, and so does the table,
    with a note.
    """

    def __init__(
        self,
        name: str,
        parse: Parse = lambda _, raw: raw,
        defaults: Callable[[str], Keyed] = lambda _: EMPTY,
        fallback: Fallback | None = None,
        hidden: Callable[[str], bool] = lambda _: False,
        reasons: Mapping[str, str] = EMPTY,
        body_attributes: BodyAttributes | None = None,
        unset: Any = None,
        lenient: Container[str] = NONE,
    ) -> None:
        self.name, self.reasons, self._body_attributes = name, reasons, body_attributes
        self._lenient = lenient
        self._parse, self._defaults = parse, defaults
        self._fallback, self._hidden, self._unset = fallback, hidden, unset
        self._guard: Guard | None = None
        self._diagnostics: Mapping[Value, str] = {}
        self._hints: Mapping[Value, Keyed] = {}
        self._rules: dict[str, Rule] = {}
        self._bound: dict[Any, dict[str, Any]] = {}  # attributes that are texts, once parsed

    @property
    def rules(self) -> Mapping[str, Rule]:
        """Every rule, by operator."""
        return MappingProxyType(self._rules)

    def __contains__(self, op: object) -> bool:
        return op in self._rules

    def __call__(
        self, *ops: str, ignore: Iterable[str] = (), only: Keyed = EMPTY,
        sizes: Callable[[Keyed], bool] = always,
    ) -> Callable[[Function], Function]:  # fmt: skip
        """Register the decorated function for each of ``ops``.

        ``ignore`` names attributes that cannot change the result. ``only`` lists the supported
        values of an attribute, its default first.
        """

        def register(function: Function) -> Function:
            rule = Rule.of(function, ignore, only, sizes)
            for op in ops:
                if op in self._rules:
                    raise ValueError(f"{self.name}: {op} already has a rule")
                self._rules[op] = rule
            return function

        return register

    def for_each(
        self, ops: Iterable[str] | Keyed, ignore: Iterable[str] = (), only: Keyed = EMPTY
    ) -> Callable[[Function], Function]:
        """Register the decorated function for each of ``ops``; it is given which one first.

        That is the name of the operator, or what a mapping has for it.
        """

        def register(function: Function) -> Function:
            for op in ops:
                first = ops[op] if isinstance(ops, Mapping) else op
                self(op, ignore=ignore, only=only)(partial(function, first))
            return function

        return register

    def rename(self, names: Mapping[str, str], ignore: Iterable[str] = ()) -> None:
        """Register one-to-one operators without attributes."""
        for old, new in names.items():
            self(old, ignore=ignore)(partial(_emit_renamed, new))

    def extend(self, rules: Mapping[str, Function]) -> RuleTable:
        """A copy of the table in which ``rules`` are added, or replace those of their name."""
        return self.merge({op: Rule.of(f) for op, f in rules.items()})

    def merge(self, rules: Mapping[str, Rule], reasons: Mapping[str, str] = EMPTY) -> RuleTable:
        """A copy of the table with the rules of another, and more reasons."""
        table = copy.copy(self)
        table.reasons, table._rules = {**self.reasons, **reasons}, self._rules | dict(rules)
        table._bound = {}
        return table

    def with_diagnostics(self, diagnostics: Mapping[Value, str]) -> RuleTable:
        """A copy of the table that refuses the nodes of some outputs, for the reasons given."""
        table = copy.copy(self)
        table._diagnostics = diagnostics
        return table

    def with_hints(self, hints: Mapping[Value, Keyed]) -> RuleTable:
        """A copy of the table whose rules are given hints about nodes, by their first outputs."""
        table = copy.copy(self)
        table._hints = hints
        return table

    def diagnostic(self, node: Node) -> ConversionError | None:
        """Why a node is refused, whatever its rule."""
        reason = self._diagnostics.get(node.outputs[0]) if node.outputs else None
        return None if reason is None else ConversionError(reason)

    def with_guard(self, guard: Guard) -> RuleTable:
        """A copy of the table whose results pass ``guard``, which may refuse them."""
        table = copy.copy(self)
        table._guard = guard
        return table

    def rewrite(self, graph: Graph, builder: Builder, is_function: bool = False) -> Graph:
        """Rewrite every node of ``graph``, or of a function's body, into ``builder``.

        Raises:
            Unconvertible: for all nodes that cannot be rewritten, at once.
        """
        return rewrite(self, graph, builder, is_function)

    def bind(self, rule: Rule, op: str, attrs: Keyed) -> dict[str, Any]:
        """Parse ``attrs`` for ``rule``; refuse what it does not declare."""
        if TEXTS.issuperset(map(type, attrs.values())):
            key = id(rule), op, *attrs.items()
            return {**memoize(self._bound, key, lambda: self._bind(rule, op, attrs))}
        return self._bind(rule, op, attrs)

    def _bind(self, rule: Rule, op: str, attrs: Keyed) -> dict[str, Any]:
        if rule.only:
            self._check_only(rule, attrs)
        bound = self._find_undeclared(rule, op, attrs)
        if bound and not rule.takes_all:
            if op not in self._lenient:
                raise UnsupportedAttribute(
                    _explain_unhandled(rule, bound, attrs, self._defaults(op))
                )
            bound = {}
        for name, attribute in rule.attributes.items():
            if attribute.kind in (Graph, Body) and isinstance(attrs.get(name), (Graph, Body)):
                bound[name] = attrs[name]
            elif name in attrs and not self._stands_for_default(attribute, attrs[name]):
                try:
                    bound[name] = self._parse(attribute.kind, attrs[name])
                except ConversionError:
                    if attribute.is_required or not self._is_unset(attrs[name]):
                        raise
            elif attribute.is_required:
                raise ConversionError(REQUIRED.format(name))
        return bound

    def _is_unset(self, raw: Any) -> bool:
        """Whether a raw value stands for an attribute that is not given."""
        return self._unset is not None and bool(raw == self._unset)

    def _stands_for_default(self, attribute: Attribute, raw: Any) -> bool:
        """Whether a text that is no text of the attribute's stands for its default."""
        return attribute.kind is str and not attribute.is_required and self._is_unset(raw)

    def _find_undeclared(self, rule: Rule, op: str, attrs: Keyed) -> dict[str, Any]:
        """The attributes that could matter and that ``rule`` says nothing of."""
        if rule.known_attributes.issuperset(attrs):
            return {}
        named = [n for n in attrs if n not in rule.known_attributes]
        defaults = self._defaults(op)
        return {
            n: attrs[n]
            for n in named
            if n not in rule.only and not self._hidden(n) and not self._is_unset(attrs[n])
            and (rule.takes_all or attrs[n] != defaults.get(n))
        }  # fmt: skip

    def _check_only(self, rule: Rule, attrs: Keyed) -> None:
        for name, allowed in rule.only.items():
            if name not in attrs:
                continue
            value = self._parse(type(allowed[0]), attrs[name])
            if value not in allowed:
                listing = ", ".join(map(show_attribute, allowed))
                raise UnsupportedAttribute(f"{name}={show_attribute(value)}; supported: {listing}")

    def apply(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        """Run the rule of one node, or the fallback."""
        if (error := self.diagnostic(node)) is not None:
            raise error
        rule = self._rules.get(node.op) if node.domain == "" or self._fallback is None else None
        if rule is None:
            if self._fallback is None:
                raise self._no_rule(node.op)
            results = self._fallback(builder, node, inputs)
        else:
            self._check_operands(rule, inputs)
            bound = self.bind(rule, node.op, node.attrs)
            if self._hints and rule.hints and node.outputs:
                bound.update(self._hints.get(node.outputs[0], EMPTY))
            results = rule.function(builder, *inputs, **bound)
            if node.op in self._lenient and not rule.takes_all:
                ignored = self._find_undeclared(rule, node.op, node.attrs)
                if ignored:
                    builder.note(f"has attributes that are ignored: {_format_listing(ignored)}")
        results = results if isinstance(results, tuple) else (results,)
        if self._guard is not None:
            self._guard(node, inputs, results)
        return results

    def call(self, builder: Builder, op: str, *inputs: Value | None, **attrs: Any) -> Any:
        """Emit what one operator becomes, without a graph to rewrite; its results.

        For front ends that record operators of the table's vocabulary as they run.
        """
        results = self.apply(Node(op, inputs, (), attrs), builder, inputs)
        return results[0] if len(results) == 1 else results

    def bodies(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> frozenset[str]:  # fmt: skip
        """The attributes of a node that its rule, or the fallback, takes as a ``Body``."""
        rule = self._rules.get(node.op)
        if rule is None and self._body_attributes is not None:
            return self._body_attributes(node, builder, inputs)
        return rule.bodies if rule else NONE

    def refusal(self, node: Node) -> ConversionError | None:
        """Why ``node`` cannot be converted, as far as is known without its inputs' types."""
        if (known := self.diagnostic(node)) is not None:
            return known
        try:
            rule = self._rules.get(node.op)
            if rule is not None:
                self.bind(rule, node.op, node.attrs)
            elif self._fallback is None:
                raise self._no_rule(node.op)
        except ConversionError as error:
            return error
        return None

    def _no_rule(self, op: str) -> UnsupportedOp:
        return UnsupportedOp(self.reasons.get(op) or f"{self.name} has no rule for {op}")

    def configuration(self, node: Node) -> dict[str, Any]:
        """The attributes of ``node`` that are configuration, not annotation or subgraph."""
        return {
            n: v
            for n, v in sorted(node.attrs.items())
            if not self._hidden(n) and not isinstance(v, (Graph, Body))
        }

    def _check_operands(self, rule: Rule, inputs: Sequence[Any]) -> None:
        fewest, most = rule.operands
        if len(inputs) < fewest or (most is not None and len(inputs) > most):
            expected = (
                fewest
                if fewest == most
                else f"{fewest} to {'any number' if most is None else most}"
            )
            raise ConversionError(f"has {len(inputs)} inputs where {expected} belong")


def add_rules(table: RuleTable, rules: RuleTable | Mapping[str, Function] | None,
              present: Container[str]) -> RuleTable:  # fmt: skip
    """A table with the rules that callers and plug-ins have for operators that are ``present``.

    A whole table stands for it.
    """
    if isinstance(rules, RuleTable):
        return rules
    chosen = {} if rules is None else {op: rules[op] for op in rules if op in present}
    return table.extend(chosen) if chosen else table


def _explain_unhandled(rule: Rule, names: Iterable[str], attrs: Keyed, defaults: Keyed) -> str:
    """Why attributes are refused: the operator has none of the name, or the rule cannot say it."""
    unknown = sorted(n for n in names if n not in defaults)
    if not unknown:
        return f"{_format_listing({n: attrs[n] for n in names})} is not supported"
    known = ", ".join(sorted({*rule.attributes, *rule.only, *rule.ignore, *defaults})) or "none"
    return f"unknown attribute {', '.join(unknown)}; the operator takes {known}"


def _format_listing(attrs: Keyed) -> str:
    return ", ".join(f"{n}={show_attribute(value)}" for n, value in sorted(attrs.items()))


def _emit_renamed(new: str, builder: Builder, *inputs: Value | None) -> Any:
    return builder[new](*inputs)


def keep(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """A fallback that takes a node over as it is."""
    return builder.keep(node, inputs)
