"""Normalizations in other operators, compared with NumPy and with onnx's node tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.decompositions import normalization
from serde.decompositions.normalization import (
    MOST_WINDOW,
    drop_nothing,
    local_response,
    log_softmax,
    lp_norm,
    normalize_channels,
    scale_channels,
    train_batch_norm,
    unify_batch_norm,
)
from serde.errors import ConversionError
from serde.ir.graph import DType
from serde.spec.onnx_builder import OnnxBuilder
from testing.decomposed import check_decomposed, compute, operators_of

DRAWS = np.random.default_rng(0)
X = DRAWS.standard_normal((2, 3, 4, 5)).astype(np.float32)
SCALE, BIAS, MEAN = (DRAWS.standard_normal(3).astype(np.float32) for _ in range(3))
VAR = np.float32([0.5, 1, 2])


def along(row: np.ndarray) -> np.ndarray:
    return row.reshape(-1, 1, 1)


@pytest.mark.parametrize("op", operators_of(normalization))
def test_decomposed(op: str) -> None:
    check_decomposed(op)


@pytest.mark.parametrize("named", [False, True])
def test_statistics_of_a_batch(named: bool) -> None:
    got = compute(
        lambda g, *v: train_batch_norm(g, *v, epsilon=1e-3, momentum=0.9, outputs=3),
        X, SCALE, BIAS, MEAN, VAR, named=named,
    )  # fmt: skip
    mean, var = X.mean((0, 2, 3)), X.var((0, 2, 3))
    y = along(SCALE) * (X - along(mean)) / np.sqrt(along(var) + 1e-3) + along(BIAS)
    for a, b in zip(got, (y, MEAN * 0.9 + mean * 0.1, VAR * 0.9 + var * 0.1), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_last", [False, True])
def test_inference_by_channels(is_last: bool) -> None:
    """Channels stand at axis 1, or behind all others for the form of one factor."""
    expected = along(SCALE) * (X - along(MEAN)) / np.sqrt(along(VAR) + 1e-3) + along(BIAS)
    emit: Any = scale_channels if not is_last else normalize_channels
    (got,) = compute(lambda g, x, *p: emit(g, x, p, 1e-3), X, SCALE, BIAS, MEAN, VAR)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_parameters_of_a_wider_type() -> None:
    """The widest type of all is computed in, and the data's comes back; one type needs nothing."""
    half = X.astype(np.float16)
    form = {"epsilon": 1e-3, "training_mode": 0}
    (got,) = compute(
        lambda g, x, *p: unify_batch_norm(g, x, p, **form), half, SCALE, BIAS, MEAN, VAR
    )
    wide = half.astype(np.float32)
    expected = along(SCALE) * (wide - along(MEAN)) / np.sqrt(along(VAR) + 1e-3) + along(BIAS)
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)
    g = OnnxBuilder("g")
    x, row = g.input("x", DType.FLOAT32, (2, 3)), g.input("p", DType.FLOAT32, (3,))
    assert unify_batch_norm(g, x, [row] * 4, **form) is None


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_logarithms_of_shares_do_not_overflow(axis: int) -> None:
    x = X * 1000
    (got,) = compute(lambda g, x: log_softmax(g, x, axis=axis), x)
    away = x.astype(np.float64) - x.max(axis, keepdims=True)
    expected = away - np.log(np.exp(away).sum(axis, keepdims=True))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("named", [False, True])
def test_windows_of_channels(size: int, named: bool) -> None:
    """Also wider ones than there are channels."""
    form = {"size": size, "alpha": 0.3, "beta": 0.75, "bias": 2.0}
    (got,) = compute(lambda g, x: local_response(g, x, **form), X, named=named)
    sums = np.zeros_like(X)
    for c in range(3):
        window = slice(max(0, c - (size - 1) // 2), c + size // 2 + 1)
        sums[:, c] = (X[:, window] ** 2).sum(1)
    np.testing.assert_allclose(got, X / (2 + 0.3 / size * sums) ** 0.75, rtol=1e-5)


def test_a_window_that_is_too_wide_is_refused() -> None:
    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, ("N", "C", 2, 2))
    with pytest.raises(ConversionError, match=rf"of 2000 channels.*at most {MOST_WINDOW}"):
        local_response(g, x, size=2000, alpha=1.0, beta=1.0, bias=1.0)


@pytest.mark.parametrize("p", [1, 2])
def test_rows_of_nothing_stay_nothing(p: int) -> None:
    rows = np.float32([[3, -4], [0, 0]])
    (got,) = compute(lambda g, x: lp_norm(g, x, axis=1, p=p), rows)
    norm = np.linalg.norm(rows, p, axis=1, keepdims=True)
    np.testing.assert_allclose(got, rows / np.where(norm == 0, 1, norm), rtol=1e-6)


def test_dropout_drops_nothing_unless_it_draws() -> None:
    y, mask = compute(lambda g, x: drop_nothing(g, x, outputs=2), X, named=True)
    np.testing.assert_array_equal(y, X)
    assert mask.shape == X.shape and mask.all()
    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, (2,))
    assert drop_nothing(g, x, None, g.const(False, DType.BOOL)).shape == (2,)
    for training in (g.const(True, DType.BOOL), g.input("t", DType.BOOL, ())):
        with pytest.raises(ConversionError, match="draws which elements"):
            drop_nothing(g, x, None, training)
