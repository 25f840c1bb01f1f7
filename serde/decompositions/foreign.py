"""Operators of domains beside the standard's, for targets that have no such domain."""

from __future__ import annotations

from serde.rewrite.rules import RuleTable

# By domain; a format that carries a domain along enters what becomes of its operators elsewhere.
foreign_rules: dict[str, RuleTable] = {}


def find_rules(domain: str) -> RuleTable | None:
    """What becomes of the operators of a domain."""
    from .onnx_ml import DOMAIN, ml_rules  # which few models need

    return ml_rules if domain == DOMAIN else foreign_rules.get(domain)
