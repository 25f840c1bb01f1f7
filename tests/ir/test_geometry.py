"""Arithmetic on axes and windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from serde.errors import ConversionError
from serde.ir import geometry


@pytest.mark.parametrize(("axis", "rank", "index"), [(0, 1, 0), (-1, 3, 2), (2, 3, 2), (-3, 3, 0)])
def test_axes_count_from_the_front(axis, rank, index):
    assert geometry.axis_of(axis, rank) == index


@pytest.mark.parametrize(("axis", "rank"), [(1, 1), (-2, 1), (0, 0), (3, 3)])
def test_an_axis_outside_is_refused(axis, rank):
    with pytest.raises(ConversionError, match=f"axis {axis} is outside a tensor of rank {rank}"):
        geometry.axis_of(axis, rank)


def test_lists_of_axes():
    assert geometry.axes_of([-1, 0], 3) == (2, 0)
    assert geometry.other_axes((2, 0), 4) == (1, 3)
    with pytest.raises(ConversionError, match="name one axis twice"):
        geometry.axes_of([2, -1], 3)


@pytest.mark.parametrize("rank", range(1, 5))
def test_permutations_do_what_numpy_does(rank):
    array = np.arange(np.prod(range(2, 2 + rank))).reshape(range(2, 2 + rank))
    for a in range(rank):
        for b in range(rank):
            moved = array.transpose(geometry.move_axis_perm(rank, a, b))
            np.testing.assert_array_equal(moved, np.moveaxis(array, a, b))
            swapped = geometry.swap_axes_perm(rank, a, b)
            np.testing.assert_array_equal(array.transpose(swapped), np.swapaxes(array, a, b))
            back = array.transpose(geometry.move_axis_perm(rank, a, b))
            back = back.transpose(geometry.invert_perm(geometry.move_axis_perm(rank, a, b)))
            np.testing.assert_array_equal(back, array)


def test_the_size_a_window_leaves_is_counted_by_sliding_it():
    for size in range(1, 9):
        for kernel in range(1, 4):
            for stride in range(1, 4):
                for dilation in range(1, 3):
                    for pads in range(3):
                        span = dilation * (kernel - 1) + 1
                        if span > size + pads:
                            continue
                        starts = list(range(0, size + pads, stride))
                        windows = [s for s in starts if s + span <= size + pads]
                        actual = geometry.window_output(size, kernel, stride, dilation, pads, False)
                        assert actual == len(windows)
                        up = geometry.window_output(size, kernel, stride, dilation, pads, True)
                        left = windows[-1] + span < size + pads
                        assert up == len(windows) + left


def test_same_pads_make_an_output_of_a_step_per_stride():
    for size in range(1, 9):
        for kernel in range(1, 5):
            for stride in range(1, 4):
                for dilation in range(1, 3):
                    begin, end = geometry.same_pads(size, kernel, stride, dilation, True)
                    assert geometry.same_pads(size, kernel, stride, dilation, False) == (end, begin)
                    assert 0 <= end - begin <= 1
                    actual = geometry.window_output(
                        size, kernel, stride, dilation, begin + end, False
                    )
                    assert actual == -(-size // stride) or begin + end == 0


def test_a_slice_reads_what_the_standard_says():
    """The standard adds the size to what is below 0, and bounds both ends by the direction."""
    bounds = (-9, -3, -1, 0, 1, 2, 9)
    for size, start, end, step in product(range(4), bounds, bounds, (-3, -1, 1, 2)):
        first, last = (n + size if n < 0 else n for n in (start, end))
        if step > 0:
            expected = range(min(max(first, 0), size), min(max(last, 0), size), step)
        else:
            top = max(size - 1, 0)
            expected = range(min(max(first, 0), top), min(max(last, -1), size - 1), step)
        places = list(range(size))
        got = places[geometry.slice_along(size, start, end, step)]
        assert got == [places[i] for i in expected if i < size], (size, start, end, step)
