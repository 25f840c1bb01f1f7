"""Axes that are computed, against NumPy over those that are counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from serde.ir.graph import DType
from serde.spec.onnx_builder import OnnxBuilder
from serde.version_converter.adapters.dynamic_axes import (
    apply_along,
    drop_marked,
    known_ints,
    mark_axes,
    scatter_by_axis,
    select_sizes,
    static_length,
)
from testing.onnx_live import run

AXES = ([1], [-1, 0], [], [3, -4], [2, 1, -2])
RANK = 4


def compute(emit: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """What ONNX Runtime makes of it at opset 12, where no size is known."""
    g = OnnxBuilder("one")
    feeds = {f"x{i}": a for i, a in enumerate(arrays)}
    inputs = [
        g.input(name, DType.of(a.dtype), tuple(f"{name}_{i}" for i in range(a.ndim)))
        for name, a in feeds.items()
    ]
    (got,) = run(g.build([emit(g, *inputs)]), feeds, 12)
    return got


@pytest.mark.parametrize("axes", AXES)
def test_axes_are_marked(axes: list[int]) -> None:
    expected = np.isin(np.arange(RANK), np.int64(axes) % RANK)
    for kind in (np.int32, np.int64):
        got = compute(lambda g, a: mark_axes(g, a, RANK), np.array(axes, kind))
        np.testing.assert_array_equal(got, expected)
    by_rank = compute(lambda g, a, r: mark_axes(g, a, r), np.int64(axes), np.array(RANK))
    np.testing.assert_array_equal(by_rank, expected)


@pytest.mark.parametrize("axes", [axes for axes in AXES if len({a % 4 for a in axes}) == len(axes)])
def test_values_of_axes_are_scattered(axes: list[int]) -> None:
    values = np.arange(5, 5 + len(axes))
    got = compute(lambda g, a, v: scatter_by_axis(g, a, v, RANK, 9), np.int64(axes), values)
    expected = np.full(RANK, 9)
    expected[np.int64(axes)] = values
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("left", [2, None])
def test_marked_sizes_are_dropped(left: int | None) -> None:
    sizes, mark = np.int64([5, 6, 7, 8]), np.int64([0, 1, 1, 0])
    got = compute(lambda g, s, m: drop_marked(g, s, m, left), sizes, mark)
    np.testing.assert_array_equal(got, sizes[mark == 0])
    others = compute(select_sizes, sizes, mark)
    np.testing.assert_array_equal(others, np.where(mark == 1, sizes, 1))


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_a_function_is_applied_along_an_axis(axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4), np.float32)
    got = compute(
        lambda g, x, a: apply_along(g, x, a, lambda y: g.CumSum(y, 1)), x, np.int64([axis])
    )
    np.testing.assert_allclose(got, x.cumsum(axis), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_a_function_that_resizes_the_axis(axis: int) -> None:
    """The last axis stays apart, as that of real and imaginary parts."""
    x = np.random.default_rng(0).standard_normal((2, 3, 2), np.float32)
    axis_of_two = axis if axis >= 0 else axis + 3

    def double(g: Any, x: Any, a: Any) -> Any:
        return apply_along(g, x, a, lambda y: g.Concat(y, y, axis=1), kept=1, resized=True)

    got = compute(double, x, np.int64([axis]))
    np.testing.assert_array_equal(got, np.concatenate([x, x], axis_of_two))


def test_what_is_known_of_axes() -> None:
    g = OnnxBuilder("one")
    computed, unknown = g.input("a", DType.INT64, (2,)), g.input("b", DType.INT64, ("N",))
    empty, scalar = g.input("c", DType.INT64, (0,)), g.input("d", DType.INT64, ())
    assert [known_ints(v) for v in (g.const([1, -2]), computed, empty)] == [(1, -2), None, ()]
    assert [static_length(v) for v in (computed, unknown, empty, scalar)] == [2, None, 0, 1]
