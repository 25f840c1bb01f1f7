"""Arrays of counts are those of NumPy, and are charged before they are made."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError
from serde.ir import arrays
from serde.ir.budget import within_budget

CALLS = {
    "arange": (2, 11, 3), "linspace": (0.0, 1.0, 7), "full": ((2, 3), 5), "zeros": ((4,),),
    "ones": ((2, 2),), "eye": (3, 4), "indices": ((2, 3),),
}  # fmt: skip
LARGE = {
    "arange": (1 << 40,), "linspace": (0.0, 1.0, 1 << 40), "full": ((1 << 20, 1 << 20), 0),
    "zeros": (1 << 40,), "ones": ((1 << 40,),), "eye": (1 << 20,), "indices": ((1 << 20, 1 << 20),),
    "repeat": (np.ones(2), 1 << 40), "tile": (np.ones(2), (1 << 40,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_they_are_numpys(name):
    np.testing.assert_array_equal(
        getattr(arrays, name)(*CALLS[name]), getattr(np, name)(*CALLS[name])
    )


def test_those_of_arrays_are_numpys():
    x = np.arange(3)
    np.testing.assert_array_equal(arrays.repeat(x, 2), np.repeat(x, 2))
    np.testing.assert_array_equal(arrays.tile(x, (2, 1)), np.tile(x, (2, 1)))
    for a, b in zip(arrays.meshgrid(x, x[:2]), np.meshgrid(x, x[:2]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", LARGE)
def test_what_is_out_of_proportion_is_refused_before_it_is_made(name):
    with within_budget(), pytest.raises(ConversionError, match="elements"):
        getattr(arrays, name)(*LARGE[name])
