"""The codes of MXNet's Reshape, compared with the examples of its documentation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.decompositions.reshape_codes import SKIP, resolve_reshape_codes
from serde.errors import ConversionError
from serde.spec.onnx_builder import OnnxBuilder
from testing.decomposed import compute

CASES = [  # sizes, codes, and the sizes that the documentation of MXNet gives
    ((2, 3, 4), (4, 0, 2), [4, 3, 2]), ((2, 3, 4), (2, 0, 0), [2, 3, 4]),
    ((2, 3, 4), (6, 1, -1), [6, 1, -1]), ((2, 3, 4), (-2,), [2, 3, 4]),
    ((2, 3, 4), (2, -2), [2, 3, 4]), ((2, 3, 4), (-2, 1, 1), [2, 3, 4, 1, 1]),
    ((2, 3, 4), (-3, 4), [6, 4]), ((2, 3, 4, 5), (-3, -3), [6, 20]),
    ((2, 3, 4), (0, -3), [2, 12]), ((2, 3, 4), (-3, -2), [6, 4]),
    ((2, 3, 4), (-4, 1, 2, -2), [1, 2, 3, 4]), ((2, 3, 4), (2, -4, -1, 3, -2), [2, 1, 3, 4]),
    ((1, 3), (SKIP, -1), [-1]), ((5,), (-4, 5, -1), [5, 1]), ((), (), []),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "codes", "expected"), CASES)
def test_codes_say_sizes(sizes: tuple[int, ...], codes: tuple[int, ...], expected: Any) -> None:
    assert resolve_reshape_codes(OnnxBuilder("g"), sizes, codes) == expected


@pytest.mark.parametrize(("codes", "shape"), [
    ((-3, 4), (6, 4)), ((0, -4, 3, -1, 0), (2, 3, 1, 4)), ((-4, -1, 2, -2), (1, 2, 3, 4)),
])  # fmt: skip
def test_sizes_by_name_are_computed(codes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for named in (False, True):
        (got,) = compute(
            lambda g, x: g.reshape(x, resolve_reshape_codes(g, g.sizes_of(x), codes)), x,
            named=named,
        )  # fmt: skip
        np.testing.assert_array_equal(got, x.reshape(shape))


@pytest.mark.parametrize(("codes", "reason"), [
    ((0, 0, 0), r"copies more axes than the 2 there are"), ((-3, 0), "copies more axes"),
    ((-4, 2), "-4 is followed by two sizes"), ((-4, -1, -1), "-4 is followed by -1 twice"),
    ((-6,), "-6 means nothing"),
])  # fmt: skip
def test_codes_that_mean_nothing_are_refused(codes: tuple[int, ...], reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        resolve_reshape_codes(OnnxBuilder("g"), (2, 3), codes)
