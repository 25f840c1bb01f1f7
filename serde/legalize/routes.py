"""Where an operator of one opset goes on its way to a target: one step, looked up once."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from serde.errors import UnsupportedAttribute, show_attribute
from serde.ir.builder import normalize_attribute
from serde.ir.graph import IR_OPSET
from serde.rewrite.families import import_families
from serde.rewrite.rules import Rule, RuleTable
from serde.spec import schema
from serde.spec.memo import memoize
from serde.version_converter import adapters
from serde.version_converter.adapters import downgrades, upgrades

from .target import Target

import_families(adapters.__name__, adapters.__path__)  # which fill the tables


class Way(enum.Enum):
    """What a step is: a change of version, or where versions end."""

    UP, DOWN = "up", "down"
    IR, TARGET = "the form that targets are asked about", "a version that the target has"


class Step(NamedTuple):
    """The next step of an operator; ``rule`` writes operators of opset ``speaks``."""

    way: Way
    speaks: int = IR_OPSET
    table: RuleTable | None = None
    rule: Rule | None = None


@lru_cache(schema.KEPT)
def next_change(op: str, opset: int, target: int) -> int | None:
    """The next version between ``opset`` and ``target`` that changes ``op``, None if none does."""
    if target < opset:
        return next((v for v in range(opset, target, -1) if op in downgrades.get(v, ())), None)
    return next((v for v in range(opset + 1, target + 1) if op in upgrades.get(v, ())), None)


def next_step(target: Target, op: str, opset: int, is_lowering: bool) -> Step:
    """The step from ``opset``; ``is_lowering``: the target was asked, and older forms follow."""
    key = op, opset, is_lowering
    step = target.memo.get(key)
    if step is None:
        step = memoize(target.memo, key, lambda: _find_step(target, *key))
    return step  # type: ignore[no-any-return]


def _find_step(target: Target, op: str, opset: int, is_lowering: bool) -> Step:
    lowest = target.lowest_opset(op)
    is_direct = target.is_standard and opset >= target.opset
    is_older = opset < IR_OPSET and lowest < min(opset, target.opset)
    if is_lowering or is_direct or is_older:
        version = next_change(op, opset, lowest) if lowest < opset else None
        if version is None:
            return Step(Way.TARGET, target.opset)
        return Step(Way.DOWN, version - 1, downgrades[version], downgrades[version].rules[op])
    version = next_change(op, opset, IR_OPSET)
    if version is None:
        return Step(Way.IR)
    return Step(Way.UP, version, upgrades[version], upgrades[version].rules[op])


def with_outputs(rule: Rule, bound: dict[str, Any], outputs: int) -> dict[str, Any]:
    """Add the number of outputs in use, for a rule that declares ``outputs``."""
    return {**bound, "outputs": outputs} if "outputs" in rule.attributes else bound


def drop_neutral(
    operator: schema.Operator, attrs: Mapping[str, Any], newest: int, lacking: int
) -> dict[str, Any]:
    """Attributes without those ``operator`` lacks, if they have the value of no effect.

    ``newest`` is the opset whose defaults have no effect, ``lacking`` the one to name in a refusal.
    """
    attributes = {k: v for k, v in attrs.items() if v is not None}
    extra = attributes.keys() - operator.attributes
    if not extra:
        return attributes
    defaults = schema.operator(operator.name, newest).defaults
    for name in sorted(extra):
        if normalize_attribute(attributes.pop(name)) != defaults.get(name):
            shown = f"{name}={show_attribute(attrs[name])}"
            raise UnsupportedAttribute(
                f"{operator.name} has no {shown} at opset {lacking}{_hint(operator.name, name)}"
            )
    return attributes


def _hint(op: str, attribute: str) -> str:
    """The opset that has an attribute: the last one, or else the lowest."""
    versions = (v for v in range(1, IR_OPSET + 1) if (o := schema.find(op, v)) and
                attribute in o.attributes)  # fmt: skip
    opsets = list(versions)
    if not opsets:
        return ""
    if opsets[-1] < IR_OPSET:
        return f"; opset {opsets[-1]} is the last that has it"
    return f"; opset {opsets[0]} is the lowest that has it"
