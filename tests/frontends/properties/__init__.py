"""A table of calls for every function that can be traced, drawn by hypothesis."""

from __future__ import annotations

from . import creation, elementwise, linalg, manipulation, methods, reductions, searching, signals

FAMILIES = (creation, elementwise, linalg, manipulation, methods, reductions, searching, signals)
CASES = {name: case for family in FAMILIES for name, case in family.CASES.items()}
