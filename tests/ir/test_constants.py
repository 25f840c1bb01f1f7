"""Constants that passes make."""

from __future__ import annotations

import numpy as np

from serde.ir.constants import is_constant, make_constant, make_integers, make_lazy_constant
from serde.ir.graph import DType, Tensor, Value


def test_a_constant_has_the_type_of_its_contents() -> None:
    value = make_constant("c", Tensor.of(np.ones((2, 3), np.float16)))
    assert (value.name, value.dtype, value.shape) == ("c", DType.FLOAT16, (2, 3))


def test_integers_are_a_list_of_int64() -> None:
    value = make_integers("axes", range(3))
    assert value.dtype is DType.INT64 and value.shape == (3,) and value.ints() == (0, 1, 2)
    assert make_integers("none", []).dtype is DType.INT64


def test_a_lazy_constant_is_computed_when_it_is_read_and_rounded_once() -> None:
    calls = []

    def load() -> np.ndarray:
        calls.append(1)
        return np.full((2, 2), 1 + 2.0**-12)  # in float64

    like = Value("x", DType.FLOAT16)
    value = make_lazy_constant("c", like, (4,), load)
    assert not calls and (value.dtype, value.shape) == (DType.FLOAT16, (4,))
    array = value.array()
    assert calls and array.dtype == np.float16 and array.shape == (4,) and (array == 1).all()


def test_operands_that_are_left_out_are_constants() -> None:
    constant, computed = make_integers("c", [1]), Value("x")
    assert is_constant([constant, None]) and is_constant([])
    assert not is_constant([constant, computed])
