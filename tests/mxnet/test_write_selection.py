"""Operators that choose elements: equal ones in order, and as many as there are."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.formats.mxnet.from_ir import from_ir
from serde.formats.mxnet.io.symbol_writer import encode_live
from serde.formats.onnx.reader import decode
from serde.legalize.convert import raise_to_ir
from testing.mxnet_live import live_mxnet, run_symbol
from testing.onnx_live import model_of, run_model

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
g (float[2,30,4] boxes, float[2,3,30] scores{operands}) => (int64[n,3] y)
{{
  most = Constant <value_ints = [{most}]> ()
  overlap = Constant <value_floats = [0.4]> ()
  least = Constant <value_floats = [{least}]> ()
  y = NonMaxSuppression <center_point_box = {center}> (boxes, scores, {chosen})
}}"""
COUNTED = """
g ({kind}[1] first, {kind}[1] last, {kind}[1] step) => ({kind}[n] y, {kind}[n] z)
{{
  start = Squeeze (first)
  limit = Squeeze (last)
  delta = Squeeze (step)
  y = Range (start, limit, delta)
  shape = Shape (y)
  one = ConstantOfShape (shape)
  some = CastLike (one, y)
  z = Add (y, some)
}}"""
RANDOM = np.random.default_rng(0)


def check(body, **feeds):
    text, arrays = encode_live(from_ir(raise_to_ir(decode(model_of(body)))))
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    expected = run_model(model_of(body), feeds)
    for a, b in zip(run_symbol(text, held, feeds), expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return expected


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("count", [1, 5, 36])
@pytest.mark.parametrize("kind, dtype", [("float", "float32"), ("int64", "int64")])
def test_of_equal_elements_the_first_come_first(kind, dtype, count, largest):
    x = RANDOM.integers(0, 4, (3, 36)).astype(dtype)
    check(TOP.format(kind=kind, shape="3,36", axis=1, count=count, largest=largest), x=x)


def test_one_element_is_the_best():
    body = TOP.format(kind="float", shape="1,3", axis=0, count=1, largest=1)
    check(body, x=np.float32([[3, 1, 2]]))


@pytest.mark.parametrize(("release", "kind", "shape", "why"), [
    ("1.2", "int64", "3,36", "MXNet 1.2 sorts no int64"),
    ("1.2", "float", "3,5000", "MXNet 1.2 sorts float32 only, which cannot order 5000 places"),
    ("1.5", "float", "3,N", "came with 1.6"),
])  # fmt: skip
def test_what_an_older_release_cannot_order(release, kind, shape, why):
    body = TOP.format(kind=kind, shape=shape, axis=1, count=5, largest=1)
    with pytest.raises(Unconvertible, match=why):
        from_ir(raise_to_ir(decode(model_of(body))), mxnet=release)


@pytest.mark.parametrize("op", ["ReduceL1", "ReduceL2", "ReduceSum"])
def test_a_reduction_over_no_axes(op):
    body = f"g (float[2,3] x) => (float[2,3] y) {{ y = {op} <noop_with_empty_axes = 1> (x) }}"
    check(body, x=np.float32([[1, -2, 3], [-4, 5, -6]]))


def test_places_of_what_is_not_zero():
    (indices,) = check(FOUND, x=np.float32([[0, 1, 2, 0], [0] * 4, [np.nan, 0, 0, -3]]))
    assert indices.shape == (2, 4)


def test_as_many_columns_as_a_condition_has():
    x = RANDOM.standard_normal((3, 4), np.float32)
    check(COMPRESSED, x=x, c=np.array([True, False, False, True]))


def boxes_and_scores(levels=9):
    """Boxes whose corners stand in any order, one of them of no area; scores that are equal."""
    corners = RANDOM.uniform(0, 1, (2, 30, 4)).astype(np.float32)
    corners[0, 3, 2:] = corners[0, 3, :2]
    scores = RANDOM.integers(0, levels, (2, 3, 30)).astype(np.float32) / 8
    return {"boxes": corners, "scores": scores}


BEST = """
g (float[n,3] x, int64[1] k) => (float[m,3] v, int64[m,3] i) { v, i = TopK <axis = 0> (x, k) }"""
HALF = """
g (float[n,3] x) => (float[m,3] v, int64[m,3] i)
{
  size = Shape <start = 0, end = 1> (x)
  two = Constant <value_ints = [2]> ()
  k = Div (size, two)
  v, i = TopK <axis = 0> (x, k)
}"""


@pytest.mark.parametrize("count", [1, 3, 8])
def test_as_many_of_the_best_as_the_run_asks_for(count):
    x = RANDOM.integers(0, 4, (8, 3)).astype(np.float32)
    check(BEST, x=x, k=np.array([count]))
    check(HALF, x=x)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("least", [0.2, 0.25, -1.0])
@pytest.mark.parametrize("most", [1, 5, 99])
def test_boxes_that_are_not_suppressed(most, least, center):
    how = {"most": most, "least": least, "center": center}
    body = SUPPRESSED.format(operands="", chosen="most, overlap, least", **how)
    (indices,) = check(body, **boxes_and_scores())
    assert 6 <= len(indices) < 180


@pytest.mark.parametrize("chosen", ["most", "most, overlap", "most, , least"])
def test_bounds_that_are_not_given(chosen):
    feeds = boxes_and_scores()
    feeds["scores"][0, 1, :4] = -np.inf
    body = SUPPRESSED.format(operands="", chosen=chosen, most=99, least=0.25, center=0)
    check(body, **feeds)


@pytest.mark.parametrize("name, value", [("m", np.int64([2])), ("o", np.float32([0.3]))])
def test_bounds_that_are_computed(name, value):
    chosen = ", ".join(["m" if name == "m" else "most", "o" if name == "o" else "overlap", "least"])
    operands = ", int64[1] m" if name == "m" else ", float[1] o"
    body = SUPPRESSED.format(operands=operands, chosen=chosen, most=9, least=0.25, center=0)
    check(body, **boxes_and_scores(), **{name: value})


def test_the_older_executor_takes_found_and_computed_together():
    mx, body = live_mxnet(), COUNTED.format(kind="float")
    feeds = {n: np.float32([v]) for n, v in (("first", 2), ("last", 11), ("step", 3))}
    text, arrays = encode_live(from_ir(raise_to_ir(decode(model_of(body)))))
    symbol = mx.sym.load_json(text)
    args = {n.partition(":")[2]: t.load() for n, t in arrays.items()} | feeds
    args = {n: mx.nd.array(args[n], dtype=args[n].dtype) for n in symbol.list_arguments()}
    outputs = symbol.bind(mx.cpu(), args, grad_req="null").forward(is_train=False)
    for a, b in zip(outputs, run_model(model_of(body), feeds), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b)


@pytest.mark.parametrize("first, last, step", [(2, 11, 3), (5, -7, -4), (0, 1, 1)])
@pytest.mark.parametrize("kind, dtype", [("int64", "int64"), ("float", "float32")])
def test_steps_that_are_counted_when_it_runs(kind, dtype, first, last, step):
    numbers = zip(("first", "last", "step"), (first, last, step), strict=True)
    check(COUNTED.format(kind=kind), **{n: np.array([v], dtype) for n, v in numbers})


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
