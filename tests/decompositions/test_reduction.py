"""Reductions in terms of simpler ones, compared with NumPy and with onnx's node tests."""

from __future__ import annotations

import numpy as np
import pytest

from serde.decompositions import reduction
from serde.decompositions.reduction import (
    extreme_of_booleans,
    extreme_of_infinite,
    global_average,
    global_lp_pool,
    global_max,
    log_sum_exp,
)
from testing.decomposed import check_decomposed, compute, operators_of

INF, NAN = np.inf, np.nan
X = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("op", operators_of(reduction))
def test_decomposed(op: str) -> None:
    check_decomposed(op)


@pytest.mark.parametrize(("op", "numpy_op"), [("ReduceMax", np.any), ("ReduceMin", np.all)])
def test_extremes_of_booleans(op, numpy_op) -> None:
    rows = np.array([[True, False], [False, False], [True, True]])
    (got,) = compute(lambda g, x: extreme_of_booleans(op, g, x, [1], keepdims=0), rows, opset=17)
    np.testing.assert_array_equal(got, numpy_op(rows, axis=1))


@pytest.mark.parametrize(("op", "numpy_op"), [("ReduceMax", np.max), ("ReduceMin", np.min)])
@pytest.mark.parametrize("named", [False, True])
def test_extremes_of_what_is_all_infinite(op, numpy_op, named: bool) -> None:
    rows = np.float32([[INF, INF], [-INF, -INF], [1, -INF], [INF, 2]])
    (got,) = compute(lambda g, x: extreme_of_infinite(op, g, x, [1], keepdims=0), rows, named=named)
    np.testing.assert_array_equal(got, numpy_op(rows, axis=1))


def test_extremes_of_nothing_are_the_ends() -> None:
    nothing = np.zeros((2, 0), np.float32)
    for op, end in (("ReduceMax", -INF), ("ReduceMin", INF)):
        (got,) = compute(
            lambda g, x, op=op: extreme_of_infinite(op, g, x, [1], keepdims=0), nothing
        )
        np.testing.assert_array_equal(got, [end, end])


@pytest.mark.parametrize("row", [[1000, 1001, 999], [-1000, -1001, -999], [-INF, 0, 1],
                                 [-INF, -INF, -INF], [INF, 0, 1]])  # fmt: skip
@pytest.mark.parametrize("keepdims", [0, 1])
def test_no_exponential_overflows(row: list[float], keepdims: int) -> None:
    x = np.float32([row])
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.reduce(x.astype(np.float64), axis=1, keepdims=bool(keepdims))
    (got,) = compute(
        lambda g, x: log_sum_exp(g, x, g.const([1]), keepdims=keepdims, noop_with_empty_axes=0), x
    )
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("named", [False, True])
def test_pools_of_all_places(named: bool) -> None:
    cases = [
        (global_average, X.mean((2, 3), keepdims=True)),
        (global_max, X.max((2, 3), keepdims=True)),
        (lambda g, x: global_lp_pool(g, x, p=3), np.cbrt((abs(X) ** 3).sum((2, 3), keepdims=True))),
    ]
    for emit, expected in cases:
        (got,) = compute(emit, X, named=named)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
