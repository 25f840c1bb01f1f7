"""Operators that choose elements: equal ones in order, and as many as there are."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.formats.mxnet import from_ir
from serde.formats.mxnet.writer import live
from serde.formats.onnx.reader import decode
from serde.opset import raise_to_ir
from tests.mxnet_live import run_symbol
from tests.onnx_live import model_of, run_model

TOP = """
g ({kind}[{shape}] x) => ({kind}[k] v, int64[k] i)
{{
  k = Constant <value_ints = [{count}]> ()
  v, i = TopK <axis = {axis}, largest = {largest}> (x, k)
}}"""
FOUND = "g (float[3,4] x) => (int64[2,n] y) { y = NonZero (x) }"
COMPRESSED = """
g (float[3,4] x, bool[4] c) => (float[3,n] y, float[n,3] z)
{
  y = Compress <axis = 1> (x, c)
  z = Transpose <perm = [1, 0]> (y)
}"""
SUPPRESSED = """
g (float[2,30,4] boxes, float[2,3,30] scores) => (int64[n,3] y)
{
  most = Constant <value_ints = [5]> ()
  overlap = Constant <value_floats = [0.4]> ()
  least = Constant <value_floats = [0.2]> ()
  y = NonMaxSuppression <center_point_box = CENTER> (boxes, scores, most, overlap, least)
}"""
RANDOM = np.random.default_rng(0)


def check(body, **feeds):
    text, arrays = live(from_ir(raise_to_ir(decode(model_of(body)))))
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    wanted = run_model(model_of(body), feeds)
    for a, b in zip(run_symbol(text, held, feeds), wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return wanted


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("count", [1, 5, 36])
@pytest.mark.parametrize("kind, dtype", [("float", "float32"), ("int64", "int64")])
def test_of_equal_elements_the_first_come_first(kind, dtype, count, largest):
    x = RANDOM.integers(0, 4, (3, 36)).astype(dtype)
    check(TOP.format(kind=kind, shape="3,36", axis=1, count=count, largest=largest), x=x)


def test_one_element_is_the_best():
    body = TOP.format(kind="float", shape="1,3", axis=0, count=1, largest=1)
    check(body, x=np.float32([[3, 1, 2]]))


def test_an_older_release_has_no_order():
    body = TOP.format(kind="float", shape="3,36", axis=1, count=5, largest=1)
    with pytest.raises(Unconvertible, match="came with 1.6"):
        from_ir(raise_to_ir(decode(model_of(body))), mxnet="1.5")


def test_places_of_what_is_not_zero():
    (found,) = check(FOUND, x=np.float32([[0, 1, 2, 0], [0] * 4, [np.nan, 0, 0, -3]]))
    assert found.shape == (2, 4)


def test_as_many_columns_as_a_condition_has():
    x = RANDOM.standard_normal((3, 4), np.float32)
    check(COMPRESSED, x=x, c=np.array([True, False, False, True]))


@pytest.mark.parametrize("center", [0, 1])
def test_boxes_that_are_not_suppressed(center):
    corners = RANDOM.uniform(0, 1, (2, 30, 4)).astype(np.float32)
    scores = RANDOM.integers(0, 9, (2, 3, 30)).astype(np.float32) / 8
    (found,) = check(SUPPRESSED.replace("CENTER", str(center)), boxes=corners, scores=scores)
    assert 10 < len(found) <= 30


PLACED = """
g (float[{shape}] x) => (float[{free}] y, int64[{free}] i) {{ y, i = MaxPool <{how}> (x) }}"""
WINDOWS = {
    "plain": ("2,3,5,6", "kernel_shape = [2, 2]"),
    "padded": ("2,3,5,6", "kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1]"),
    "by columns": ("2,3,5,6", "kernel_shape = [2, 2], strides = [2, 1], storage_order = 1"),
    "gaps": ("1,2,9", "kernel_shape = [3], dilations = [2], pads = [1, 1]"),
    "rounded up": ("1,2,5,6", "kernel_shape = [2, 3], strides = [2, 2], ceil_mode = 1"),
    "a volume": ("2,2,4,4,3", "kernel_shape = [2, 2, 2]"),
}


@pytest.mark.parametrize("batch", ["", "N"])
@pytest.mark.parametrize("case", WINDOWS)
def test_where_the_largest_of_a_window_stands(case, batch):
    shape, how = WINDOWS[case]
    sizes = [int(d) for d in shape.split(",")]
    named = batch + shape[1:] if batch else shape
    free = ",".join("abcdefg"[: len(sizes)])
    x = RANDOM.integers(-9, 9, sizes).astype(np.float32)
    check(PLACED.format(shape=named, free=free, how=how), x=x)
