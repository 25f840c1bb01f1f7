"""Gathering and scattering at opsets without these operators, or without their reductions."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import indexing
from testing.version_converter.old import M, Old
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

X = np.random.default_rng(11).standard_normal((2, 3, 4)).astype(np.float32)
ints = np.int64
CASES = [
    Single("GatherND", (X, ints([[0, 1], [1, -1]]))),
    Single("GatherND", (X, ints([[[0], [1]], [[1], [2]]])), {"batch_dims": 1}),
    Single("ScatterND", (X, ints([[0, 1], [1, 2]]), X[0, :2])),
]


@pytest.mark.parametrize(("version", "op"), rules_of(indexing))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_places_that_are_computed(case: Single) -> None:
    case.check((7,), [UNKNOWN])
    case.check((12,), [STATIC])


@pytest.mark.parametrize("axis", [-3, -2, -1, 1])
def test_one_hot_along_axes_from_the_back(axis: int) -> None:
    places = ints([[0, -1, 2], [1, 1, 9]])
    case = Single("OneHot", (places, ints(4), np.float32([2, 5])), {"axis": axis})
    case.check((7, 12), [UNKNOWN])
    case.check((10, 17), [STATIC])


@pytest.mark.parametrize("reduction", ["max", "min"])
def test_scattered_extremes_of_integers(reduction: str) -> None:
    """What is neutral is the end of the type, which has no absolute value."""
    x, at, new = ints([[5], [-3]]), ints([[1]]), ints([[2]])
    Single("ScatterElements", (x, at, new), {"reduction": reduction}, (1, 2)).check((8, 13))


def test_shapes_without_elements() -> None:
    """A size of 0 is one, not that of the operand."""
    cache, update = np.zeros((1, 0, 2), np.float32), np.zeros((1, 0, 1), np.float32)
    Single("TensorScatter", (cache, update, ints([1])), {"axis": 2}).check((7, 8), [STATIC])


@pytest.mark.parametrize("case", [
    Old("Scatter", 9, (M, ints([[1, 0, 1]]), M[:1] * 2), {"axis": 0}, None),
    Old("OneHot", 9, (ints([1, 0]), ints(3), np.float32([2, 5])), {},
        np.float32([[2, 5, 2], [5, 2, 2]])),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()
