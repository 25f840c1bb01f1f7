"""``x[key]`` and ``x[key] = new`` for keys of every form, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import serde
from tests.frontends.tracing import compare

X = np.random.default_rng(2).normal(size=(2, 3, 5)).astype("f4")
PLACES = np.array([[0, 2], [1, 1]])
MASK = np.array([True, False, True])
ALL = slice(None)
KEYS = [
    0, -1, (0, 1), (..., 0), (ALL, 1), slice(1, None), (ALL, slice(None, None, -1)),
    (ALL, slice(2, 0, -1)), (..., None, slice(None, None, 2)), None, (None, 0, None, slice(1, 4)),
    (ALL, ALL, -1), (ALL, slice(-2, None)), slice(5, None), (ALL, slice(0, 0)), (ALL, PLACES),
    (PLACES[0] * 0, PLACES[1]), (ALL, [0, 2], [1, 3]), ([0, 1], ALL, [1, 3]), (0, ALL, [1, 3]),
    (ALL, MASK), True, (ALL, False), (..., np.array(True), None), ([0, 1], [0, 1], [1, 1]), (0, [0, 2]), (..., [1, 2], None),
    ([0], None, ALL, [1]), (ALL, None, [0, 1], [0, 1]),
]  # fmt: skip


@pytest.mark.parametrize("names", [None, {5: "B"}, {2: "A", 5: "B"}], ids=str)
def test_keys(names, tmp_path):
    compare(lambda x: tuple(x[k] for k in KEYS), X, path=tmp_path / "m.onnx", names=names)


@pytest.mark.parametrize("names", [None, {5: "B"}], ids=str)
def test_assignment(names, tmp_path):
    def assign(x, key, new):
        y = x.copy()
        y[key] = new
        return y

    def run(x):
        results = [assign(x, k, 7) for k in KEYS]
        results.append(assign(x, (ALL, 1), x[:, 0] * 2))
        results.append(assign(x, (..., slice(1, 3)), x[..., :2]))
        results.append(assign(x, (ALL, ALL, slice(None, None, -1)), x))
        results.append(assign(x, (ALL, [0, 2]), x[:, 1:]))
        results.append(assign(x, x > 0, 0))
        results.append(assign(x, x > 0, x[x > 0] * 2))
        return tuple(results)

    compare(run, X, path=tmp_path / "m.onnx", names=names)


def test_traced_keys(tmp_path):
    def run(x, i):
        return (x[:, i], x[i * 0, i], x[:, i[0, 0]], x[:, i[0, 0] : i[0, 1]], x[x > 0],
                x[x[:, :, 0] > 0], x[:, x[0, :, 0] > 0], x[x[0, 0, 0] > 0],
                x[:, x[0, 0, 0] < 0, None, 1:], x[0, 0, 0][x[0, 0, 0] > 0])  # fmt: skip

    compare(run, X, PLACES, path=tmp_path / "m.onnx")
    compare(run, X, PLACES, path=tmp_path / "m.onnx", names={5: "B"})


@given(key=arrays.basic_indices((2, 3, 5), allow_ellipsis=True, allow_newaxis=True))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_basic_key(key, tmp_path_factory):
    def run(x):
        y = x * 1
        if np.size(X[key]):
            y[key] = 3
        return np.atleast_1d(x[key]), y

    compare(run, X, path=tmp_path_factory.mktemp("m") / "m.onnx", settings=(True,))


@given(data=st.data())
@settings(max_examples=20, deadline=None, derandomize=True)
def test_any_integer_arrays(data, tmp_path_factory):
    key = data.draw(arrays.integer_array_indices((2, 3, 5), result_shape=arrays.array_shapes(
        min_dims=1, max_dims=2, max_side=3)))  # fmt: skip
    compare(lambda x: x[key], X, path=tmp_path_factory.mktemp("m") / "m.onnx", settings=(True,),
            names=data.draw(st.sampled_from([None, {5: "B"}])))  # fmt: skip


def test_views_and_local_arrays(tmp_path):
    def run(x):
        y = x.copy()
        y[x > 0] = 0
        y[:, 0] += 3
        row = y[1]
        row[0] = 5
        y.T[0] *= 2
        y.reshape(-1)[3] = 9
        np.add.at(y, (0, np.array([0, 0, 1])), 1)
        out = np.zeros((2, 4, 5))
        out[:, :3] = x
        out[:, 3] = x.sum(1)
        total = np.ones(5)
        total += x[0, 0]
        view = out[0]
        view[1] = 7
        out[1, 0] = 9
        return y, row, out, total, view

    compare(run, X, path=tmp_path / "m.onnx")
    compare(run, X, path=tmp_path / "m.onnx", names={5: "B"})


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (2, "index 2 is out of bounds for axis 0 with size 2"),
        ((0, 0, 0, 0), "too many indices"),
        (([0, 1], [0, 1, 2]), "could not be broadcast"),
        (np.array([True, False, True]), "boolean index did not match"),
        (1.5, "only integers"),
    ],
)
def test_errors_are_those_of_numpy(key, error):
    with pytest.raises(IndexError, match=error):
        X[key]
    with pytest.raises(IndexError, match=error):
        serde.trace(lambda x: x[key], (2, 3, 5))
