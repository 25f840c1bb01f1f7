"""Inputs and outputs that a caller gives."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import MalformedFile, UsageError
from serde.verification.given_arrays import load_expected, load_inputs, read_npz
from testing.onnx_live import ir_of

TWO = ir_of(
    "g (float[2] a, float[2] b) => (float[2] y, float[2] z) { y = Add(a, b)\n z = Sub(a, b) }"
)
ONE = ir_of("g (float[2] a) => (float[2] y) { y = Neg(a) }")
X, Y = np.float32([1, 2]), np.float32([3, 4])


def test_inputs_by_name_and_one_of_any_name(tmp_path):
    np.savez(tmp_path / "in.npz", b=Y, a=X, more=X)
    held = load_inputs(TWO, tmp_path / "in.npz")
    assert list(held) == ["a", "b"] and held["b"].tolist() == [3, 4]
    assert load_inputs(ONE, {"image": X})["a"].tolist() == [1, 2]
    with pytest.raises(UsageError, match="no input 'b'; they have 'a'"):
        load_inputs(TWO, {"a": X})


def test_rows_are_the_elements_of_a_sequence():
    graph = ir_of("g (seq(float[2]) s) => (float[N] y) { y = ConcatFromSequence<axis=0>(s) }")
    assert [x.tolist() for x in load_inputs(graph, {"s": np.stack([X, Y])})["s"]] == [
        [1, 2],
        [3, 4],
    ]


def test_outputs_by_name_or_in_order():
    assert load_expected(TWO, {"z": Y, "y": X})[0] is X
    assert load_expected(TWO, {"first": X, "second": Y})[1] is Y
    assert load_expected(ONE, {"data": Y, "expected": X})[0] is X
    with pytest.raises(UsageError, match="the expected outputs are called 'only'"):
        load_expected(TWO, {"only": X})


def test_files_that_are_none(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no zip")
    with pytest.raises(MalformedFile, match="not an .npz file"):
        read_npz(tmp_path / "x.npz")
