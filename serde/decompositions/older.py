"""What operators were before they came to the standard."""

from __future__ import annotations

from typing import Any

from serde.ir.graph import Value
from serde.version_converter.adapters import below


def older(
    g: Any, version: int, op: str, *inputs: Value | None, outputs: int = 1, **attrs: Any
) -> Any:
    """What the standard's older operators make of one that came with ``version``."""
    rule = below[version].rules[op]
    counted = {"outputs": outputs} if "outputs" in rule.attributes else {}
    return rule.function(g, *inputs, **attrs, **counted)
