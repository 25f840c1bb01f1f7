"""Forms of operators that targets lack, each with its test and what is written in its place.

A target lists forms by operator. Their order is semantics: the first one that an operator has
decides. It is rewritten, and what that emits is legalized in turn. A form without a rewrite is
refused, with its advice, unless the target's rule of the operator makes another of it. No rewrite
emits the form that it removes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from serde.ir.graph import Node, Value, show_shape
from serde.rewrite.rules import Rule, RuleTable
from serde.spec import schema
from serde.version_converter.adapters.pooling import Windows

STATIC = "Give numbers (--static, --input)"
CONSTANT = "Make it a constant, or give static sizes (--static)"
_BINDING = RuleTable("forms", defaults=schema.defaults_of)


class Call(NamedTuple):
    """An operator with its operands and attributes, as forms are told by them.

    ``results`` are those of a node of the finished graph, none while it is made; ``g`` is the
    builder that it is made with, which knows who makes its operands.
    """

    op: str
    inputs: tuple[Any, ...]  # values, None where one is left out
    attrs: Mapping[str, Any]
    outputs: int = 1
    results: tuple[Value, ...] = ()
    g: Any = None

    @classmethod
    def of(cls, node: Node) -> Call:
        """A node of the finished graph."""
        return cls(node.op, node.inputs, node.attrs, len(node.outputs), node.outputs)

    @property
    def x(self) -> Value:
        """The first operand."""
        return self.inputs[0]  # type: ignore[no-any-return]

    @property
    def values(self) -> list[Value]:
        """The operands and results that there are."""
        return [v for v in (*self.inputs, *self.results) if v is not None]

    @property
    def window(self) -> Windows:
        """The windows that the attributes declare."""
        return Windows(**{n: self.attrs[n] for n in Windows._fields if n in self.attrs})

    def operand(self, index: int) -> Value | None:
        """An operand, None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None  # type: ignore[no-any-return]

    def find_named(self, name: str, operator: schema.Operator | None = None) -> list[Value]:
        """The operands, or the results, under a name of the schema."""
        operator = operator or schema.operator(self.op)
        pairs = (operator.inputs, self.inputs), (operator.outputs, self.results)
        return [
            value
            for formals, values in pairs
            for at, value in enumerate(values)
            if value is not None and value.name
            and formals[min(at, len(formals) - 1)].name == name
        ]  # fmt: skip

    def emit(self, g: Any, *inputs: Value | None, **changes: Any) -> Any:
        """The same operator of other operands, with other attributes."""
        return g[self.op](*inputs, outputs=self.outputs, **{**self.attrs, **changes})

    def as_is(self, g: Any, *inputs: Value | None, **changes: Any) -> Any:
        """The same, in a form that the target has."""
        return g.as_is(self.op, inputs, {**self.attrs, **changes}, self.outputs)


class Form(NamedTuple):
    """An operator in a configuration that a target lacks.

    ``what`` follows "has no Conv with" in messages and on pages. ``has`` tells whether a call is of
    the form, or says in which value or attribute. ``rewrite`` makes what stands for the call; None
    refuses it. ``advice`` says what a user can do.
    """

    what: str
    has: Callable[[Call], bool | str]
    rewrite: Callable[[Any, Call], Any] | None = None
    advice: str = ""

    def where(self, condition: Callable[[Call], object]) -> Form:
        """The form where a condition holds as well."""
        return self._replace(has=lambda call: bool(condition(call)) and self.has(call))

    def refusal(self, who: str, call: Call) -> str | None:
        """Why a target refuses a call of this form, None where the call is of another."""
        case = self.has(call)
        if not case:
            return None
        detail = f": {case}" if isinstance(case, str) else ""
        advice = f". {self.advice}" if self.advice else ""
        return f"{who} has no {call.op} with {self.what}{detail}{advice}"


Lacks = Mapping[str, Sequence[Form]]


def join_forms(*tables: Lacks) -> Lacks:
    """The forms of several tables by operator, in the order of the tables."""
    ops = dict.fromkeys(op for table in tables for op in table)
    return {op: [form for table in tables for form in table.get(op, ())] for op in ops}


def add_forms(rules: RuleTable, lacks: Lacks) -> RuleTable:
    """A table of rules that rewrite forms before the operator's own rule applies."""
    added = {}
    for op, forms in lacks.items():
        last = max((at for at, form in enumerate(forms) if form.rewrite is not None), default=-1)
        if last >= 0:  # what is only refused behind it need not be asked here
            rule = partial(_rewrite_form, op, tuple(forms[: last + 1]), rules.rules.get(op))
            added[op] = Rule.of(rule)
    return rules.merge(added)


def _rewrite_form(
    op: str, forms: Sequence[Form], rule: Rule | None, g: Any, *inputs: Any, outputs: int = 1,
    **attrs: Any,
) -> Any:  # fmt: skip
    """What stands for a call of a form; None where the target takes it, or is to refuse it."""
    call = Call(op, inputs, attrs, outputs, (), g)
    form = next((form for form in forms if form.has(call)), None)
    if form is not None and form.rewrite is not None:
        return form.rewrite(g, call)
    return None if rule is None else apply_rule(rule, g, call)


def apply_rule(rule: Rule, g: Any, call: Call) -> Any:
    """What a rule makes of a call."""
    bound = _BINDING.bind(rule, call.op, call.attrs)
    more = {"outputs": call.outputs} if "outputs" in rule.attributes else {}
    return rule.function(g, *call.inputs, **bound, **more)


# What is written


def by(function: Callable[..., Any], *without: str) -> Callable[[Any, Call], Any]:
    """A rewrite by a function of the operands and attributes, some of which it implies."""
    return partial(apply_rule, Rule.of(function, ignore=without))


def decompose(version: int, *without: str) -> Callable[[Any, Call], Any]:
    """A rewrite by the adapter below a version, which some attributes say nothing to."""

    def rewrite(g: Any, call: Call) -> Any:
        attrs = {n: v for n, v in call.attrs.items() if n not in without}
        return g.decompose(call.op, version, *call.inputs, outputs=call.outputs, **attrs)

    return rewrite


# Forms that backend files and consumers name alike


def any_operand(
    reason: Callable[[Value], str | None], *names: str, operator: schema.Operator | None = None
) -> Callable[[Call], bool | str]:
    """A test of every value under a name of the schema."""

    def has(call: Call) -> bool | str:
        values = (v for name in names for v in call.find_named(name, operator))
        return next((text for v in values if (text := reason(v)) is not None), False)

    return has


def require_constants(*names: str, operator: schema.Operator | None = None) -> list[Form]:
    """Operands that are to be constants."""

    def has(name: str, call: Call) -> bool | str:
        values = call.find_named(name, operator)
        return next((repr(v.name) for v in values if v.tensor is None), False)

    return [Form(f"computed {name!r}", partial(has, name), advice=CONSTANT) for name in names]


def refuse_operands(*names: str, operator: schema.Operator | None = None) -> list[Form]:
    """Optional operands and results that are not to be there."""

    def has(name: str, call: Call) -> bool | str:
        return next((repr(v.name) for v in call.find_named(name, operator)), False)

    advice = "Leave it out where the model is exported"
    return [Form(f"the optional {name!r}", partial(has, name), advice=advice) for name in names]


def require_zeros(*names: str, operator: schema.Operator | None = None) -> list[Form]:
    """Operands that are to be constants of zeros."""

    def reason(v: Value) -> str | None:
        is_zero = v.tensor is not None and not v.array().astype(float).any()
        return None if is_zero else repr(v.name)

    return [
        Form(
            f"{name!r} other than constant zeros",
            any_operand(reason, name, operator=operator),
            advice="Quantize the model with zeros for it",
        )
        for name in names
    ]


def require_ranks(
    name: str, ranks: Sequence[int], operator: schema.Operator | None = None
) -> list[Form]:
    """Operands of other numbers of axes than some."""

    def reason(v: Value) -> str | None:
        fits = v.shape is not None and len(v.shape) in ranks
        return None if fits else f"{v.name!r} has the shape {show_shape(v.shape)}"

    listed = " or ".join(map(str, ranks))
    has = any_operand(reason, name, operator=operator)
    return [Form(f"{name!r} of another rank than {listed}", has, advice="Reshape the data")]


def require_sizes(
    name: str, axes: Sequence[int] | slice | Callable[[Call], Iterable[int]] = slice(None),
    operator: schema.Operator | None = None,
) -> list[Form]:  # fmt: skip
    """Operands of which some axes have no number for a size."""

    def has(call: Call) -> bool | str:
        chosen = axes(call) if callable(axes) else axes
        for v in call.find_named(name, operator):
            rank = len(v.shape or ())
            over = range(rank)[chosen] if isinstance(chosen, slice) else chosen
            sizes = [(v.shape or ())[a] for a in over if -rank <= a < rank]
            if v.shape is None or any(not isinstance(n, int) for n in sizes):
                return f"{v.name!r} has the shape {show_shape(v.shape)}"
        return False

    listed = " and ".join(map(str, axes)) if isinstance(axes, Sequence) else ""
    where = f" along axis {listed}" if listed else ""
    return [Form(f"{name!r} of sizes by name{where}", has, advice=STATIC)]


def require_static() -> list[Form]:
    """Operands and results of sizes that are no numbers."""

    def has(call: Call) -> bool | str:
        values = (v for v in call.values if v.name and not v.is_static)
        return next((f"{v.name!r} has the shape {show_shape(v.shape)}" for v in values), False)

    return [Form("sizes by name", has, advice=STATIC)]
