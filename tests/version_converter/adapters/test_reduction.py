"""Reductions at opsets that hold their axes in an attribute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.version_converter.adapters import reduction
from testing.version_converter.old import Old, X
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

KINDS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
DRAWS = np.random.default_rng(11).standard_normal((2, 3, 4)).astype(np.float32)
POSITIVE = np.abs(DRAWS) + np.float32(0.5)


@pytest.mark.parametrize(("version", "op"), rules_of(reduction))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("kind", KINDS.split())
@pytest.mark.parametrize(("axes", "attrs"), [
    ([-1, 0], {"keepdims": 0}), ([-1, 0], {"keepdims": 1}),
    ([], {"noop_with_empty_axes": 0}), ([], {"noop_with_empty_axes": 1}),
])  # fmt: skip
def test_axes_that_are_computed(kind: str, axes: list[int], attrs: dict[str, Any]) -> None:
    case = Single(f"Reduce{kind}", (POSITIVE, np.int64(axes)), attrs)
    case.check((7,), [UNKNOWN])
    case.check((12,), [STATIC])


@pytest.mark.parametrize("case", [
    Old("ReduceSum", 1, (X,), {"axes": [1, 2], "keepdims": 0}, X.sum((1, 2))),
    Old("ReduceMax", 1, (X,), {}, X.max(keepdims=True)),
    Old("ReduceLogSumExp", 1, (X,), {"axes": [-1]}, np.log(np.exp(X).sum(-1, keepdims=True))),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()
