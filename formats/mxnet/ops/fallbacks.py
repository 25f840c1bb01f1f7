"""What legalizations of several families share: wider types, and the standard's older operators."""

from __future__ import annotations

from serde.decompositions.expressions import cast
from serde.ir.graph import DType
from serde.version_converter.adapters import below

LAST = 2**63 - 1  # an end that is no end
WIDE = (DType.FLOAT32, DType.FLOAT64)


def find_standard_rule(version: int, op: str):
    """The standard's own rule for what an operator was before ``version``."""
    return below[version].rules[op].function


def legalize_wide(op, g, *operands, **attrs):
    """MXNet multiplies no half floats on a processor: in wide ones."""
    if operands[0].type is not DType.FLOAT16:
        return None
    wide = (None if v is None else cast(g, v, DType.FLOAT32) for v in operands)
    return cast(g, g[op](*wide, **attrs), DType.FLOAT16)
