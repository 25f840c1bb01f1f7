"""What is known of one shape from several sides."""

from __future__ import annotations

import pytest

from serde.formats.mxnet.infer_shapes.merge_shapes import (
    BATCH,
    AxisName,
    divide_shapes,
    is_size,
    merge_batches,
    merge_shapes,
)


@pytest.mark.parametrize(
    ("shapes", "merged"),
    [
        ([None, None], None),
        ([None, (None, 3)], (None, 3)),
        ([(None, "B"), (2, None), (5,)], (2, "B")),
        ([(AxisName("N"),), ("B",), (None,)], ("B",)),
        ([("B",), (4,)], (4,)),
    ],
)
def test_numbers_before_sizes_before_names_of_axes(shapes, merged) -> None:
    assert merge_shapes(*shapes) == merged


def test_a_batch_that_several_have() -> None:
    assert merge_batches(None, (None, 3), ("B", 2)) == "B"
    assert not is_size(merge_batches(None, (None, 3), (AxisName("T"),)))
    assert merge_batches() is BATCH


@pytest.mark.parametrize(
    ("whole", "part", "size"),
    [
        (("N", 2, 2), (None, 4), "N"),
        ((6, 4), (None, 8), 3),
        (("N", 3), ("N", None), 3),
        (("N", "T"), (None, "N"), "T"),
        (("N", "T"), (None, 1), None),
        (("N", 3), (None, 1), None),
        ((5,), (None, 2), None),
        ((None, 4), (None, 4), None),
        ((0, 4), (None, 0), None),
    ],
)
def test_the_size_that_is_left(whole, part, size) -> None:
    assert divide_shapes(whole, part) == size
