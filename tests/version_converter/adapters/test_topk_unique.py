"""Clip, TopK, Unique and the places of extremes at opsets that lack them or hold bounds elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from serde.version_converter.adapters import topk_unique
from testing.version_converter.old import M, Old
from testing.version_converter.old import X as IMAGES
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

X = np.random.default_rng(11).standard_normal((2, 3, 4)).astype(np.float32)
CASES = [
    Single("TopK", (X, np.int64([2])), {"axis": 1}, outputs=2),
    Single("TopK", (X, np.int64([2])), {"axis": -1, "largest": 0}, outputs=2),
]


@pytest.mark.parametrize(("version", "op"), rules_of(topk_unique))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_counts_that_are_computed(case: Single) -> None:
    case.check((7,), [UNKNOWN])
    case.check((12,), [STATIC])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bounds_crossed(kind: type) -> None:
    """The upper one holds."""
    x = np.array([-1, 0.5, 3], kind)
    Single("Clip", (x, kind(2), kind(1)), {}, (1, 2)).check((8, 10, 11, 12), [STATIC])


@pytest.mark.parametrize("case", [
    Old("Clip", 1, (IMAGES,), {}, IMAGES),
    Old("Clip", 1, (IMAGES,), {"min": -0.5}, np.maximum(IMAGES, -0.5)),
    Old("Clip", 6, (IMAGES,), {"min": -0.5, "max": 0.5}, np.clip(IMAGES, -0.5, 0.5)),
    Old("TopK", 1, (M,), {"k": 2, "axis": 1}, None, 2),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()
