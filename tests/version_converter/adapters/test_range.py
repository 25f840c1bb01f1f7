"""Counting, running totals, triangles and unit matrices without their operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.version_converter.adapters import range as ranges
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

X = np.random.default_rng(11).standard_normal((2, 3, 4)).astype(np.float32)
INF, NAN = np.inf, np.nan
ROWS = np.float32([[1, INF, 2, -INF, 3], [NAN, 1, 2, 3, 4], [-INF, 1, INF, 5, NAN]])
WAYS = [{"exclusive": e, "reverse": r} for e in (0, 1) for r in (0, 1)]


@pytest.mark.parametrize(("version", "op"), rules_of(ranges))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_axes_that_are_computed(op: str, way: dict[str, int], axis: int) -> None:
    older, newer = (17, 17) if op == "CumProd" else (7, 12)
    case = Single(op, (X, np.int64(axis)), way)
    case.check((older,), [UNKNOWN])
    case.check((newer,), [STATIC])


@pytest.mark.parametrize("attrs", WAYS[:3], ids=str)
def test_running_totals(attrs: dict[str, Any]) -> None:
    """An infinity makes no NaN of the totals that it is no part of."""
    Single("CumSum", (ROWS, np.int64(1)), attrs, (1,)).check((8, 10), (UNKNOWN, STATIC))


@pytest.mark.parametrize("bounds", [(1, 9, 3), (5, -2, -2), (3, 3, 1), (3, 1, 1), (0.5, 2, 0.5)])
def test_counts_that_are_computed(bounds: tuple[float, ...]) -> None:
    kind = np.float32 if 0.5 in bounds else np.int64
    Single("Range", tuple(map(kind, bounds))).check((8, 10), [STATIC])
