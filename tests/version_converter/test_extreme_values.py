"""What is written for older opsets of infinities, NaN and crossed bounds."""

from __future__ import annotations

import numpy as np
import pytest

from testing.node_cases import convert, difference, onnxruntime_results
from tests.version_converter.single import STATIC, UNKNOWN, Single

INF, NAN = np.inf, np.nan
ROWS = np.float32([[1, INF, 2, -INF, 3], [NAN, 1, 2, 3, 4], [-INF, 1, INF, 5, NAN]])


def ints(values):
    return np.asarray(values, np.int64)


@pytest.mark.parametrize("attrs", [{}, {"exclusive": 1}, {"reverse": 1}])
def test_running_totals(attrs):
    """An infinity makes no NaN of the totals that it is no part of."""
    Single("CumSum", (ROWS, ints(1)), attrs, (1,)).check((8, 10), (UNKNOWN, STATIC))


def test_patches_put_back():
    columns = np.tile(ROWS.T.reshape(1, -1), (1, 1)).reshape(1, 15, 1)[:, :12]
    columns = np.concatenate([columns, columns + 1], axis=2)
    Single("Col2Im", (columns, ints([3, 2]), ints([2, 2])), {}, (1, 2)).check((11, 17), [STATIC])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bounds_crossed(kind):
    """The upper one holds."""
    x = np.array([-1, 0.5, 3], kind)
    Single("Clip", (x, kind(2), kind(1)), {}, (1, 2)).check((8, 10, 11, 12), [STATIC])


@pytest.mark.parametrize("op", ["Acosh", "Asinh"])
def test_far_from_zero(op):
    """There is no Acosh below 1; and no square of what is large is a float64."""
    Single(op, (np.float32([-3e38, 0.5, 1, 2, 3e38, -INF, INF, NAN]),)).check([8], [STATIC])
    Single(op, ([-1e300, 1.0, 1e300, INF],)).check([8], [STATIC])


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_extremes_that_old_runtimes_lack(op):
    """Float64 below opset 8, uint64 below 12: numbers beyond int64, NaN."""
    floats = [v.ravel() for v in np.meshgrid(*[[NAN, INF, -INF, 0.0, -1.0, 2.0]] * 3)]
    integers = np.array([0, 5, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    pair = np.repeat(integers, 5), np.tile(integers, 5)
    runs_in_onnxruntime(Single(op, tuple(floats)).case(STATIC), (7, 8))
    runs_in_onnxruntime(Single(op, pair).case(STATIC), (7, 9, 11))


def runs_in_onnxruntime(case, opsets):
    for opset in opsets:
        for feeds, expected in case.data:
            for _, got in onnxruntime_results(convert(case.model, opset), feeds):
                assert not isinstance(got, Exception), (opset, got)
                assert difference(case, expected, got) is None


def test_pads_that_cut_off_pads():
    Single("Pad", (ROWS, ints([0, 2, 0, -6]), np.float32(7)), {}, (1, 2)).check((8, 10), [STATIC])


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_places_of_the_least_bytes(kind):
    """Padding is never the largest, whatever is."""
    x = np.full((1, 2, 4), np.iinfo(kind).min, kind)
    Single("MaxPool", (x,), {"kernel_shape": [3], "pads": [2, 2]}, outputs=2).check((8, 11))


@pytest.mark.parametrize("reduction", ["max", "min"])
def test_scattered_extremes_of_integers(reduction):
    """What is neutral is the end of the type, which has no absolute value."""
    x, at, new = ints([[5], [-3]]), ints([[1]]), ints([[2]])
    Single("ScatterElements", (x, at, new), {"reduction": reduction}, (1, 2)).check((8, 13))


def test_shapes_without_elements():
    """A size of 0 is one, not that of the operand."""
    cache, update = np.zeros((1, 0, 2), np.float32), np.zeros((1, 0, 1), np.float32)
    Single("TensorScatter", (cache, update, ints([1])), {"axis": 2}).check((7, 8), [STATIC])


def test_statistics_of_halves():
    """Differences below what their squares can be."""
    x = (1 + np.arange(12).reshape(2, 2, 3) * 1e-3).astype(np.float16)
    ones, zeros = np.ones(2, np.float16), np.zeros(2, np.float16)
    norm = Single("BatchNormalization", (x, ones, zeros, zeros, ones), {"training_mode": 1},
                  outputs=3, opset=15, tolerance=1e-2)  # fmt: skip
    graph = norm.at(13, STATIC)
    assert {n.op for n in graph.nodes} >= {"Cast"}
    norm.check([13], [STATIC])
