"""Values that are one for all samples, and choices that are taken back."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import ConversionError
from serde.ir.graph import DType, Tensor, Value
from serde.passes.batch.places import ONE, Place, Size
from serde.passes.batch.state import State, has_equal_samples


def constant(array: np.ndarray) -> Value:
    return Value("c", DType.of(array.dtype), array.shape, Tensor.of(array))


@pytest.mark.parametrize(
    ("array", "place", "equal"),
    [
        (np.tile(np.arange(3), (2, 1)), Place(0), True),
        (np.arange(6).reshape(2, 3), Place(0), False),
        (np.tile(np.arange(3), 2), Place(0, ONE, Size(3)), True),
        (np.repeat(np.arange(3), 2), Place(0, Size(3)), True),
        (np.repeat(np.arange(3), 2), Place(0, ONE, Size(3)), False),
    ],
)
def test_constants_of_equal_samples(array, place, equal):
    assert has_equal_samples(constant(array), place, 2) == equal
    state = State(2, {})
    if equal:
        assert state.expand(constant(array), place) == place
    else:
        with pytest.raises(ConversionError, match="is for a batch of 2, along axis 0"):
            state.expand(constant(array), place)


def test_what_has_one_index_or_is_of_a_batch_of_1_is_expanded():
    assert State(2, {}).expand(Value("x", None, (1, 3)), Place(0)) == Place(0)
    assert State(1, {}).expand(Value("x", None, (4, 3)), Place(0, Size(4))) == Place(0, Size(4))
    with pytest.raises(ConversionError):
        State(1, {}).expand(Value("x", None, (5, 3)), Place(0))


def test_a_size_that_the_place_does_not_explain_is_refused():
    with pytest.raises(ConversionError, match="as part of a size"):
        State(2, {}).set_place(Value("x", None, (6, 3)), Place(0), 0)


def test_choices_are_taken_back_in_their_order():
    state = State(1, {})
    keys = [Value(n) for n in "abc"]
    places = [Place(0), Place(1)]
    masks = []
    for start, key in enumerate(keys):
        state.start = start
        masks.append(state.choose(key, places, masks[0] if start == 2 else 0)[1])
    assert masks == [0b1, 0b10, 0b101]
    assert state.choose_again(masks[2]) == 2  # the last choice has another place
    assert state.choose(keys[2], places, masks[0])[0] == Place(1)
    assert state.choose_again(masks[2]) == 0  # that of b does not matter
    assert len(state.choices) == 1 and state.choose_again(masks[0]) is None
