"""Batches that are joined, and taken apart again."""

import onnx
import pytest

import serde
from tests.passes.batches import SAMPLES, assert_is_rebatched, model_with

# name: (text of the model, constants) for any number of samples.
BLOCKS = {
    "augmented at test time": ("(float[{0},5,8] x) => (float[{0},5,8] y) {{ n = Neg(x) b = Concat<axis=0>(x, n, x) r = Exp(b) c = Slice(r, none, one, none) d = Slice(r, one, three, none) e = Slice(d, one, many, none) f = Sub(c, e) g = Slice(d, none, one, none) y = Add(f, g) }}", lambda n: {"none": [0], "one": [n], "three": [3 * n], "many": [1000]}),
    "two views": ("(float[{0},8] x, float[{0},8] z) => (float[{0},4] y, float[{0},4] v) {{ b = Concat<axis=0>(x, z) g = MatMul(b, w) h = Add(g, a) y, v = Split<axis=0>(h, s) }}", lambda n: {"w": (8, 4), "a": (1, 4), "s": [n, n]}),
    "one view and two": ("(float[{0},8] x, float[{0},8] z) => (float[{0},8] y) {{ b = Concat<axis=0>(x, z, x) r = Relu(b) u, v = Split<axis=0>(r, s) t, w = Split<axis=0, num_outputs=2>(v) q = Sub(t, u) y = Add(q, w) }}", lambda n: {"s": [n, 2 * n]}),
    "with and without a condition": ("(float[{0},3,8,8] x) => (float[{0},4,8,8] y) {{ b = Concat<axis=0>(x, x) c = Conv<pads=[1,1,1,1]>(b, w) u, v = Split<axis=0, num_outputs=2>(c) y = Sub(u, v) }}", lambda n: {"w": (4, 3, 3, 3)}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constants"), BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("samples", [1, 2])
def test_batches_are_joined_and_taken_apart(samples, body, constants, tmp_path):
    model = model_with(body.format(samples), **constants(samples))
    assert_is_rebatched(model, tmp_path, "N")
    assert_is_rebatched(model, tmp_path, SAMPLES * samples)


def test_parts_of_batches_are_refused(tmp_path):
    body = """(float[2,8] x) => (float[1,8] y, float[3,8] z) {
      b = Concat<axis=0>(x, x) y, z = Split<axis=0>(b, s) }"""
    onnx.save(model_with(body, s=[1, 3]), tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible, match="Split ×.*batch of 2"):
        serde.load(tmp_path / "a.onnx", rebatch="N")
