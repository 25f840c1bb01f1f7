"""Where the elements of tensors lie, by their strides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from serde.formats.pt2.strides import Layout, is_packed


def lay_out(array: np.ndarray) -> Layout:
    """The layout of an array of NumPy, whose strides count bytes."""
    return Layout(array.shape, [s // array.itemsize for s in array.strides], 0)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_turned_tensors_are_turned_back(order):
    array = np.arange(24).reshape(2, 3, 4).transpose(order)
    layout = lay_out(array)
    assert bool(layout.is_packed) is (order == (0, 1, 2))
    assert array.transpose(layout.sort_axes()).ravel().tolist() == list(range(24))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 6))[:, 1:], np.zeros((4, 6))[::2], np.broadcast_to(np.zeros(3), (2, 3)),
        np.zeros((4, 6))[::2].T,
    ],
)  # fmt: skip
def test_what_has_gaps_or_shares_places_has_no_order(array):
    assert lay_out(array).sort_axes() is None


def test_sizes_by_name():
    assert Layout((None, 8, 1, 1), (8, 1, 8, 8), 0).sort_axes() == [0, 2, 3, 1]
    assert Layout((None, 8, 1, 1), (8, 1, 8, 8), 0).is_in_order
    assert not Layout((2, None, 4), (None, 4, 1), 0).is_in_order
    assert Layout((None, 8, 4, 4), (128, 1, 32, 8), 0).sort_axes() == [0, 2, 3, 1]
    assert Layout((2, None, 4), (None, 4, 1), 0).sort_axes() is None
    assert Layout((2, None, 4), (100, 4, 1), 0).sort_axes() is None
    assert is_packed((2, None, 4), (None, 4, 1)) and is_packed((2, 3, 4), (None, 4, 1)) is None
