"""Numbers of the text form: ``2``, ``3i64``, ``1e-05f``, ``inff``, ``True``.

TVM prints floats with six digits and reads any number of them. Here a float is printed with six
digits where these are exact, and otherwise with as many as it takes.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from serde.ir.graph import DType, Tensor

from .. import ast

_NUMBER = re.compile(
    r"(?P<digits>-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf|nan))(?:(?P<letter>[fi])(?P<bits>\d*))?"
)
_WIDTHS = {"f": ("16", "32", "64"), "i": ("8", "16", "32", "64")}
SUFFIXES = {
    "int16": "i16", "int32": "", "int64": "i64", "float16": "f16", "float32": "f", "float64": "f64",
}  # fmt: skip
SCALARS = frozenset((*SUFFIXES, "bool"))  # what TVM prints as literals; all else is metadata
MOST_DIGITS = 400


class LiteralError(ValueError):
    """The text is no number."""


def read_number(text: str, dtype: str | None = None) -> tuple[int | float, str]:
    """The value and TVM's name for the type of a number. ``dtype`` is that of one without suffix.

    Raises:
        LiteralError: for widths that do not exist, and values that do not fit.
    """
    match = _NUMBER.fullmatch(text)
    if match is None or len(text) > MOST_DIGITS:
        raise LiteralError(f"{text[:40]!r} is no number")
    digits, letter, bits = match["digits"], match["letter"], match["bits"]
    is_integer = digits.lstrip("-").isdigit()
    if letter:
        if bits and bits not in _WIDTHS[letter]:
            raise LiteralError(f"there are no numbers of {bits} bits: {text}")
        dtype = ("float" if letter == "f" else "int") + (bits or "32")
    elif dtype is None and is_integer:
        dtype = "int32" if -(1 << 31) <= int(digits) < 1 << 31 else "int64"
    elif dtype is None:
        dtype = "float64"
    if dtype.startswith(("float", "bfloat")):
        return float(digits), dtype
    if not is_integer:
        raise LiteralError(f"{text} is no integer")
    value = int(digits)
    if dtype == "bool":
        return value != 0, dtype
    low, high = _int_range(dtype)
    if not low <= value <= high:
        raise LiteralError(f"{text} does not fit in {dtype}")
    return value, dtype


def _int_range(dtype: str) -> tuple[int, int]:
    bits = int(re.sub(r"\D", "", dtype) or 32)
    top = 1 << (bits if dtype.startswith("u") else bits - 1)
    return (0 if dtype.startswith("u") else -top), top - 1


def make_scalar(value: Any, dtype: DType) -> Tensor:
    """A constant of rank 0. Floats too large become infinite, as in TVM."""
    with np.errstate(over="ignore"):
        return Tensor.of(np.array(value).astype(dtype.numpy))


def make_attribute(value: int | float, dtype: str) -> Any:
    """A number among attributes."""
    return value if dtype in ("int32", "float32", "bool") else ast.Imm(value, dtype)


def format_number(value: Any, dtype: str) -> str | None:
    """A number as TVM reads it; None for what it cannot read: NaN, and infinities but float32's."""
    if dtype == "bool":
        return str(bool(value))
    if dtype not in SUFFIXES:
        return None
    if not dtype.startswith("float"):
        return f"{int(value)}{SUFFIXES[dtype]}"
    number = float(value)
    if math.isnan(number) or (math.isinf(number) and dtype != "float32"):
        return None
    return format_float(number, dtype) + SUFFIXES[dtype]


def format_float(number: float, dtype: str = "float64") -> str:
    """The digits of a float: six where these are exact, otherwise as many as it takes."""
    kind = np.dtype(dtype).type
    shortest = np.format_float_scientific(kind(number), unique=True, trim="-")
    for text in (f"{number:g}", repr(float(shortest))):
        if kind(float(text)) == kind(number):
            return text
    return repr(number)
