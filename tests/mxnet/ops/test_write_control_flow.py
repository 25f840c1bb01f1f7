"""Control flow as MXNet's, with the numbers of ONNX Runtime."""

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

X = np.random.default_rng(0).standard_normal((2, 3), np.float32)
BRANCHES = """
g (float[2,3] x, bool[1] flag, float[2,3] w) => (float[2,3] y, float[3] z)
{
  holds = Squeeze (flag)
  y, z = If (holds) <
    then_branch = a () => (float[2,3] p, float[3] q) {
      p = Mul (x, w)
      zero = Constant <value_ints = [0]> ()
      q = ReduceSum <keepdims = 0> (x, zero)
    },
    else_branch = b () => (float[2,3] r, float[3] t) {
      r = Identity (x)
      t = Constant <value_floats = [1.0, 2.0, 3.0]> ()
    }>
}"""
COUNTED = """
g (float[2,3] x, float[2,3] w) => (float[2,3] last, float[4,2,3] all, float[4] firsts)
{
  turns = Constant <value_int = 4> ()
  last, all, firsts = Loop (turns, , x) <
    body = b (int64 i, bool going, float[2,3] s) =>
        (bool on, float[2,3] next, float[2,3] kept, float first) {
      on = Identity (going)
      number = Cast <to = 1> (i)
      more = Mul (w, number)
      next = Add (s, more)
      kept = Neg (next)
      largest = ReduceMax <keepdims = 0> (next)
      first = Add (largest, number)
    }>
}"""
ROWS = COUNTED.replace("float[2,3] w)", "float[2,3] w, float[n,2] many)").replace(
    "turns = Constant <value_int = 4> ()",
    "size = Shape <start = 0, end = 1> (many)\n  turns = Squeeze (size)",
)
ASKED = COUNTED.replace("float[2,3] w)", "float[2,3] w, int64[1] many)").replace(
    "turns = Constant <value_int = 4> ()", "turns = Squeeze (many)"
)
UNTIL = """
g (float[2,3] x, float[1] bound) => (float[2,3] y, int64 count)
{
  yes = Constant <value = bool {1}> ()
  zero = Constant <value_int = 0> ()
  y, count = Loop (, yes, x, zero) <
    body = b (int64 i, bool going, float[2,3] s, int64 c) =>
        (bool on, float[2,3] next, int64 counted) {
      next = Add (s, s)
      one = Constant <value_int = 1> ()
      counted = Add (c, one)
      all = ReduceSum <keepdims = 0> (next)
      large = Abs (all)
      b0 = Squeeze (bound)
      on = Less (large, b0)
    }>
}"""
COMPUTED = """
g (float[2,3] x, int64[1] rows) => (float[2,3] y)
{
  turns = Squeeze (rows)
  y = Loop (turns, , x) <
    body = b (int64 i, bool going, float[2,3] s) => (bool on, float[2,3] next) {
      on = Identity (going)
      next = Add (s, x)
    }>
}"""
SCANNED = """
g (float[3] start, float[5,3] rows) => (float[3] total, float[5,3] sums)
{
  total, sums = Scan (start, rows) <num_scan_inputs = 1,
    body = b (float[3] s, float[3] row) => (float[3] n, float[3] out) {
      n = Add (s, row)
      out = Identity (n)
    }>
}"""
NESTED = """
g (float[2,3] x, float[1] w) => (float[2,3] y)
{
  turns = Constant <value_int = 3> ()
  y = Loop (turns, , x) <
    body = b (int64 i, bool going, float[2,3] s) => (bool on, float[2,3] next) {
      on = Identity (going)
      one = Constant <value_int = 1> ()
      late = Greater (i, one)
      next = If (late) <
        then_branch = p () => (float[2,3] u) { u = Mul (s, w) },
        else_branch = q () => (float[2,3] v) { v = Add (s, x) }>
    }>
}"""
LOOPS = """
g (float[2,3] x, float[1] w) => (float[2,3] y)
{
  turns = Constant <value_int = 3> ()
  y = Loop (turns, , x) <
    body = b (int64 i, bool going, float[2,3] s) => (bool on, float[2,3] next) {
      on = Identity (going)
      next = Loop (turns, , s) <
        body = c (int64 j, bool go, float[2,3] t) => (bool o, float[2,3] later) {
          o = Identity (go)
          sum = Add (i, j)
          number = Cast <to = 1> (sum)
          more = Mul (number, w)
          later = Add (t, more)
        }>
    }>
}"""
GROWING = """
g (float[1] x) => (float[k] y)
{
  turns = Constant <value_int = 3> ()
  y = Loop (turns, , x) <
    body = b (int64 i, bool going, float[j] s) => (bool on, float[l] next) {
      on = Identity (going)
      next = Concat <axis = 0> (s, x)
    }>
}"""
FOUND = """
g (float[2,3] x, int64[1] rows, bool[2] kept) => (float[2,3] y)
{
  turns = Constant <value_int = 3> ()
  y = Loop (turns, , x) <
    body = b (int64 i, bool going, float[2,3] s) => (bool on, float[2,3] next) {
      on = Identity (going)
      made = ConstantOfShape <value = float[1] {2.0}> (rows)
      some = Compress <axis = 0> (s, kept)
      a = ReduceSum <keepdims = 0> (made)
      b = ReduceSum <keepdims = 0> (some)
      c = Add (a, b)
      next = Add (s, c)
    }>
}"""
CASES = {
    "sizes found in a loop": (
        FOUND,
        {"x": X, "rows": np.array([3]), "kept": np.array([True, False])},
    ),
    "if true": (BRANCHES, {"x": X, "flag": np.array([True]), "w": X[::-1].copy()}),
    "if false": (BRANCHES, {"x": X, "flag": np.array([False]), "w": X[::-1].copy()}),
    "turns counted": (COUNTED, {"x": X, "w": X[::-1].copy()}),
    "turns of a size": (ROWS, {"x": X, "w": X[::-1].copy(), "many": np.zeros((4, 2), np.float32)}),
    "turns asked for": (ASKED, {"x": X, "w": X[::-1].copy(), "many": np.array([4])}),
    "turns until": (UNTIL, {"x": X, "bound": np.float32([100])}),
    "turns computed": (COMPUTED, {"x": X, "rows": np.array([3])}),
    "no turns": (COMPUTED, {"x": X, "rows": np.array([0])}),
    "scan": (SCANNED, {"start": X[0], "rows": np.concatenate([X, X, X[:1]])}),
    "loop in a loop": (LOOPS, {"x": X, "w": np.float32([0.5])}),
    "if in a loop": (NESTED, {"x": X, "w": np.float32([0.5])}),
}


def encode_body(body):
    return encode_live(from_ir(raise_to_ir(decode(model_of(body)))))


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_those_of_onnx_runtime(name):
    body, feeds = CASES[name]
    text, arrays = encode_body(body)
    held = {n.partition(":")[2]: t.load() for n, t in arrays.items()}
    read = set(live_mxnet().sym.load_json(text).list_inputs())
    inputs = {n: a for n, a in feeds.items() if n in read}
    expected = run_model(model_of(body), feeds)
    for a, b in zip(run_symbol(text, held, inputs), expected, strict=True):
        assert a.shape == (b.shape or (1,)) and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_what_a_loop_that_ends_by_itself_gathers_is_refused():
    with pytest.raises(Unconvertible, match="a condition ends"):
        encode_body(COUNTED.replace("on = Identity (going)", "on = Less (i, i)"))


def test_a_state_that_grows_is_refused():
    with pytest.raises(Unconvertible, match="states that change their shape"):
        encode_body(GROWING)


def test_turns_that_find_sizes_and_give_outputs_are_refused():
    body = SCANNED.replace("n = Add (s, row)", "m = NonZero (row) k = ReduceSum <keepdims = 0> (m) "
                           "l = Cast <to = 1> (k) t = Add (s, l) n = Add (t, row)")  # fmt: skip
    with pytest.raises(Unconvertible, match="of a loop in which _npx_nonzero finds sizes"):
        encode_body(body)


def test_sizes_that_may_not_be_0_are_told_of():
    made = "g (int64[2] s) => (float[n,m] y) { y = ConstantOfShape (s) }"
    (note,) = from_ir(raise_to_ir(decode(model_of(made)))).notes
    assert note.endswith("takes a size from a tensor when it runs, where MXNet takes no 0")
