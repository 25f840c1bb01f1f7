"""Normalizations and Dropout at opsets without them, or with other attributes and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.version_converter.adapters import normalization
from testing.version_converter.old import RNG, C, Old, X
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, UNKNOWN, Single

ONES = np.ones(3, np.float32)
COLUMN = C.reshape(-1, 1, 1)
STATISTICS = (C, ONES, C * 0.5, ONES * 2)
PER_ELEMENT = tuple(RNG.uniform(0.5, 1, X.shape[1:]).astype(np.float32) for _ in range(4))
MEAN, VAR = (f((0, 2, 3), keepdims=True) for f in (X.mean, X.var))


@pytest.mark.parametrize(("version", "op"), rules_of(normalization))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


def test_axes_from_the_back() -> None:
    case = Single("MeanVarianceNormalization", (X[0],), {"axes": [0, -1]})
    case.check((7, 12), [UNKNOWN])
    case.check((10, 17), [STATIC])


def test_statistics_of_halves() -> None:
    """Differences below what their squares can be."""
    x = (1 + np.arange(12).reshape(2, 2, 3) * 1e-3).astype(np.float16)
    ones, zeros = np.ones(2, np.float16), np.zeros(2, np.float16)
    norm = Single("BatchNormalization", (x, ones, zeros, zeros, ones), {"training_mode": 1},
                  outputs=3, opset=15, tolerance=1e-2)  # fmt: skip
    graph = norm.at(13, STATIC)
    assert {n.op for n in graph.nodes} >= {"Cast"}
    norm.check([13], [STATIC])


def normalize(x: np.ndarray, mean: Any = 0, var: Any = 1) -> np.ndarray:
    return (x - mean) / np.sqrt(var + 1e-5)


@pytest.mark.parametrize("case", [
    Old("BatchNormalization", 1, (X, *STATISTICS), {"consumed_inputs": [0] * 5, "is_test": 1},
        COLUMN * normalize(X, COLUMN * 0.5, 2) + 1),
    Old("BatchNormalization", 6, (X, *STATISTICS), {"is_test": 1, "momentum": 0.5},
        COLUMN * normalize(X, COLUMN * 0.5, 2) + 1),
    Old("BatchNormalization", 7, (X, *PER_ELEMENT), {"spatial": 0},
        PER_ELEMENT[0] * normalize(X, PER_ELEMENT[2], PER_ELEMENT[3]) + PER_ELEMENT[1]),
    Old("BatchNormalization", 9, (X, *STATISTICS), {"momentum": 0.75},
        (COLUMN * normalize(X, MEAN, VAR) + 1, C * 0.375 + MEAN.ravel() * 0.25,
         ONES * 1.5 + VAR.ravel() * 0.25), 3),
    Old("InstanceNormalization", 1, (X, C, ONES), {"consumed_inputs": [0], "epsilon": 1e-5},
        COLUMN * normalize(X, X.mean((2, 3), keepdims=True), X.var((2, 3), keepdims=True)) + 1),
    Old("Dropout", 1, (X,), {"is_test": 1}, X),
    Old("Dropout", 7, (X,), {"ratio": 0.3}, X),
    Old("Dropout", 7, (X,), {}, (X, np.ones_like(X)), 2),
    Old("Dropout", 10, (X,), {}, (X, np.ones(X.shape, bool)), 2),
], ids=lambda c: c.id)  # fmt: skip
def test_old_form(case: Old) -> None:
    case.check()


@pytest.mark.parametrize(("case", "reason"), [
    (Old("BatchNormalization", 9, (X, *STATISTICS), outputs=5), "saved mean"),
    (Old("BatchNormalization", 7, (X, *PER_ELEMENT), {"spatial": 0}, outputs=3), "spatial=0"),
], ids=lambda v: getattr(v, "id", ""))  # fmt: skip
def test_old_outputs_are_refused(case: Old, reason: str) -> None:
    case.check_refused(reason)
