"""A sum with a constant for each channel becomes the bias of the convolution before it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.convolutions import check_operators_left

CASES = {  # the nodes, the shape of what is added, and the operators that are left
    "a convolution": ("a = Conv(x, w) y = Add(a, c)", "6,1,1", ["Conv"]),
    "as the first operand": ("a = Conv(x, w) y = Add(c, a)", "1,6,1,1", ["Conv"]),
    "transposed": ("a = ConvTranspose(x, v) y = Add(a, c)", "6,1,1", ["ConvTranspose"]),
    "with a bias": ("a = Conv(x, w, b) y = Add(a, c)", "6,1,1", ["Conv", "Add"]),
    "along another axis": ("a = Conv(x, w) y = Add(a, c)", "6", ["Conv", "Add"]),
    "a number for each element": ("a = Conv(x, w) y = Add(a, c)", "6,6,6", ["Conv", "Add"]),
    "another reader": (
        "a = Conv(x, w) m = Add(a, c) y = Mul(m, a)", "6,1,1", ["Conv", "Add", "Mul"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sums(name, tmp_path):
    body, added, operators = CASES[name]
    draws = np.random.default_rng(0)
    shapes = {"w": (6, 4, 3, 3), "v": (4, 6, 3, 3), "b": (6,), "c": map(int, added.split(","))}
    constants = {
        n: draws.standard_normal(tuple(s), np.float32)
        for n, s in shapes.items() if f"{n})" in body or f"{n}," in body
    }  # fmt: skip
    check_operators_left(body, constants, operators, tmp_path)
