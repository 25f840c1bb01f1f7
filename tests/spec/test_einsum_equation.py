"""Labels of equations, as NumPy reads them."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError
from serde.spec.einsum_equation import parse_equation


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("...i,...i->...", [(5, 2, 3), (2, 3)]),
     ("i...->...i", [(2, 3, 4)]), ("ii->i", [(3, 3)]), ("b i j , b j -> b i", [(2, 3, 4), (2, 4)])],
)  # fmt: skip
def test_the_output_has_the_shape_that_numpy_gives(equation, shapes):
    operands, output = parse_equation(equation, [len(s) for s in shapes])
    sizes = {}
    for labels, shape in zip(operands, shapes, strict=True):
        assert len(labels) == len(shape)
        sizes |= {label: size for label, size in zip(labels, shape, strict=True) if size > 1}
    expected = np.einsum(equation, *(np.ones(s) for s in shapes)).shape
    assert tuple(sizes[label] for label in output) == expected


@pytest.mark.parametrize(
    ("equation", "ranks", "message"),
    [("ij->i", [1], "rank 1"), ("ij,jk->ik", [2], "2 operands"), ("ij->ijk", [2], "no operand"),
     ("ij->ii", [2], "repeats a label")],
)  # fmt: skip
def test_others_are_refused(equation, ranks, message):
    with pytest.raises(ConversionError, match=message):
        parse_equation(equation, ranks)
