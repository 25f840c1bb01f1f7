"""Rule tables: how one vocabulary is rewritten into another.

A rule is a function ``rule(builder, *operands, **attributes) -> output(s)``. Its keyword-only
parameters declare the attributes it handles, with their types and defaults; an attribute it does
not declare is an error, never silently dropped.
"""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

from serde import bodies
from serde.builder import Builder
from serde.errors import (
    ConversionError,
    Problem,
    Unconvertible,
    UnsupportedAttribute,
    UnsupportedOp,
    located,
)
from serde.geometry import Ints
from serde.graph import EMPTY, Graph, Node, Source, Value
from serde.inference import UNKNOWN, Type

MOST_NAMES, MOST_GROWTH = 50_000, 64  # values a graph may become: these, and more for each it has
MOST_BYTES = 1 << 28  # of weights a graph may come to: these, and more for each byte it has
TRIALS = 64  # bodies rewritten again because what was taken for granted of their inputs is not so
Parse = Callable[[Any, Any], Any]
Function = Callable[..., Any]
Fallback = Callable[[Builder, Node, tuple[Value | None, ...]], Any]
Keyed = Mapping[str, Any]
# What stands for each value; None where the node that makes it could not be converted.
Env = MutableMapping[Value, "Value | None"]


@dataclass(frozen=True)
class Attribute:
    """One attribute a rule declares: its type, and its default where it has one."""

    kind: Any
    default: Any = inspect.Parameter.empty

    @classmethod
    def of(cls, parameter: inspect.Parameter) -> Attribute:
        """Read a keyword-only parameter; without annotation the default's type is the type."""
        kind = parameter.annotation
        if kind is parameter.empty:
            kind = type(parameter.default)
        return cls(Ints if kind is tuple else kind, parameter.default)

    @property
    def required(self) -> bool:
        """Whether a node must set it."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Rule:
    """A conversion function; its signature is read when it is first asked for."""

    function: Function
    ignore: frozenset[str]
    only: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, function: Function, ignore: Iterable[str] = (), only: Keyed = EMPTY) -> Rule:
        """The rule that ``function`` is."""
        return cls(function, frozenset(ignore), only)

    @cached_property
    def _parameters(self) -> tuple[inspect.Parameter, ...]:
        return tuple(inspect.signature(self.function, eval_str=True).parameters.values())

    @cached_property
    def attributes(self) -> Mapping[str, Attribute]:
        """The attributes the signature declares."""
        keywords = (p for p in self._parameters if p.kind is p.KEYWORD_ONLY)
        return MappingProxyType({p.name: Attribute.of(p) for p in keywords})

    @cached_property
    def operands(self) -> tuple[int, int | None]:
        """The fewest and the most operands; None: any number."""
        operands = [p for p in self._parameters if p.kind is p.POSITIONAL_OR_KEYWORD][1:]
        fewest = sum(p.default is p.empty for p in operands)
        variadic = any(p.kind is p.VAR_POSITIONAL for p in self._parameters)
        return fewest, None if variadic else len(operands)


class RuleTable:
    """Rules by operator name, for one direction of one format.

    ``parse`` turns an attribute's raw value into the type a rule declares. ``fallback`` says what
    becomes of an operator without a rule; without it such operators are refused. ``hidden`` tells
    attributes that are annotations, not configuration.
    """

    def __init__(
        self,
        name: str,
        parse: Parse = lambda _, raw: raw,
        defaults: Callable[[str], Keyed] = lambda _: EMPTY,
        fallback: Fallback | None = None,
        hidden: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.name = name
        self._parse, self._defaults = parse, defaults
        self._fallback, self._hidden = fallback, hidden
        self._rules: dict[str, Rule] = {}

    @property
    def rules(self) -> Mapping[str, Rule]:
        """Every rule, by operator."""
        return MappingProxyType(self._rules)

    def __contains__(self, op: object) -> bool:
        return op in self._rules

    def __call__(
        self, *ops: str, ignore: Iterable[str] = (), only: Keyed = EMPTY
    ) -> Callable[[Function], Function]:
        """Register the decorated function for each of ``ops``.

        ``ignore`` names attributes that cannot change the result. ``only`` lists the supported
        values of an attribute, its default first.
        """

        def register(function: Function) -> Function:
            rule = Rule.of(function, ignore, only)
            for op in ops:
                if op in self._rules:
                    raise ValueError(f"{self.name}: {op} already has a rule")
                self._rules[op] = rule
            return function

        return register

    def rename(self, names: Mapping[str, str], ignore: Iterable[str] = ()) -> None:
        """Register one-to-one operators without attributes."""
        for old, new in names.items():
            self(old, ignore=ignore)(partial(_renamed, new))

    def extended(self, rules: Mapping[str, Function]) -> RuleTable:
        """A copy of the table in which ``rules`` are added, or replace those of their name."""
        copy = RuleTable(self.name, self._parse, self._defaults, self._fallback, self._hidden)
        copy._rules = self._rules | {op: Rule.of(f) for op, f in rules.items()}
        return copy

    def rewrite(self, graph: Graph, builder: Builder) -> Graph:
        """Rewrite every node of ``graph`` into ``builder``.

        Raises:
            Unconvertible: for all nodes that cannot be rewritten, at once.
        """
        return _Rewriting(self).run(graph, builder)

    def bind(self, rule: Rule, op: str, attrs: Keyed) -> dict[str, Any]:
        """Parse ``attrs`` for ``rule``; refuse what it does not declare."""
        self._check_only(rule, attrs)
        unhandled = [n for n in attrs if n not in rule.attributes and n not in rule.ignore]
        if unhandled:
            defaults = self._defaults(op)
            unhandled = [
                n
                for n in unhandled
                if n not in rule.only and not self._hidden(n) and attrs[n] != defaults.get(n)
            ]
        if unhandled:
            listing = ", ".join(f"{n}={attrs[n]!r}" for n in sorted(unhandled))
            raise UnsupportedAttribute(f"no support for {listing}")
        bound = {}
        for name, attribute in rule.attributes.items():
            if name in attrs:
                bound[name] = self._parse(attribute.kind, attrs[name])
            elif attribute.required:
                raise ConversionError(f"attribute {name!r} is required")
        return bound

    def _check_only(self, rule: Rule, attrs: Keyed) -> None:
        for name, allowed in rule.only.items():
            if name not in attrs:
                continue
            given = self._parse(type(allowed[0]), attrs[name])
            if given not in allowed:
                listing = ", ".join(map(repr, allowed))
                raise UnsupportedAttribute(f"{name}={given!r}; supported: {listing}")

    def apply(
        self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]
    ) -> tuple[Value | None, ...]:
        """Run the rule of one node, or the fallback."""
        rule = self._rules.get(node.op) if node.domain == "" or self._fallback is None else None
        if rule is None:
            if self._fallback is None:
                raise UnsupportedOp(f"{self.name} has no rule for {node.op}")
            results = self._fallback(builder, node, inputs)
        else:
            self._check_operands(rule, inputs)
            results = rule.function(builder, *inputs, **self.bind(rule, node.op, node.attrs))
        return results if isinstance(results, tuple) else (results,)

    def refusal(self, node: Node) -> ConversionError | None:
        """Why ``node`` cannot be converted, as far as can be told without its inputs' types."""
        try:
            rule = self._rules.get(node.op)
            if rule is not None:
                self.bind(rule, node.op, node.attrs)
            elif self._fallback is None:
                raise UnsupportedOp(f"{self.name} has no rule for {node.op}")
        except ConversionError as error:
            return error
        return None

    def configuration(self, node: Node) -> dict[str, Any]:
        """The attributes of ``node`` that are configuration, not annotation or subgraph."""
        return {
            n: v
            for n, v in sorted(node.attrs.items())
            if not self._hidden(n) and not isinstance(v, Graph)
        }

    def _check_operands(self, rule: Rule, inputs: Sequence[Any]) -> None:
        fewest, most = rule.operands
        if len(inputs) < fewest or (most is not None and len(inputs) > most):
            wanted = (
                fewest
                if fewest == most
                else f"{fewest} to {'any number' if most is None else most}"
            )
            raise ConversionError(f"has {len(inputs)} inputs where {wanted} belong")


def _renamed(new: str, builder: Builder, *inputs: Value | None) -> Any:
    return builder[new](*inputs)


def keep(builder: Builder, node: Node, inputs: tuple[Value | None, ...]) -> Any:
    """A fallback that takes a node over as it is."""
    return builder.keep(node, inputs)


class _Rewriting:
    """One run of a table over a graph and its subgraphs: the only loop that converts nodes."""

    def __init__(self, table: RuleTable) -> None:
        self.table = table
        self.problems: dict[tuple[str, str, str], Problem] = {}
        self.failed: dict[tuple[str, str, str], list[str]] = {}
        self.trials = 0

    def run(self, graph: Graph, builder: Builder) -> Graph:
        builder.names.reserved.update(_names(graph))
        builder.names.reserved.update(v.name for v in graph.outputs if v.tensor is not None)
        given = sum(1 for g in (graph, *(f.body for f in graph.functions)) for _ in _names(g))
        builder.names.most = MOST_NAMES + MOST_GROWTH * given
        done = self.body(graph, builder, {})
        if self.problems:
            found = [replace(p, names=tuple(self.failed[key])) for key, p in self.problems.items()]
            raise Unconvertible(self.table.name, found)
        _refuse_growth(graph, done)
        return replace(
            done, functions=graph.functions, metadata=graph.metadata, imports=graph.imports
        )

    def body(self, graph: Graph, builder: Builder, outer: Env, given: Sequence[Type] = ()) -> Graph:
        env: Env = ChainMap({}, outer) if outer else {}
        for v, type_ in zip_longest(graph.inputs, given, fillvalue=UNKNOWN):
            env[v] = builder.input(v.name, *bodies.complete(v, type_))
        for node in graph.nodes:
            self.node(node, builder, env)
        outputs = [self.output(v, builder, env) for v in graph.outputs]
        return builder.build(self.named(graph, builder, outputs))

    def node(self, node: Node, builder: Builder, env: Env) -> None:
        source = node.sources[0] if node.sources else Source(self.table.name, node.op, node.name)
        mark = len(builder.nodes)
        try:
            inputs = tuple([v and self.operand(v, builder, env) for v in node.inputs])
            with located(self.table.name, source), builder.at(*(node.sources or (source,))):
                node = self.with_bodies(node, inputs, builder, env)
                results = self.table.apply(node, builder, inputs)
                self.bind(node, builder, results, mark, env)
        except _Poisoned:
            error = self.table.refusal(node)
            if error is not None:
                self.report(node, error)
            env.update((v, None) for v in node.outputs)
        except ConversionError as error:
            self.report(node, error)
            env.update((v, None) for v in node.outputs)

    def operand(self, value: Value, builder: Builder, env: Env) -> Value:
        if value in env:
            found = env[value]
            if found is None:
                raise _Poisoned
            return found
        if value.tensor is None:
            raise ConversionError(f"reads {value.name!r}, which nothing before it computes")
        made = env[value] = builder.adopt(value)
        return made

    def output(self, value: Value, builder: Builder, env: Env) -> Value:
        try:
            return self.operand(value, builder, env)
        except _Poisoned:
            return value

    def with_bodies(
        self, node: Node, inputs: tuple[Value | None, ...], builder: Builder, env: Env
    ) -> Node:
        made = {
            name: self.settled(node, graph, bodies.entering(node, graph, inputs), builder, env)
            for name, graph in node.attrs.items()
            if isinstance(graph, Graph)
        }
        return replace(node, attrs=MappingProxyType({**node.attrs, **made})) if made else node

    def settled(
        self, node: Node, graph: Graph, given: list[Type], builder: Builder, env: Env
    ) -> Graph:
        """A body whose inputs are of the types that enter it, as far as all turns leave them so."""
        said = [bodies.complete(v, t) == bodies.complete(v, UNKNOWN)
                for v, t in zip(graph.inputs, given, strict=True)]  # fmt: skip
        while True:
            before = dict(self.problems), {k: list(v) for k, v in self.failed.items()}
            names = None if all(said) else builder.names.used.copy()
            done = self.body(graph, builder.child(graph.name), env, given)
            later = bodies.returning(node, given, done)
            if names is None or all(
                s or a == b for s, a, b in zip(said, given, later, strict=True)
            ):
                return done
            builder.names.used, (self.problems, self.failed) = names, before
            self.trials += 1
            given = later if self.trials < TRIALS else [t._replace(shape=None) for t in later]

    def bind(
        self, node: Node, builder: Builder, results: tuple[Value | None, ...], mark: int, env: Env
    ) -> None:
        """Enter what a rule returned, named after the outputs it stands for."""
        if len(results) < len(node.outputs):
            used = ", ".join(repr(v.name) for v in node.outputs[len(results) :])
            raise ConversionError(f"output {used} has no equivalent")
        fresh = {v for made in builder.nodes[mark:] for v in made.outputs}
        for old, new in zip(node.outputs, results, strict=False):
            if new is None:
                continue
            env[old] = new
            if new is old:
                continue
            if new.tensor is None:
                new.dtype = old.dtype if new.dtype is None else new.dtype
                new.shape = old.shape if new.shape is None else new.shape
            if new in fresh:
                fresh.discard(new)
                builder.names.relabel(new, old.name)

    def named(self, graph: Graph, builder: Builder, outputs: list[Value]) -> list[Value]:
        """Give the outputs the source's names, each a value of its own that a node computes."""
        computed = {v for node in builder.nodes for v in node.outputs}
        taken: set[Value] = set()
        for at, (old, new) in enumerate(zip(graph.outputs, outputs, strict=True)):
            if new not in computed or new in taken:
                outputs[at] = new = identity(builder, new)
            taken.add(new)
            builder.names.relabel(new, old.name)
        return outputs

    def report(self, node: Node, error: ConversionError) -> None:
        attrs = self.table.configuration(node)
        key = (node.op, repr(attrs), error.reason)
        self.problems.setdefault(key, Problem(node.op, attrs, error.reason, (), error.stage))
        names = self.failed.setdefault(key, [])
        names.append(error.source.name if error.source else node.name)


def _refuse_growth(before: Graph, after: Graph) -> None:
    """Refuse weights out of all proportion to those there were: a small file could fill a disk."""
    was, now = (sum(v.tensor.nbytes for v in g.constants() if v.tensor) for g in (before, after))
    if now > MOST_BYTES + MOST_GROWTH * was:
        raise ConversionError(f"{was} bytes of weights grow to {now}")


def _names(graph: Graph) -> Iterator[str]:
    stack = [graph]
    while stack:
        graph = stack.pop()
        yield from (v.name for v in graph.inputs)
        for node in graph.nodes:
            yield from (v.name for v in node.outputs)
            stack.extend(node.graphs())


class _Poisoned(Exception):
    """The node reads the output of one that could not be converted."""


def identity(builder: Builder, value: Value) -> Value:
    """A new value equal to ``value``, for an output that needs a name of its own."""
    (made,) = builder._append(builder.identity, (value,), {}, 1)
    made.dtype, made.shape, made.wrap = value.dtype, value.shape, value.wrap
    return made


def each_operator(tables: Iterable[RuleTable]) -> Iterator[tuple[str, Rule]]:
    """Every rule of several tables, by operator name."""
    for table in tables:
        yield from sorted(table.rules.items())
