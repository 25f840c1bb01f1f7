"""Pad at opsets that hold its amounts in an attribute, or lack some of its modes."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import padding
from testing.version_converter.old import M, Old
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

X = np.random.default_rng(11).standard_normal((2, 3, 4)).astype(np.float32)
ROWS = np.float32([[1, np.inf, 2, -np.inf, 3], [np.nan, 1, 2, 3, 4]])
ints = np.int64
PADS = [
    Single("Pad", operands, {"mode": mode})
    for mode in ("constant", "edge", "reflect", "wrap")
    for operands in ((X, ints([1, 1, 2, 0]), np.float32(2), ints([-1, 1])),
                     (X, ints([0, 1, 1, 1, 0, 2]), np.float32(2)),
                     (X, ints([0, -1, 1, 1, 1, -2]), np.float32(2)))
]  # fmt: skip
CROPS = [
    Single("CenterCropPad", (X, ints([5, 1])), {"axes": [-1, -3]}),
    Single("CenterCropPad", (X, ints([1, 6])), {"axes": [-2, 2]}, (1,)),
]


@pytest.mark.parametrize(("version", "op"), rules_of(padding))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("case", PADS, ids=lambda c: c.id)
def test_amounts_that_are_computed(case: Single) -> None:
    case.check((7,), [UNKNOWN])
    case.check((12,), [STATIC])


@pytest.mark.parametrize("case", CROPS, ids=lambda c: c.id)
def test_axes_from_the_back(case: Single) -> None:
    case.check((7, 12), [UNKNOWN])
    case.check((10, 17), [STATIC])


def test_pads_that_cut_off_pads() -> None:
    Single("Pad", (ROWS, ints([0, 2, 0, -6]), np.float32(7)), {}, (1, 2)).check((8, 10), [STATIC])


@pytest.mark.parametrize("case", [
    Old("Pad", 1, (M,), {"paddings": [0, 1, 2, 0], "value": 3.0},
        np.pad(M, [(0, 2), (1, 0)], constant_values=3)),
    Old("Pad", 2, (M,), {"pads": [0, 1, 0, 2], "mode": "edge"},
        np.pad(M, [(0, 0), (1, 2)], "edge")),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()
