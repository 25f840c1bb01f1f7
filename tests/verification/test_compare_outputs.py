"""One output compared with what it should be: tolerances, types, and the places of infinities."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from serde.errors import UsageError
from serde.verification.compare_outputs import (
    HIGHEST,
    Tolerance,
    compare,
    compare_values,
    narrow_both,
)

NAN, INF = np.nan, np.inf


def f32(*numbers):
    return np.array(numbers, np.float32)


@pytest.mark.parametrize(
    ("got", "expected", "passed", "reason"),
    [
        (f32(1, 2), f32(1, 2), True, ""),
        (f32(1, 2.0001), f32(1, 2), True, ""),
        (f32(1, 2.001), f32(1, 2), False, "off by 0.001"),
        (f32(1e6, 50), f32(1e6, 0), True, ""),  # small beside the tensor's scale
        (f32(1e6, 200), f32(1e6, 0), False, "off by 200"),
        (f32(5e-5), f32(0), True, ""),
        (f32(0, 1e-36), f32(1e-37, 1e-36), True, ""),  # what underflows on the way
        (f32(0, 1e-24), f32(1e-25, 1e-24), False, "off by 1e-25"),
        (f32(2e-4), f32(0), False, "off by 0.0002"),
        (f32(1, NAN), f32(1, NAN), True, ""),
        (f32(1, NAN), f32(1, 2), False, "NaN or infinity in other places"),
        (f32(1, 2), f32(1, NAN), False, "NaN or infinity in other places"),
        (f32(1, INF), f32(1, -INF), False, "NaN or infinity in other places"),
        (f32(1, INF), f32(1, INF), True, ""),
        (f32(INF, NAN), f32(INF, NAN), True, ""),
        (f32(), f32(), True, ""),
        (f32(1, 2), f32(1, 2, 3), False, "shape [2] where the source has [3]"),
        (f32(1), f32(1)[0], False, "shape [1] where the source has []"),
        (np.float64([1]), f32(1), False, "float64 elements where the source has float32"),
        (np.int64([1, 2]), np.int64([1, 2]), True, ""),
        (np.int64([1, 2]), np.int64([1, 3]), False, "not equal"),
        (np.array([True]), np.array([False]), False, "not equal"),
        (np.array(["a"], object), np.array(["a"], object), True, ""),
        (np.array(["a"], object), np.array(["b"], object), False, "not equal"),
        (np.float16([1.01]), np.float16([1]), True, ""),
        (np.float64([1 + 1e-5]), np.float64([1]), False, "off by 1e-05"),
        (np.complex64([1 + 1j]), np.complex64([1 + 1j]), True, ""),
        (np.complex64([1 + 1j]), np.complex64([1 + 2j]), False, "off by 1"),
        (np.array([1.5], ml_dtypes.bfloat16), np.array([1.5], ml_dtypes.bfloat16), True, ""),
    ],
)
def test_two_outputs_compared(got, expected, passed, reason):
    shown = compare("y", got, expected)
    assert shown.passed is passed and shown.reason.startswith(reason)


def test_the_measures():
    shown = compare("y", f32(1, 2, 4), f32(1, 2, 2))
    assert (shown.max_abs, shown.max_rel, shown.tolerance) == (2.0, 1.0, pytest.approx(2e-4))
    assert shown.rmse == pytest.approx((4 / 3) ** 0.5)
    assert shown.cosine == pytest.approx(13 / (21**0.5 * 3))
    assert (shown.name, shown.shape, shown.dtype) == ("y", (3,), "float32")
    assert compare("y", f32(0, 0), f32(0, 0)).cosine == 1.0


@pytest.mark.parametrize(("got", "expected", "index", "numbers"), [
    (np.float32([[1, 2], [3, 9]]), np.float32([[1, 2], [3, 4]]), (1, 1), (9, 4)),
    (np.float32([[1, NAN]]), np.float32([[1, 2]]), (0, 1), (NAN, 2)),
    (np.uint64([0, 2**64 - 1, 5]), np.uint64([1, 0, 5]), (1,), (2**64 - 1, 0)),
    (np.array(["a", "b"], object), np.array(["a", "c"], object), (1,), ("b", "c")),
])  # fmt: skip
def test_the_worst_element_is_told(got, expected, index, numbers):
    worst = compare("y", got, expected).worst
    assert worst.index == index
    np.testing.assert_array_equal([worst.value, worst.expected], [*numbers])


def test_a_histogram_counts_each_element_once():
    rng = np.random.default_rng(0)
    expected = rng.standard_normal(1000)
    got = expected * (1 + np.exp2(rng.uniform(-50, -5, 1000))) * (rng.uniform(size=1000) > 0.1)
    shown = compare("y", got, expected)
    assert sum(shown.histogram) == 1000 and shown.histogram[0] == (got == expected).sum()
    beyond = np.abs(got - expected) >= shown.tolerance * 2.0**HIGHEST
    assert shown.histogram[-1] == beyond.sum() > 0


@pytest.mark.parametrize(("rtol", "atol"), [(0, 0), (1e-3, 0), (0, 0.5), (1e-2, 1e-3)])
def test_a_users_tolerance_is_that_of_numpy(rtol, atol):
    rng = np.random.default_rng(1)
    for kind in (np.float32, np.int32):
        expected = (rng.standard_normal(50) * 100).astype(kind)
        for scale in (1e-4, 3e-3, 0.4):
            got = (expected * (1 + scale * rng.uniform(-1, 1, 50))).astype(kind)
            exact = [x.astype(np.float64) for x in (got, expected)]
            passed = compare("y", got, expected, tolerance=Tolerance(rtol, atol)).passed
            assert passed == np.allclose(*exact, rtol=rtol, atol=atol)


@pytest.mark.parametrize("number", [-1, np.inf, np.nan, "1"])
def test_a_tolerance_is_a_finite_number(number):
    for name in ("rtol", "atol"):
        with pytest.raises(UsageError, match=f"{name} is .*: give a finite number, 0 or more"):
            Tolerance.of(**{"rtol": None, "atol": None, name: number})
    assert Tolerance.of(None, None) is None and Tolerance.of(None, 2) == (0, 2)


def test_a_sequence_is_compared_tensor_by_tensor():
    shown = [*compare_values("y", [f32(1), f32(2, 3)], [f32(1), f32(2, 4)])]
    assert [(o.name, o.passed) for o in shown] == [("y[0]", True), ("y[1]", False)]
    (shown,) = compare_values("y", [f32(1)], [f32(1), f32(2)])
    assert not shown.passed and shown.reason == "1 tensors where the source has 2"


@pytest.mark.parametrize(("first", "second", "narrow"), [
    (np.float32, np.float16, np.float16), (np.float16, np.float64, np.float16),
    (ml_dtypes.bfloat16, np.float32, ml_dtypes.bfloat16), (np.float32, np.float32, np.float32),
])  # fmt: skip
def test_floats_of_two_types_become_the_one_of_fewer_bits(first, second, narrow):
    a, b = narrow_both(
        [np.ones(2, first)], [np.full(2, 1e5 if second is np.float64 else 1, second)]
    )
    assert a[0].dtype == b[0].dtype == narrow
    same = np.ones(2, np.int32), np.ones(2, np.float32)
    assert all(x is y for x, y in zip(narrow_both(*same), same, strict=True))
