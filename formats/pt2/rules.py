"""The rule table of ATen operators: arguments in the order of their schemas."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from serde.errors import ConversionError, UnsupportedAttribute, show_attribute
from serde.ir.builder import Builder
from serde.ir.graph import Node, Value
from serde.rewrite.rules import Rule, RuleTable

from .io.weights import DTYPES
from .operands import Number, Operand
from .signatures import SIGNATURES

# What no result depends on: where and how tensors lie, and how gradients are computed.
IGNORED = frozenset(
    "device layout pin_memory non_blocking memory_format cudnn_enabled cudnn_enable sparse"
    " scale_grad_by_freq implicit sparse_grad requires_grad compute_mode stable sorted".split()
)
REQUIRED = "required"
LITERALS = {"None": None, "True": True, "False": False, "[]": ()}
SIZES = ("SymInt", "int")
REASONS = {
    "rand": "draws random numbers: pass them to the module as an input",
    "higher_order.cond": "control flow in subgraphs is not read: export each branch by itself",
    "higher_order.while_loop": "control flow in subgraphs is not read: write the loop in Python",
}
REASONS |= dict.fromkeys(
    "randn randint randint.low randperm rand_like randn_like bernoulli bernoulli.p multinomial"
    " normal.Tensor_Tensor normal_functional uniform".split(), REASONS["rand"],
)  # fmt: skip


class Parameter(NamedTuple):
    """An argument of an operator, as its schema declares it."""

    name: str
    kind: str
    default: Any


@lru_cache(4096)
def signature_of(op: str) -> tuple[Parameter, ...] | None:
    """The arguments of an operator, None for what is not in the table."""
    text = SIGNATURES.get(op)
    if text is None:
        return None
    return tuple(_parse(part) for part in text.split(", ") if part)


def _parse(part: str) -> Parameter:
    kind, _, rest = part.partition(" ")
    name, is_optional, default = rest.partition("=")
    return Parameter(name, kind, _literal(default) if is_optional else REQUIRED)


def _literal(text: str) -> Any:
    if text in LITERALS:
        return LITERALS[text]
    if text.startswith('"'):
        return text.strip('"')
    if text.startswith("["):
        return tuple(int(t) for t in text.strip("[]").split(","))
    return float(text) if "." in text or "e" in text else int(text)


class AtenTable(RuleTable):
    """A rule takes the arguments of its operator in their order, as many as it declares.

    What it does not declare has to be the default. A size or a number that is computed is a tensor
    of shape (1,); as a ``Scalar`` or in place of a tensor it is a ``Number``.
    """

    def apply(self, node: Node, builder: Builder, inputs: tuple[Value | None, ...]) -> Any:
        """Emit what a node becomes."""
        try:
            rule = self._rules.get(node.op)
            if rule is None:
                raise self._no_rule(node.op)
            positional, named = bind(rule, node, inputs)
            results = rule.function(builder, *positional, **named)
        except ConversionError as error:
            place = node.sources[0].doc if node.sources else ""
            if place and place not in error.reason:
                raise type(error)(f"{error.reason} [{place}]") from error
            raise
        return results if isinstance(results, tuple) else (results,)

    def refusal(self, node: Node) -> ConversionError | None:
        """Why ``node`` cannot be converted, as far as is known without its operands."""
        return None if node.op in self._rules else self._no_rule(node.op)


def bind(rule: Rule, node: Node, inputs: tuple[Value | None, ...]) -> tuple[list[Any], Any]:
    """The arguments that a rule is called with."""
    signature = signature_of(node.op)
    if signature is None:
        signature = tuple(Parameter(n, "Scalar", REQUIRED) for n in node.attrs)
    if unknown := sorted(node.attrs.keys() - {p.name for p in signature}):
        raise UnsupportedAttribute(f"unknown argument {', '.join(unknown)}")
    _, most = rule.operands
    positional: list[Any] = []
    named = {}
    for at, parameter in enumerate(signature):
        raw = node.attrs.get(parameter.name, parameter.default)
        if isinstance(raw, str) and raw == REQUIRED:
            raise ConversionError(f"argument {parameter.name!r} is missing")
        is_declared = parameter.name in rule.attributes
        if is_declared or most is None or at < most:
            value = _fill(raw, parameter.kind, inputs)
            if is_declared:
                named[parameter.name] = value
            else:
                positional.append(value)
        elif parameter.name not in IGNORED | rule.ignore and not _is_default(raw, parameter):
            raise UnsupportedAttribute(f"{parameter.name}={show_attribute(raw)} is not supported")
    return positional, named


def _is_default(raw: Any, parameter: Parameter) -> bool:
    return bool(raw == parameter.default)


def _fill(raw: Any, kind: str, inputs: tuple[Value | None, ...]) -> Any:
    """An argument with its values in place."""
    if isinstance(raw, Operand):
        value = inputs[raw.place]
        return Number(value) if raw.is_number and not kind.startswith(SIZES) else value
    if isinstance(raw, tuple):
        return tuple(_fill(r, kind.removesuffix("[]"), inputs) for r in raw)
    if isinstance(raw, str) and raw.startswith("dtype:"):
        dtype = DTYPES.get(int(raw.removeprefix("dtype:")))
        if dtype is None:
            raise ConversionError(f"element type {raw} is not read: use another")
        return dtype
    if kind.endswith("]") and not kind.startswith("Tensor") and isinstance(raw, int):
        return (raw,)
    return raw


reads = AtenTable("aten → ir", reasons=REASONS)
