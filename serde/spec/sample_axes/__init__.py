"""The axes along which an operator works sample by sample: one table, by operator.

An operator that has no entry may mix what lies along any axis.
"""

from __future__ import annotations

from serde.ir.graph import Node

from . import domains, elementwise, indexing, layers, sequences
from .table import ANY, RULES, SHARED, SampleAxis, integer

__all__ = ["ANY", "SHARED", "SampleAxis", "find_sample_axes", "has_sample_axes", "integer"]
assert all((domains, elementwise, indexing, layers, sequences))  # they fill the table


def has_sample_axes(op: str) -> bool:
    """Whether the table has an operator, by its qualified name."""
    return op in RULES


def find_sample_axes(node: Node) -> tuple[SampleAxis, ...]:
    """The axes along which a node works index by index; none for an unknown operator.

    Raises:
        ConversionError: where the rank of an operand is needed and not known.
    """
    rule = RULES.get(node.qualified_op)
    return () if rule is None else tuple(rule(node))
