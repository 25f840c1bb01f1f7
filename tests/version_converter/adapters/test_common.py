"""What rules of several families need, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from serde.errors import ConversionError
from serde.ir.graph import DType
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters.common import (
    MOST,
    broadcast_shapes,
    cast,
    count_range,
    lay_along,
    require_constant_axis,
    require_constant_ints,
    require_expandable,
    size,
    sum_by_factors,
    widen_float,
)
from testing.onnx_live import run

INF = np.inf
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def compute(emit: Callable[..., Any], *arrays: np.ndarray, is_static: bool = False) -> np.ndarray:
    """What ONNX Runtime makes of it at opset 9, with sizes that are known or have names."""
    g = OnnxBuilder("one")
    feeds = {f"x{i}": a for i, a in enumerate(arrays)}
    inputs = [
        g.input(name, DType.of(a.dtype), tuple(a.shape if is_static else map(name.__add__, "abc")))
        for name, a in feeds.items()
    ]
    (got,) = run(g.build([emit(g, *inputs)]), feeds, 9)
    return got


def test_what_is_too_many_to_unroll_is_refused() -> None:
    assert require_expandable(MOST, "a cube") == MOST and require_expandable(0, "none", 0) == 0
    for count, most in ((MOST + 1, MOST), (-1, MOST), (4, 3)):
        with pytest.raises(ConversionError, match=f"a cube of {count} is too many to unroll"):
            require_expandable(count, "a cube", most)


def test_operands_that_have_to_be_constant() -> None:
    g = OnnxBuilder("one")
    computed, empty = g.input("a", DType.INT64, (1,)), g.input("b", DType.INT64, (0,))
    x, scalar = g.input("x", DType.FLOAT32, (2, 3)), g.input("y", DType.FLOAT32, ())
    assert require_constant_ints(empty, "axes", 13) == ()
    assert require_constant_ints(g.const([1, -2]), "axes", 13) == (1, -2)
    assert require_constant_axis(g.const(-1, DType.INT64), x, 11) == 1
    with pytest.raises(ConversionError, match="axes must be constant below opset 13"):
        require_constant_ints(computed, "axes", 13)
    for axes, of in (([0, 1], x), ([0], scalar)):
        with pytest.raises(ConversionError, match="the axis .* axes"):
            require_constant_axis(g.const(axes), of, 11)


def test_casts_that_change_nothing_are_none() -> None:
    g = OnnxBuilder("one")
    for dtype, wide in ((DType.FLOAT16, DType.FLOAT32), (DType.FLOAT64, DType.FLOAT64)):
        x = g.input(dtype.value, dtype, (2,))
        assert cast(g, x, dtype) is x and cast(g, x, None) is x
        assert widen_float(g, x).dtype is wide and (widen_float(g, x) is x) == (dtype is wide)


@pytest.mark.parametrize(
    "row", [[1, 2, 3], [1, INF, 2], [-INF, 1, 2], [INF, -INF, 1], [1, np.nan, 2]]
)
def test_sums_by_factors_of_what_is_not_finite(row: list[float]) -> None:
    """Factors of 0 take an infinity out, of which 0 times it would make NaN."""
    x, factors = np.float32([row]), np.float32([[1, 0, 1], [1, 1, 0], [0, 1, 0]])
    got = compute(lambda g, v: sum_by_factors(g, v, lambda u: g.MatMul(u, g.const(factors))),
                  x, is_static=True)  # fmt: skip
    with np.errstate(invalid="ignore"):
        sums = [x[0, column != 0].sum() for column in factors.T]
    np.testing.assert_array_equal(got, [sums])


@pytest.mark.parametrize("axis", [0, 2, -1, -2])
def test_sizes_and_numbers_along_an_axis(axis: int) -> None:
    assert compute(lambda g, x: size(g, x, axis), X).tolist() == [X.shape[axis]]
    got = compute(lambda g, x: lay_along(g, count_range(g, size(g, x, axis)), axis % 3, 3), X)
    expected = np.arange(X.shape[axis]).reshape([-1 if a == axis % 3 else 1 for a in range(3)])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("is_static", [True, False])
def test_shapes_are_broadcast(is_static: bool) -> None:
    arrays = [np.zeros(s, np.float32) for s in ((2, 1, 3), (1, 4, 1), (1, 1, 3))]
    got = compute(broadcast_shapes, *arrays, is_static=is_static)
    assert got.tolist() == [2, 4, 3]
