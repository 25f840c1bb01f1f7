"""Inputs and outputs that a caller gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.errors import MalformedFile, UsageError
from serde.verification.given_arrays import load_expected, load_inputs, read_npz
from testing.onnx_live import ir_of, model_of

BODY = """g (float[N,3] x, int64[M] i) => (float[N,3] y, float[M,3] z) <float[9,3] t = {{{0}}}>
{{ y = Relu(x)
   z = Gather(t, i) }}"""


def write_model(path, numbers=None, body=BODY):
    numbers = list(range(27)) if numbers is None else numbers
    onnx.save(model_of(body.format(", ".join(map(str, numbers))), 17, 8), path)
    return str(path)


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


class TestGivenArrays:
    @pytest.fixture
    def paths(self, tmp_path):
        return write_model(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")

    feeds = {"x": np.float32([[1, -1, 2]]), "i": np.array([0, 8])}
    table = np.arange(27, dtype=np.float32).reshape(9, 3)
    right = {"y": np.float32([[1, 0, 2]]), "z": table[[0, 8]]}

    def test_expected_outputs_by_name(self, paths, tmp_path):
        np.savez(tmp_path / "in.npz", **self.feeds)
        np.savez(tmp_path / "out.npz", **self.right)
        check = serde.convert(
            *paths, data=tmp_path / "in.npz", expected=str(tmp_path / "out.npz")
        ).verification
        assert (check.ok, check.source) == (True, "the outputs given")

    def test_expected_outputs_in_order(self, paths):
        check = serde.convert(
            *paths, data=self.feeds, expected={"first": self.right["y"], "second": self.right["z"]}
        ).verification
        assert check.ok and len(check.outputs) == 2

    def test_wrong_expected_outputs_fail(self, paths):
        wrong = {**self.right, "z": self.right["z"] + 1}
        report = serde.convert(*paths, data=self.feeds, expected=wrong)
        assert not report.ok and not report.verification.ok

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            (
                {"expected": {"y": np.float32([1])}},
                "expected outputs are called 'y', the model's 'y', 'z'",
            ),
            (
                {"expected": right, "data": {"x": np.float32([1])}},
                "the data have no input 'i'; they have 'x'",
            ),
        ],
    )
    def test_what_does_not_fit_the_model_is_refused(self, paths, options, why):
        with pytest.raises(UsageError, match=why):
            serde.convert(*paths, **{"data": self.feeds, **options})

    @pytest.mark.parametrize("content", [b"", b"PK\3\4 nothing", b"no archive"])
    def test_what_is_no_npz_is_refused(self, paths, tmp_path, content):
        (tmp_path / "in.npz").write_bytes(content)
        with pytest.raises(MalformedFile, match="not an .npz file of arrays"):
            serde.convert(*paths, verify=True, data=tmp_path / "in.npz")

    def test_pickles_are_not_loaded(self, paths, tmp_path):
        np.savez(tmp_path / "in.npz", x=np.array([{}], object), i=np.array([0]))
        with pytest.raises(MalformedFile, match="not an .npz file of arrays"):
            serde.convert(*paths, verify=True, data=tmp_path / "in.npz")

    def test_one_array_for_one_input_needs_no_name(self, tmp_path):
        onnx.save(
            model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17, 8), tmp_path / "a.onnx"
        )
        check = serde.convert(
            str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx"),
            data={"arr_0": np.float32([1, -1])}, expected={"expected": np.float32([1, 0])},
        ).verification  # fmt: skip
        assert check.ok
