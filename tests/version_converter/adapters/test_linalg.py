"""Determinants without Det."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import linalg
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

DRAWS = np.random.default_rng(11).standard_normal((2, 4, 4)).astype(np.float32)
ROWS = {
    "random": DRAWS,
    "one row": DRAWS[:, :1, :1],
    "zero at the first place": np.float32([[0, 1, 2], [1, 0, 3], [4, -3, 8]]),
    "zeros in a column": np.float32([[0, 0, 2], [0, 0, 3], [4, -3, 8]]),
    "dependent": np.float32([[1, 2], [2, 4]]),
}


@pytest.mark.parametrize(("version", "op"), rules_of(linalg))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("rows", ROWS)
def test_determinants(rows: str) -> None:
    case = Single("Det", (ROWS[rows],))
    case.check((7,), [UNKNOWN])
    case.check((10,), [STATIC])
