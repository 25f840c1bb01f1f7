"""Support tables of consumers, as text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from serde.ir.graph import DType, Node
from serde.version_converter.element_types import BORN

MEASURED = frozenset({DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BOOL})
MEASURED |= {DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
# Types of opsets after 17 (8-bit floats, 4-bit integers) are stored in wider ones.
EMULATED = frozenset(d for d, opset in BORN.items() if opset > 17)
Supported = dict[str, dict[str, frozenset[DType]]]


def parse_table(text: str) -> Supported:
    """The element types by operator and type variable.

    A line has an operator and, for each type variable, the types as NumPy spells them:
    ``Gather T=f4,i8 Tind=i8``.
    """
    return dict(_parse_line(line) for line in text.splitlines() if line)


def unmeasured_type(node: Node) -> str | None:
    """Cast: between types that are measured."""
    types = [v.dtype for v in (*node.inputs, *node.outputs) if v is not None]
    wrong = (d for d in types if d is not None and d not in MEASURED)
    return next((f"no {d.value} elements" for d in wrong), None)


def _parse_line(line: str) -> tuple[str, dict[str, frozenset[DType]]]:
    op, *variables = line.split()
    parts = (v.partition("=") for v in variables)
    return op, {name: _parse_types(types) for name, _, types in parts}


def _parse_types(text: str) -> frozenset[DType]:
    return frozenset(DType(np.dtype(t).name) for t in text.split(","))


def without_types(table: Supported, ops: Iterable[str], types: frozenset[DType]) -> Supported:
    """The table with fewer element types of some operators."""
    fewer = {op: {tie: of - types for tie, of in table[op].items()} for op in ops}
    return {**table, **fewer}
