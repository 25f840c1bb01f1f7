"""Support tables of consumers, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from serde.ir.graph import DType
from serde.legalize.forms.form import Form
from serde.version_converter.element_types import BORN

from .narrow_floats import find_other_type

MEASURED = frozenset({DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BOOL})
MEASURED |= {DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
# Types of opsets after 17 (8-bit floats, 4-bit integers) are stored in wider ones.
EMULATED = frozenset(d for d, opset in BORN.items() if opset > 17)
OTHERS = {  # types that NumPy has not, as MLIR spells them but for the integers
    "bf16": DType.BFLOAT16, "f8E4M3FN": DType.FLOAT8E4M3FN, "f8E4M3FNUZ": DType.FLOAT8E4M3FNUZ,
    "f8E5M2": DType.FLOAT8E5M2, "f8E5M2FNUZ": DType.FLOAT8E5M2FNUZ, "int4": DType.INT4,
    "uint4": DType.UINT4,
}  # fmt: skip
Supported = dict[str, dict[str, frozenset[DType]]]


def parse_table(text: str) -> Supported:
    """The element types by operator and type variable."""
    return {op: _parse_types(types) for op, types in split_table(text).items()}


def split_table(text: str) -> dict[str, str]:
    """The text of the element types by operator.

    A paragraph, whose lines but the first are indented, has the types for each type variable, as
    NumPy spells them (others: ``OTHERS``), and the operators that have these:
    ``T=f4,i8 Tind=i8: Gather Slice``.
    """
    paragraphs = (p.partition(":") for p in re.split(r"\n(?! )", text.strip("\n")))
    operators = {op: types for types, _, ops in paragraphs for op in ops.split()}
    return dict(sorted(operators.items()))


UNMEASURED = Form("other element types", lambda call: find_other_type(call, MEASURED))


def _parse_types(text: str) -> dict[str, frozenset[DType]]:
    parts = (variable.partition("=") for variable in text.split())
    return {name: frozenset(map(_parse_type, types.split(","))) for name, _, types in parts}


def _parse_type(text: str) -> DType:
    return OTHERS[text] if text in OTHERS else DType(np.dtype(text).name)


def without_types(table: Supported, ops: Iterable[str], types: frozenset[DType]) -> Supported:
    """The table with fewer element types of some operators."""
    fewer = {op: {tie: of - types for tie, of in table[op].items()} for op in ops}
    return {**table, **fewer}
