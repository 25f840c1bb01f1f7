"""Sparse weights in levels that are whole, that list indices, and that are blocks."""

from __future__ import annotations

import numpy as np
import pytest

from serde.formats.tflite.io.sparse import make_dense

WHOLE, LISTED = 0, 1


def whole(size):
    return {"format": WHOLE, "dense_size": size}


def listed(segments, indices):
    kind = "Int32Vector"
    return {"format": LISTED, "dense_size": 0, "array_segments": (kind, {"values": segments}),
            "array_indices": (kind, {"values": indices})}  # fmt: skip


def table(order, levels, blocks=()):
    return {"traversal_order": order, "dim_metadata": levels, "block_map": blocks}


def test_rows_list_their_columns():
    levels = [whole(3), listed((0, 2, 2, 3), (0, 3, 1))]
    dense = make_dense(table((0, 1), levels), np.float32([1, 2, 3]), (3, 4), b"")
    np.testing.assert_array_equal(dense, [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])


def test_columns_come_first_where_the_order_says_so():
    levels = [whole(4), listed((0, 1, 2, 2, 3), (0, 2, 0))]
    dense = make_dense(table((1, 0), levels), np.float32([1, 3, 2]), (3, 4), b"")
    np.testing.assert_array_equal(dense, [[1, 0, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])


def test_blocks_are_whole():
    levels = [whole(2), listed((0, 1, 2), (1, 0)), whole(1), whole(2)]
    dense = make_dense(table((0, 1, 2, 3), levels, (0, 1)), np.int8([1, 2, 3, 4]), (2, 4), b"")
    np.testing.assert_array_equal(dense, [[0, 0, 1, 2], [3, 4, 0, 0]])


BROKEN = {
    "axes": (table((0, 0), [whole(1), whole(1)]), "axes are not those"),
    "block": (table((0, 1, 2), [whole(1)] * 3, (5,)), "a block of an axis"),
    "a large level": (table((0, 1), [whole(1 << 30), whole(1 << 30)]), "a level of"),
    "a negative level": (table((0, 1), [whole(-2), whole(1)]), "a level of"),
    "segments": (table((0, 1), [whole(3), listed((0, 2), (0, 1))]), "segments of a level"),
    "falling segments": (table((0, 1), [whole(2), listed((0, 4, 3), (0, 1, 2))]), "segments"),
    "too few": (table((0, 1), [whole(1), whole(2)]), "its levels have 2 elements, and 3"),
    "an index outside": (table((0, 1), [whole(1), listed((0, 3), (0, 9, 1))]), "invalid entry"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_levels_that_do_not_fit_are_refused(name):
    broken, reason = BROKEN[name]
    with pytest.raises(ValueError, match=reason):
        make_dense(broken, np.float32([1, 2, 3]), (3, 4), b"")
