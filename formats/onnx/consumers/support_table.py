"""Support tables of consumers, as text."""

from __future__ import annotations

import numpy as np

from serde.ir.graph import DType

Supported = dict[str, dict[str, frozenset[DType]]]


def parse_table(text: str) -> Supported:
    """The element types by operator and type variable.

    A line has an operator and, for each type variable, the types as NumPy spells them:
    ``Gather T=f4,i8 Tind=i8``.
    """
    return dict(_parse_line(line) for line in text.splitlines() if line)


def _parse_line(line: str) -> tuple[str, dict[str, frozenset[DType]]]:
    op, *variables = line.split()
    parts = (v.partition("=") for v in variables)
    return op, {name: _parse_types(types) for name, _, types in parts}


def _parse_types(text: str) -> frozenset[DType]:
    return frozenset(DType(np.dtype(t).name) for t in text.split(","))
