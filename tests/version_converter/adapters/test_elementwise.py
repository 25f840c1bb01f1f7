"""Arithmetic, comparisons and choices at opsets that lack them, or some of their types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.version_converter.adapters import elementwise
from testing.node_cases import Case, convert, difference, onnxruntime_results
from testing.version_converter.old import POSITIVE, C, M, Old, X
from testing.version_converter.rules import check_rule, rules_of
from testing.version_converter.single import STATIC, Single

INF, NAN = np.inf, np.nan
COLUMN = C.reshape(-1, 1, 1)
WORDS = np.array([["a", "b", ""], ["b", "ä", "a"]], object)
DIVIDENDS = [5.3, -5.3, 5.3, -5.3, 0, 1e30, 1e300, 3, INF, 1, NAN, 2, -7.5, 1e-300, 0.3]
DIVISORS = [2, 2, -2, -2, 3, 3, 7e-5, INF, 2, NAN, 1, 0, 2.5, 5e-310, 0.1]


@pytest.mark.parametrize(("version", "op"), rules_of(elementwise))
def test_rule(version: int, op: str) -> None:
    check_rule(version, op)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_remainder_is_exact(kind: type) -> None:
    """Of divisors and dividends of every size."""
    with np.errstate(over="ignore"):
        a, b = (np.array(v, np.float64).astype(kind) for v in (DIVIDENDS, DIVISORS))
    Single("Mod", (a, b), {"fmod": 1}, tolerance=0).check([9], [STATIC])


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_extremes_that_old_runtimes_lack(op: str) -> None:
    """Float64 below opset 8, uint64 below 12: numbers beyond int64, NaN."""
    floats = [v.ravel() for v in np.meshgrid(*[[NAN, INF, -INF, 0.0, -1.0, 2.0]] * 3)]
    integers = np.array([0, 5, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    pair = np.repeat(integers, 5), np.tile(integers, 5)
    check_in_onnxruntime(Single(op, tuple(floats)).case(STATIC), (7, 8))
    check_in_onnxruntime(Single(op, pair).case(STATIC), (7, 9, 11))


def check_in_onnxruntime(case: Case, opsets: Sequence[int]) -> None:
    for opset in opsets:
        for feeds, expected in case.data:
            for _, got in onnxruntime_results(convert(case.model, opset), feeds):
                assert not isinstance(got, Exception), (opset, got)
                assert difference(case, expected, got) is None


def test_strings_compared() -> None:
    """Unique compares them from opset 11 on; before, nothing does."""
    case = Single("Equal", (WORDS, np.array(["a", "ä", "a"], object)))
    case.check((11, 18))
    with pytest.raises(Unconvertible, match="opset 11 is the lowest"):
        case.at(10, STATIC)


OLD = [
    Old("Add", 6, (X, C), {"broadcast": 1, "axis": 1}, X + COLUMN),
    Old("Add", 6, (X, X[0, 0]), {"broadcast": 1}, X + X[0, 0]),
    Old("Add", 1, (X, X), {"consumed_inputs": [0, 0]}, X + X),
    Old("Sub", 1, (X, C), {"broadcast": 1, "axis": -3}, X - COLUMN),
    Old("Mul", 6, (X, X[:, :, 0, 0]), {"broadcast": 1, "axis": 0}, X * X[:, :, :1, :1]),
    Old("Div", 6, (X, POSITIVE), {}, X / POSITIVE),
    Old("Pow", 1, (POSITIVE, C), {"broadcast": 1, "axis": 1}, POSITIVE**COLUMN),
    Old("And", 1, (X > 0, C > 0), {"broadcast": 1, "axis": 1}, (X > 0) & (COLUMN > 0)),
    Old("Greater", 1, (X, C), {"broadcast": 1, "axis": 1}, COLUMN < X),
    Old("Equal", 1, (np.int32([[1, 2]]), np.int32([1])), {"broadcast": 1}, [[True, False]]),
    Old("Gemm", 6, (M, M.T, C[:2]), {"broadcast": 1}, M @ M.T + C[:2]),
    Old("Relu", 1, (X,), {"consumed_inputs": [0]}, np.maximum(X, 0)),
    Old("Selu", 1, (X,), {}, 1.0507 * np.where(X > 0, X, 1.6732 * (np.exp(X) - 1))),
    Old("Sum", 1, (X, X, X), {"consumed_inputs": [0, 0, 0]}, 3 * X),
    Old("Max", 6, (X, POSITIVE), {}, np.maximum(X, POSITIVE)),
    Old("Erf", 9, (X,), {}, None),
    Old("Mod", 10, (np.int64([5, -5]), np.int64([3, 3])), {}, np.int64([2, 1])),
]


@pytest.mark.parametrize("case", OLD, ids=lambda c: c.id)
def test_old_form(case: Old) -> None:
    case.check()
