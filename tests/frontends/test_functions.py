"""NumPy's functions, traced and run in ONNX Runtime, against NumPy; with and without named sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontends.tracing import compare

RNG = np.random.default_rng(1)
X = RNG.normal(size=(2, 3, 5)).astype("f4")
WHOLE = RNG.integers(-9, 9, (2, 3, 5))
NAN = X.copy()
NAN[0, 1, 2] = np.nan
NAMES = {2: "A", 5: "B"}
fft, linalg = np.fft, np.linalg

REDUCTIONS = (
    "sum prod mean std var max min all any argmax argmin ptp median nansum nanmax nanmin nanmean "
    "count_nonzero"
).split()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name, tmp_path):
    function = getattr(np, name)

    def run(x):
        with np.errstate(all="ignore"):
            return tuple(function(x, axis=a) for a in (None, 0, -1, 1))

    for x in (X, WHOLE, WHOLE.astype("u1"), NAN, WHOLE > 0):
        if x.dtype == bool and name in ("ptp", "median"):
            continue
        compare(run, x, path=tmp_path / "m.onnx", names=NAMES, settings=(True,))


CASES = {
    "axes": lambda x: (x.sum((0, -1), keepdims=True), x.mean((0, 1)), np.max(x, (1, 2)), x.sum(())),
    "options": lambda x: (x.sum(dtype="f8"), x.sum(initial=3), x.max(initial=10), x.var(0, ddof=1), (x > 0).max(initial=3),
                          x.max(initial=-9, where=x > 0), x.sum(where=x > 0)),
    "average": lambda x: np.average(x, 1, weights=np.array([1, 2, 3.0])),
    "cumulative": lambda x: (np.cumsum(x, 1), np.cumsum(x), np.cumprod(x, 1)),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "reshape": lambda x: (x.reshape(-1, 3), np.reshape(x, (x.shape[0], -1)), x.ravel("F")),
    "transpose": lambda x: (x.T, x.transpose(2, 0, 1), x.swapaxes(0, -1), np.rollaxis(x, 2),
                            np.moveaxis(x, [0, 1], [-1, 0])),
    "dims": lambda x: (np.expand_dims(x, (0, -1)), np.squeeze(x[:, None], 1), np.atleast_3d(x[0])),
    "broadcast": lambda x: (np.broadcast_to(x, (4, *x.shape)), np.broadcast_arrays(x, x[0])[1]),
    "join": lambda x: (np.concatenate([x, x * 2], -1), np.concatenate([x, x], None),
                       np.stack([x, x], 1), np.vstack([x, x]), np.hstack([x, x]),
                       np.dstack([x, x]), np.append(x, x, 1), np.column_stack([x[0], x[0]])),
    "repeat": lambda x: (np.tile(x, (2, 1, 3)), np.repeat(x, 3, 1), np.repeat(x, [1, 0, 2], 1),
                         np.repeat(x, 2), np.repeat(x, 0), np.repeat(x, 0, 1), np.repeat(x[0, 0], 0)),
    "flip": lambda x: (np.flip(x, (0, 2)), np.rot90(x), np.rot90(x, 3, (1, 2)), np.flipud(x)),
    "roll": lambda x: (np.roll(x, 2), np.roll(x, (1, -1), (1, 2))),
    "pad": lambda x: (np.pad(x, 1), np.pad(x, ((0, 0), (1, 2), (2, 0)), constant_values=3),
                      np.pad(x, ((1, 1), (0, 0), (0, 2)), "edge"),
                      np.pad(x, ((0, 0), (2, 1), (0, 0)), "reflect"),
                      np.pad(x, ((0, 0), (2, 1), (0, 0)), "wrap"),
                      np.pad(x, ((0, 0), (2, 1), (0, 0)), "symmetric")),
    "diff": lambda x: (np.diff(x), np.diff(x, axis=1, prepend=0), np.diff(x, 2, 1)),
    "split": lambda x: (*np.split(x, 3, 1), *np.array_split(x, [1, 2], 1)),
    "grids": lambda x: (*np.meshgrid(x[0, 0], x[0, :, 0]), *np.ix_(x[0, 0], x[0, 1])),
    "triangles": lambda x: (np.triu(x, 1), np.tril(x)),
    "diagonals": lambda x: (np.diagonal(x, 0, 1, 2), np.trace(x, 0, 1, 2), np.diag(x[0], 1),
                            np.diag(x[0, 0], 1), np.diag(x[0, 0], -1)),
    "where": lambda x: (np.where(x > 0, x, 0), np.where(x > 0, 1, x), np.where(x > 0, 1, 2)),
    "clip": lambda x: (np.clip(x, -1, 1), x.clip(0, None), np.clip(x, None, 0)),
    "select": lambda x: (np.select([x > 1, x > 0], [x, x * 2], -1), np.choose(np.clip(
        x, 0, 1).astype(np.int64), [x, x * 2])),
    "rounding": lambda x: (np.round(x, 2), np.around(x), np.fix(x)),
    "tests": lambda x: (np.isclose(x, x + 1e-9), np.allclose(x, x), np.array_equal(x, x),
                        np.nan_to_num(np.true_divide(x, np.float64(0)))),
    "sort": lambda x: (np.sort(x, 0), np.sort(x), np.sort(x, None), np.partition(x, 1, 1)[:, 1]),
    "argsort": lambda x: (np.argsort(x, 1, kind="stable"), np.lexsort((x[0, 0], x[0, 1]))),
    "take": lambda x: (np.take(x, [0, 2], 1), np.take(x, 3), np.take(x, [9, -9], 1, mode="clip"),
                       np.take(x, [7, -7], 1, mode="wrap"),
                       np.take_along_axis(x, np.argsort(x, -1, kind="stable"), -1)),
    "places": lambda x: (np.searchsorted(np.array([-1, 0.0, 1]), x, "right"),
                         np.digitize(x, [-1.0, 0, 1]), np.isin(np.rint(x), [0, 1])),
    "histogram": lambda x: np.histogram(x, 5, (-2, 2)),
    "bincount": lambda x: np.bincount(np.abs(x[0, 0]).astype(np.int64), minlength=4),
    "unique": lambda x: np.unique(np.rint(x), True, True, True),
    "nonzero": lambda x: (*np.nonzero(x > 0), np.argwhere(x > 0), np.flatnonzero(x > 0)),
    "quantile": lambda x: (np.quantile(x, [0.1, 0.5], 1), np.percentile(x, 33),
                           np.percentile(x, [10, 90], axis=-1, keepdims=True),
                           np.quantile(x, 0.3, 0, method="nearest"),
                           np.quantile(x, 0.3, 0, method="lower"),
                           np.quantile(x, 0.3, 0, method="midpoint")),
    "interp": lambda x: (np.interp(x, [-1.0, 0, 2], [3.0, 4, 1]),
                         np.interp(x, [-1.0, 0, 2], [3.0, 4, 1], left=-7, right=9)),
    "convolve": lambda x: (np.convolve(x[0, 0], [1, 2, 3.0]), np.convolve(x[0, 0], [1, 2.0], "same"),
                           np.convolve(x[0, 0], [1, 2, 1.0], "valid"),
                           np.correlate(x[0, 0], [1, 2, 3.0], "full")),
    "covariance": lambda x: (np.cov(x[0]), np.corrcoef(x[0]), np.gradient(x, axis=1)),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 1),
    "polynomial": lambda x: (np.polyval([1, 2, 3], x), np.vander(x[0, 0], 3)),
    "matmul": lambda x: (x @ np.swapaxes(x, 1, 2), x @ x[0, 0], np.dot(x, x[0].T),
                         np.matmul(x[0, 0], x[0].T), np.inner(x, x), np.vecdot(x, x)),
    "products": lambda x: (np.tensordot(x, x, ([1, 2], [1, 2])), np.outer(x[0, 0], x[0, 1]),
                           np.kron(x[0], x[1]), np.cross(np.moveaxis(x, 1, -1), np.array([1, 2, 3]))),
    "einsum": lambda x: (np.einsum("bij,bkj->bik", x, x), np.einsum("bij->j", x),
                         np.einsum("...ij->...ji", x), np.einsum("...i,...i->...", x, x[0, 0])),
    "norm": lambda x: (linalg.norm(x), linalg.norm(x, axis=1), linalg.norm(x, 1, axis=-1),
                       linalg.norm(x, np.inf, axis=(1, 2)), linalg.norm(x, 3, axis=0),
                       linalg.norm(x, axis=(0, 1), keepdims=True)),
}  # fmt: skip
OF_FLOATS = {
    "linalg": lambda x: (linalg.inv(x[:, :, :3]), linalg.det(x[:, :, :3]),
                         linalg.solve(x[:, :, :3], x[:, :, 3:]),
                         linalg.cholesky(x @ np.swapaxes(x, 1, 2)),
                         linalg.matrix_power(x[:, :, :3], 3), *linalg.slogdet(x[:, :, :3])),
    "fft": lambda x: (fft.fft(x).real, fft.fft(x).imag, np.abs(fft.rfft(x, axis=1)),
                      np.abs(fft.rfft(x, 8)), fft.irfft(fft.rfft(x), 5), fft.fftshift(x),
                      fft.ifft(fft.fft(x)).real, np.abs(fft.fft2(x)),
                      np.abs(fft.rfft(x, norm="ortho"))),
    "fft norms": lambda x: tuple(
        np.stack([z.real, z.imag]) for n in ("backward", "ortho", "forward")
        for z in (fft.fft(x, 3, norm=n), fft.ifft(x, axis=0, norm=n), fft.rfft(x, 8, norm=n))
    ) + tuple(fft.irfft(x, m, norm=n) for m in (7, 8) for n in ("backward", "ortho", "forward")),
    "fft several": lambda x: (
        fft.irfft2(fft.rfft2(x), (3, 5)), fft.irfftn(fft.rfftn(x, axes=(0, 2)), axes=(0, 2)),
        fft.hfft(fft.fft(x), 7, norm="ortho"), fft.hfft(x), fft.ihfft(x, norm="forward").imag,
        fft.fftshift(fft.fftn(x, (3, 4), (1, -1))).real, fft.ifft2(x).imag,
    ),
    "linspace": lambda x: np.linspace(x[0, 0], x[0, 1], 5),
}  # fmt: skip


@pytest.mark.parametrize("names", [None, NAMES], ids=["static", "named"])
@pytest.mark.parametrize("case", [*CASES, *OF_FLOATS])
def test_function(case, names, tmp_path):
    function = {**CASES, **OF_FLOATS}[case]
    for x in (X, WHOLE) if case in CASES else (X, X.astype("f8")):
        # with its optimizers for one of the two, without for the other
        rtol = 1e-12 if x.dtype == "f8" else 1e-6
        compare(function, x, path=tmp_path / "m.onnx", names=names, settings=(x is X,), rtol=rtol)


def test_a_constant_of_integers_in_a_shape_by_name(tmp_path):
    table = np.arange(24, dtype="i4").reshape(3, 4, 2)
    x = np.ones((2, 3, 4), "i1")
    compare(lambda x: np.tensordot(x, table, 2), x, path=tmp_path / "m.onnx", names={3: "N"})


@given(data=st.data())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_axes(data, tmp_path_factory):
    """Reductions over any axes, negative ones too, with any sizes by name."""
    rank = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    axes = tuple(data.draw(st.lists(st.integers(-rank, rank - 1), unique_by=lambda a: a % rank)))
    keep = data.draw(st.booleans())
    names = data.draw(st.sampled_from([None, {3: "N"}, {2: "A", 4: "B"}]))
    x = np.random.default_rng(0).normal(size=shape)

    def run(x):
        first = axes[0] if axes else 0
        return (np.sum(x, axes, keepdims=keep), np.max(x, axes, keepdims=keep), np.sort(x, first),
                np.mean(x, first, keepdims=keep), np.argmin(x, first), np.flip(x, axes))  # fmt: skip

    compare(run, x, path=tmp_path_factory.mktemp("m") / "m.onnx", names=names, settings=(True,))
