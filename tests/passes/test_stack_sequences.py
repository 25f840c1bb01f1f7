"""Lists that a loop fills become outputs it stacks, also where there are no lists."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.bridges.mxnet import run as run_mxnet
from serde.errors import Unconvertible
from testing.mxnet_live import live_mxnet
from testing.onnx_live import model_of, run_model

TEXT = """
g (float[SIZE,3] x, int64 count) => (float[SHAPE] y) {
  zero = Constant <value_int = 0> ()
  three = Constant <value_int = 3> ()
  go = Cast <to = 9> (three)
  empty = SequenceEmpty ()
  filled = SequenceInsert (empty, x)
  state, list = Loop (COUNT, go, x, FIRST)
    <body = turn (int64 i, bool on, float[SIZE,3] s, seq(float[SIZE,3]) before)
    => (bool on2, float[SIZE,3] s2, seq(float[SIZE,3]) after) {
      on2 = Identity (on)
      half = Constant <value_float = 0.5> ()
      s2 = Mul (s, half)
      TURN
    }>
  JOIN
}"""
APPEND = "after = SequenceInsert (before, s2)"
X = np.random.default_rng(3).standard_normal((2, 3), np.float32)


def model(join, rank=3, turn=APPEND, size=2, first="empty", count="count"):
    """A loop over a list, and what is read of it."""
    shape = ",".join("abc"[:rank])
    fields = {"SIZE": size, "SHAPE": shape, "TURN": turn, "JOIN": join, "FIRST": first,
              "COUNT": count}  # fmt: skip
    text = TEXT
    for word, meant in fields.items():
        text = text.replace(word, str(meant))
    return model_of(text)


def assert_same(source, folder, *counts):
    """The converted model computes what its source does."""
    for count in counts:
        feeds = {"x": X, "count": np.array(count)}
        (expected,) = run_model(source, feeds)
        (got,) = run_model(onnx.load(folder / "m.onnx"), feeds)
        np.testing.assert_array_equal(got, expected)


def has_lists(folder):
    """Whether anything in the converted model is about sequences."""
    return any("Sequence" in n.op for n in serde.load(folder / "m.onnx").nodes)


JOINS = {
    "stacked in front": ("y = ConcatFromSequence <axis = 0, new_axis = 1> (list)", 3),
    "stacked in between": ("y = ConcatFromSequence <axis = 1, new_axis = 1> (list)", 3),
    "stacked at the end": ("y = ConcatFromSequence <axis = -1, new_axis = 1> (list)", 3),
    "joined": ("y = ConcatFromSequence <axis = 0> (list)", 2),
    "joined at the end": ("y = ConcatFromSequence <axis = -1> (list)", 2),
    "both": ("a = ConcatFromSequence <axis = 0> (list) b = ConcatFromSequence <axis = 0, "
             "new_axis = 1> (list) s = Shape (a) r = Reshape (b, s) y = Add (a, r)", 2),
}  # fmt: skip


@pytest.mark.parametrize("opset", [9, 11, 17])
@pytest.mark.parametrize("join", JOINS)
def test_lists_become_stacks(join, opset, tmp_path):
    source = model(*JOINS[join])
    serde.convert(source, tmp_path / "m.onnx", opset=opset)
    assert not has_lists(tmp_path)
    assert_same(source, tmp_path, 1, 4)


def test_elements_of_unknown_size_are_stacked_but_not_joined(tmp_path):
    stacked = model(*JOINS["stacked in between"], size="N")
    serde.convert(stacked, tmp_path / "m.onnx", opset=11)
    assert_same(stacked, tmp_path, 3)
    with pytest.raises(Unconvertible, match="sequence"):
        serde.convert(model(*JOINS["joined"], size="N"), tmp_path / "n.onnx", opset=11)


OTHERS = {
    "put in front": {"turn": "at = Constant <value_int = 0> ()"
                     " after = SequenceInsert (before, s2, at)"},
    "read in the loop": {"turn": "n = SequenceLength (before) f = Cast <to = 1> (n)"
                         " t = Add (s2, f) after = SequenceInsert (before, t)"},
    "read otherwise": {"join": "y = SequenceAt (list, zero)"},
    "not empty at first": {"first": "filled"},
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_other_lists_stay(case, tmp_path):
    source = model(**{"join": JOINS["joined"][0], "rank": 2} | OTHERS[case])
    serde.convert(source, tmp_path / "m.onnx")
    assert has_lists(tmp_path)
    assert_same(source, tmp_path, 3)


def test_mxnet_takes_the_stack(tmp_path):
    live_mxnet()
    source = model(*JOINS["stacked in front"], count="three")
    del source.graph.input[1]
    serde.convert(source, tmp_path / "m-symbol.json")
    (got,) = run_mxnet(str(tmp_path / "m"), {"x": X})
    np.testing.assert_array_equal(got, run_model(source, {"x": X})[0])
