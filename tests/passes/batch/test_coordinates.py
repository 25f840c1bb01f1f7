"""Look-ups whose first coordinate is the number of the sample, as PyTorch writes them."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import Unconvertible
from tests.passes.batches import assert_is_rebatched, model_with

NUMBERS = [[0], [1]]
# Inputs and nodes for a batch of two, and what the constant ``n`` is.
CASES = {
    "a coordinate": (
        "float[2,6,4] x, int64[2,1] l",
        "i = Concat<axis=1>(n, l) y = GatherND(x, i)", NUMBERS),
    "more coordinates": (
        "float[2,6,6] x, int64[2,1] l",
        "i = Concat<axis=-1>(n, l, l) y = GatherND(x, i)", NUMBERS),
    "several places": (
        "float[2,6,4] x, int64[2,3,1] l",
        "i = Concat<axis=2>(n, l) y = GatherND(x, i)", [[[0]] * 3, [[1]] * 3]),
    "of a flat tensor": (
        "float[2,6,4] x, int64[2] l",
        "f = Flatten<axis=2>(x) i = Add(l, n) y = Gather<axis=0>(f, i)", [0, 6]),
    "of a reshaped tensor": (
        "float[2,6,4,5] x, int64[2,3] l",
        "f = Reshape(x, s) i = Add(n, l) y = Gather<axis=0>(f, i)", [[0], [6]]),
}  # fmt: skip


def make(name: str, numbers=None):
    inputs, nodes, expected = CASES[name]
    constants = {"s": np.array([12, 4, 5])} if "Reshape" in nodes else {}
    values = np.array(expected if numbers is None else numbers, np.int64)
    return model_with(f"({inputs}) => (float[A,B] y) {{ {nodes} }}", n=values, **constants)


@pytest.mark.parametrize("batch", ["N", 6])
@pytest.mark.parametrize("name", CASES)
def test_samples_are_looked_up_one_by_one(name, batch, tmp_path):
    model = make(name)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert_is_rebatched(model, tmp_path, batch)


@pytest.mark.parametrize(
    "name, numbers",
    [("a coordinate", [[1], [0]]), ("a coordinate", [[0], [0]]), ("of a flat tensor", [0, 5]),
     ("of a flat tensor", [6, 0])],
)  # fmt: skip
def test_other_numbers_are_refused(name, numbers, tmp_path):
    model = make(name, numbers)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(Unconvertible, match="batch"):
        assert_is_rebatched(model, tmp_path)
