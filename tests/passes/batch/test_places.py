"""Sizes as products, and where a Reshape may move the batch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from serde.passes.batch.places import (
    ONE,
    Place,
    Size,
    find_moved_places,
    find_reshaped_places,
    multiply,
    read_size,
)


def place(axis: int, outer: int = 1, inner: int = 1) -> Place:
    return Place(axis, Size(outer), Size(inner))


@pytest.mark.parametrize(
    ("dims", "size"),
    [((2, 3), Size(6)), (("H", 2, "W"), Size(2, ("H", "W"))), (("W*H", 3), Size(3, ("H", "W"))),
     (("H+1", "H+1"), Size(1, ("H+1", "H+1"))), ((2, None), None), ((), ONE)],
)  # fmt: skip
def test_products(dims, size):
    assert multiply(dims) == size


def test_quotients():
    size = Size(6, ("H", "H", "W"))
    assert size.divide(Size(2, ("H",))) == Size(3, ("H", "W"))
    assert size.divide(Size(4)) is None and size.divide(Size(1, ("C",))) is None
    assert size.divide(Size(0)) is None and Size(0).divide(Size(2)) == Size(0)
    assert read_size(Size(6, ("H",)).dim) == Size(6, ("H",))


@pytest.mark.parametrize(
    ("before", "old", "after", "batch", "places"),
    [
        ((1, 16, 4), place(0), (1, 64), 1, [place(0), place(1, 1, 64)]),
        ((5, 1, 8), place(1), (5, 2, 4), 1, [place(1, 1, 2), place(0, 5)]),
        ((5, 2, 4), place(1, 1, 2), (5, 1, 8), 1, [place(1), place(0, 5), place(2, 1, 8)]),
        ((5, 8), place(0, 5), (5, 1, 8), 1, [place(1), place(0, 5), place(2, 1, 8)]),
        ((1, 5, 8), place(0), (5, 2, 4), 1, [place(0, 1, 5)]),
        ((2, 5, 8), place(0), (10, 8), 2, [place(0, 1, 5)]),
        ((10, 8), place(0, 1, 5), (2, 5, 8), 2, [place(0)]),
        ((5, 2, 8), place(1), (10, 8), 2, [place(0, 5)]),
        ((2, 6), place(0), (3, 4), 2, []),
        ((1, "H", "W", 3), place(0), ("H*W", 3), 1, [Place(0, ONE, Size(1, ("H", "W")))]),
        ((1, "H", 4), place(0), (None, 4), 1, []),
        ((1, None, 4), place(0), (1, None), 1, [place(0)]),
    ],
)
def test_places_of_a_reshape(before, old, after, batch, places):
    assert find_reshaped_places(before, old, after, batch) == places


def samples_of(array: np.ndarray, where: Place, batch: int) -> np.ndarray:
    """The elements of each sample, in their order."""
    above = int(np.prod(array.shape[: where.axis])) * where.outer.number
    return np.moveaxis(array.reshape(above, batch, -1), 1, 0).reshape(batch, -1)


SHAPES = [
    s
    for n in (1, 2, 3, 4)
    for s in itertools.product((1, 2, 3, 4, 6, 8), repeat=n)
    if np.prod(s) == 24
]


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_each_place_keeps_the_samples(batch):
    """Whatever place is taken, the result has the samples of the operand at any batch."""
    count = 0
    for before, after in itertools.product(SHAPES[::3], SHAPES[::2]):
        for axis, size in enumerate(before):
            if size % batch:
                continue
            old = place(axis, 1, size // batch)
            for new in find_reshaped_places(before, old, after, batch):
                wide = list(before), list(after)
                for shape, p in zip(wide, (old, new), strict=True):
                    shape[p.axis] = p.size(5).number
                x = np.arange(np.prod(wide[0])).reshape(wide[0])
                y = x.reshape(wide[1])
                np.testing.assert_array_equal(samples_of(x, old, 5), samples_of(y, new, 5))
                count += 1
    assert count > 100


def test_axes_that_a_transpose_moves_the_batch_to():
    assert find_moved_places((5, 1, 8), [place(0, 1, 5)], False) == [place(1)]
    assert find_moved_places((5, 1, "H"), [place(1)], True) == [place(0, 1, 5)]
