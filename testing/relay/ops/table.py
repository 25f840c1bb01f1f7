"""All cases, of every family."""

from __future__ import annotations

from . import cases_dynamic, cases_layouts, cases_nn, cases_quantized, cases_values, cases_vision
from .cases import CASES

FAMILIES = (
    cases_dynamic, cases_layouts, cases_nn, cases_quantized, cases_values, cases_vision,
)  # fmt: skip

__all__ = ["CASES", "FAMILIES"]
