"""One-hot rows, blocks of images and optional values in other operators."""

from __future__ import annotations

import numpy as np
import pytest

from serde.decompositions import indexing
from serde.decompositions.indexing import depth_to_space, divide_size, one_hot, space_to_depth
from serde.errors import ConversionError
from serde.spec.onnx_builder import OnnxBuilder
from testing.decomposed import check_decomposed, compute, operators_of

OF_TENSORS = {"OptionalGetElement", "OptionalHasElement", "Size"}  # node tests are of sequences
IMAGE = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)


@pytest.mark.parametrize("op", [op for op in operators_of(indexing) if op not in OF_TENSORS])
def test_decomposed(op: str) -> None:
    check_decomposed(op)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("named", [False, True])
def test_places_are_counted_from_the_back_too(axis: int, named: bool) -> None:
    """As NumPy has it; what is out of bounds is nowhere."""
    places = np.int64([[0, -1, 2], [5, 1, -5]])
    got = compute(
        lambda g, i: one_hot(g, i, g.const(4), g.const(np.float32([2, 5])), axis=axis),
        places, named=named,
    )  # fmt: skip
    inside = np.where((places >= -4) & (places < 4), places % 4, 9)
    rows = np.where(inside[..., None] == np.arange(4), np.float32(5), np.float32(2))
    np.testing.assert_array_equal(got[0], np.moveaxis(rows, -1, axis))


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("named", [False, True])
def test_blocks_go_there_and_back(mode: str, named: bool) -> None:
    """In NumPy; sizes by name are divided when they are known."""
    (image,) = compute(
        lambda g, x: depth_to_space(g, x, blocksize=2, mode=mode), IMAGE, named=named
    )
    split = IMAGE.reshape(2, 2, 2, 2, 2, 3)  # a block has as many rows as there are channels
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    np.testing.assert_array_equal(image, split.transpose(order).reshape(2, 2, 4, 6))
    (back,) = compute(lambda g, x: space_to_depth(g, x, blocksize=2, mode=mode), image, named=named)
    np.testing.assert_array_equal(back, IMAGE)


def test_a_size_that_blocks_do_not_divide_is_refused() -> None:
    g = OnnxBuilder("g")
    assert divide_size(g, 6, 3) == 2
    with pytest.raises(ConversionError, match="a size of 7 in blocks of 3"):
        divide_size(g, 7, 3)


@pytest.mark.parametrize("named", [False, True])
def test_elements_are_counted(named: bool) -> None:
    (got,) = compute(lambda g, x: indexing.count_elements(g, x), IMAGE, named=named)
    assert got.shape == () and got == IMAGE.size


def test_an_optional_tensor_is_its_own_element() -> None:
    (value, has, lacks) = compute(
        lambda g, x: (indexing.optional_get(g, x), indexing.optional_has(g, x),
                      indexing.optional_has(g)), IMAGE,
    )  # fmt: skip
    np.testing.assert_array_equal(value, IMAGE)
    assert has and not lacks
