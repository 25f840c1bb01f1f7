"""Version adapters of an operator: which versions changed it, and their attributes bound."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from serde.errors import UnsupportedAttribute, show_attribute
from serde.ir.builder import normalize_attribute
from serde.ir.graph import IR_OPSET
from serde.rewrite.rules import Rule
from serde.spec import schema
from serde.version_converter.adapters import downgrades, families, upgrades  # noqa: F401  (fills the tables)


@lru_cache(schema.KEPT)
def next_change(op: str, opset: int, target: int) -> int | None:
    """The next version between ``opset`` and ``target`` that changes ``op``, None if none does."""
    if target < opset:
        return next((v for v in range(opset, target, -1) if op in downgrades.get(v, ())), None)
    return next((v for v in range(opset + 1, target + 1) if op in upgrades.get(v, ())), None)


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
