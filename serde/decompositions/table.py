"""The table of decompositions: operators in terms of simpler ones, whatever the target.

Operators that came to the standard later have theirs in ``serde.version_converter.adapters``, as
what becomes of them below their first version.
"""

from __future__ import annotations

from collections.abc import Container

from serde import decompositions as families
from serde.rewrite.families import import_families
from serde.rewrite.rules import RuleTable

from .loops import WITHOUT_CONTROL_FLOW

decompositions = RuleTable("decompositions")
LOOPING = frozenset({"MaxRoiPool"})  # what becomes a Loop, which is not unrolled again


def add_decompositions(legalizations: RuleTable, supported: Container[str]) -> RuleTable:
    """The legalizations of a target, and the decomposition of each operator that it lacks.

    Without loops, all control flow is unrolled.
    """
    import_families(families.__name__, families.__path__)
    has_loops = "Loop" in supported
    table = decompositions if has_loops else decompositions.extend(WITHOUT_CONTROL_FLOW)
    lacking = {
        op: rule
        for op, rule in table.rules.items()
        if op not in supported and op not in legalizations and (has_loops or op not in LOOPING)
    }
    return legalizations.merge(lacking)
