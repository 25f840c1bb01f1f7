"""Slice and Split at opsets that hold their bounds and sizes in attributes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import slicing
from testing.version_converter.old import M, Old, X
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

DRAWS = np.random.default_rng(11).standard_normal((2, 3, 4)).astype(np.float32)
ints = np.int64
BOUNDS = (
    ([1, -3], [100, -1], [2, -2]),
    ([-1, 2], [-100, 0], [2, -2], [-2, -1]),
    ([1, 0, 0], [2, 3, 2]),
    ([1, 0, 1], [2, -1, 2], None, [1, 2, 1]),
)


@pytest.mark.parametrize(("version", "op"), rules_of(slicing))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_bounds_that_are_computed(bounds: tuple[list[int] | None, ...]) -> None:
    case = Single("Slice", (DRAWS, *(None if b is None else ints(b) for b in bounds)))
    case.check((7,), [UNKNOWN])
    case.check((12,), [STATIC])


@pytest.mark.parametrize("case", [
    Old("Slice", 1, (X,), {"starts": [1, 0], "ends": [3, -1], "axes": [1, 3]}, X[:, 1:3, :, :-1]),
    Old("Slice", 1, (M,), {"starts": [0, 1], "ends": [1, 1000]}, M[:1, 1:]),
    Old("Split", 1, (X,), {"axis": 1, "split": [1, 2]}, (X[:, :1], X[:, 1:]), 2),
    Old("Split", 1, (X, np.float32([1, 1])), {"axis": 0}, (X[:1], X[1:]), 2, held=(1,)),
    Old("Split", 2, (X,), {"axis": 2}, (X[:, :, :2], X[:, :, 2:]), 2),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()


@pytest.mark.parametrize(("total", "count"), [(7, 3), (6, 3), (2, 3)])
def test_parts_whose_number_is_named(total: int, count: int) -> None:
    """The last part is what is left, maybe nothing; sizes are known from opset 18 on only."""
    x = np.arange(2 * total, dtype=np.float32).reshape(2, total)
    case = Single("Split", (x,), {"axis": 1, "num_outputs": count}, outputs=count)
    case.check((7, 13, 17), [STATIC])
