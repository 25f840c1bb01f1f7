"""Batches that were baked into models: what is right is compared, the rest refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from testing.onnx_live import run_model
from tests.passes.batches import assert_is_rebatched, model_with, random

INTO_ZEROS = "(float[{0},3,4] x) => (float[{0},3,4] y) {{ s = Slice(x, a, b, c) t = Sigmoid(s) z = ConstantOfShape(n) y = ScatterND(z, i, t) }}"


def into_zeros(samples):
    """Constants that write to two of four columns of each sample."""
    places = np.stack(np.meshgrid(range(samples), range(3), range(2), indexing="ij"), -1)
    return {"a": [0], "b": [2], "c": [2], "n": [samples, 3, 4], "i": places}


# name: (text of the model, constants: sizes of random ones, or lists). The batch is 1.
RIGHT = {
    "-1 for features": ("(float[1,16,4] x) => (float[1,10] y) { r = Reshape(x, s) y = MatMul(r, w) }", {"s": [1, -1], "w": (64, 10)}),
    "-1 for rows": ("(float[1,16,4] x) => (float[1,16,4] y) { r = Reshape(x, s) t = Relu(r) y = Reshape(t, s2) }", {"s": [-1, 4], "s2": [1, 16, 4]}),
    "a maximum whose places nothing reads": ("(float[1,3,4,4] x) => (float[1,3,2,2] y) { y, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }", {}),
    "0": ("(float[1,16,4] x) => (float[1,64] y) { y = Reshape(x, s) }", {"s": [0, -1]}),
    "rows at the end": ("(float[1,4,10] x) => (float[4,10] y) { y = Reshape(x, s) }", {"s": [-1, 10]}),
    "a YOLO head": ("(float[1,255,4,4] x) => (float[1,48,85] y) { r = Reshape(x, s) t = Transpose<perm=[0,1,3,4,2]>(r) y = Reshape(t, s2) }", {"s": [1, 3, 85, 4, 4], "s2": [1, -1, 85]}),
    "a YOLO head of rows": ("(float[1,255,4,4] x) => (float[1,48,85] y) { r = Reshape(x, s) t = Transpose<perm=[0,1,3,4,2]>(r) y = Reshape(t, s2) }", {"s": [1, 3, 85, 4, 4], "s2": [-1, 48, 85]}),
    "a channel shuffle": ("(float[1,6,4,4] x) => (float[1,6,4,4] y) { r = Reshape(x, s) t = Transpose<perm=[0,2,1,3,4]>(r) y = Reshape(t, s2) }", {"s": [1, 2, 3, 4, 4], "s2": [1, -1, 4, 4]}),
    "windows": ("(float[1,4,4,3] x) => (float[1,4,4,3] y) { r = Reshape(x, s) t = Transpose<perm=[0,1,3,2,4,5]>(r) w = Reshape(t, s2) v = Transpose<perm=[0,2,1]>(w) a = MatMul(w, v) b = Add(a, m) q = MatMul(b, w) r2 = Reshape(q, s) t2 = Transpose<perm=[0,1,3,2,4,5]>(r2) y = Reshape(t2, s4) }", {"s": [1, 2, 2, 2, 2, 3], "s2": [4, 4, 3], "m": (4, 4, 4), "s4": [1, 4, 4, 3]}),
    "heads behind the batch": ("(float[1,5,8] x) => (float[1,5,8] y) { q = MatMul(x, w) p = Transpose<perm=[1,0,2]>(q) r = Reshape(p, s) t = Transpose<perm=[1,0,2]>(r) u = Transpose<perm=[0,2,1]>(t) a = MatMul(t, u) b = Softmax<axis=-1>(a) o = MatMul(b, t) v = Transpose<perm=[1,0,2]>(o) z = Reshape(v, s2) y = Transpose<perm=[1,0,2]>(z) }", {"s": [5, 2, 4], "s2": [5, 1, 8], "w": (8, 8)}),
    "ReLU attention": ("(float[1,5,8] x) => (float[1,5,8] y) { q = MatMul(x, w) p = Transpose<perm=[1,0,2]>(q) r = Reshape(p, s) t = Transpose<perm=[1,0,2]>(r) u = Transpose<perm=[0,2,1]>(t) a = MatMul(t, u) m = Add(a, c) b = Relu(m) o = MatMul(b, t) v = Transpose<perm=[1,0,2]>(o) z = Reshape(v, s2) y = Transpose<perm=[1,0,2]>(z) }", {"s": [5, 2, 4], "s2": [5, 1, 8], "w": (8, 8), "c": (2, 5, 5)}),
    "attention of stacked projections": ("(float[1,5,8] x) => (float[1,5,8] y) { q = MatMul(x, w) r = Reshape(q, s) t = Transpose<perm=[2,0,3,1,4]>(r) a, b, c = Split<axis=0, num_outputs=3>(t) aa = Squeeze(a, z) bb = Squeeze(b, z) cc = Squeeze(c, z) u = Transpose<perm=[0,1,3,2]>(bb) m = MatMul(aa, u) p = Softmax(m) o = MatMul(p, cc) v = Transpose<perm=[0,2,1,3]>(o) y = Reshape(v, s2) }", {"s": [1, 5, 3, 2, 4], "s2": [1, 5, 8], "w": (8, 24), "z": [0]}),
    "a class token": ("(float[1,4,8] x) => (float[1,5,8] y) { c = Concat<axis=1>(t, x) y = Add(c, p) }", {"t": (1, 1, 8), "p": (1, 5, 8)}),
    "an expanded token": ("(float[1,4,8] x) => (float[1,5,8] y) { e = Expand(t, s) y = Concat<axis=1>(e, x) }", {"t": (1, 1, 8), "s": [1, 1, 8]}),
    "states of an LSTM": ("(float[1,6,3] x) => (float[1,6,4] y) { t = Transpose<perm=[1,0,2]>(x) o, h, c = LSTM<hidden_size=4>(t, w, r, , , i, i) q = Squeeze(o, a) y = Transpose<perm=[1,0,2]>(q) }", {"w": (1, 16, 3), "r": (1, 16, 4), "i": (1, 1, 4), "a": [1]}),
    "states of a GRU of two directions": ("(float[1,6,3] x) => (float[1,6,8] y) { t = Transpose<perm=[1,0,2]>(x) o, h = GRU<hidden_size=4, direction=\"bidirectional\">(t, w, r, , l, i) q = Transpose<perm=[2,0,1,3]>(o) y = Reshape(q, s) }", {"w": (2, 12, 3), "r": (2, 12, 4), "i": (2, 1, 4), "l": np.int32([4]), "s": [1, 6, 8]}),
    "zeros beside": ("(float[1,6] x) => (float[1,12] y) { z = ConstantOfShape(s) y = Concat<axis=1>(x, z) }", {"s": [1, 6]}),
    "zeros added": ("(float[1,6] x) => (float[1,6] y) { z = ConstantOfShape(s) y = Add(x, z) }", {"s": [1, 6]}),
    "a grid": ("(float[1,3,5,5] x) => (float[1,3,4,4] y) { y = GridSample(x, g) }", {"g": (1, 4, 4, 2)}),
    "sizes of a Resize": ("(float[1,3,4,4] x) => (float[1,3,8,8] y) { y = Resize<mode=\"nearest\">(x, , , s) }", {"s": [1, 3, 8, 8]}),
    "an Expand": ("(float[1,4,1] x) => (float[1,4,3] y) { y = Expand(x, s) }", {"s": [1, 4, 3]}),
    "a group norm": ("(float[1,6,4,4] x) => (float[1,6,4,4] y) { r = Reshape(x, s) n = InstanceNormalization(r, g, b) y = Reshape(n, s2) }", {"s": [1, 2, -1], "g": (2,), "b": (2,), "s2": [1, 6, 4, 4]}),
    "a norm of all": ("(float[1,4,6] x) => (float[1,4,6] y) { r = Reshape(x, s) n = InstanceNormalization(r, g, b) y = Reshape(n, s2) }", {"s": [1, 1, 24], "g": (1,), "b": (1,), "s2": [1, 4, 6]}),
    "Squeeze and Unsqueeze": ("(float[1,4,8] x) => (float[1,4,8] y) { s = Squeeze(x, a) r = Relu(s) y = Unsqueeze(r, a) }", {"a": [0]}),
    "an axis in front": ("(float[1,4] x) => (float[1,1,4] y) { y = Unsqueeze(x, a) }", {"a": [0]}),
    "Flatten before the batch": ("(float[1,4,2] x) => (float[1,3] y) { r = Flatten<axis=0>(x) y = Gemm(r, w) }", {"w": (8, 3)}),
    "all of an axis": ("(float[1,4] x) => (float[1,4] y) { y = Slice(x, a, b, a) }", {"a": [0], "b": [1]}),
    "a table": ("(float[1,6] x) => (float[1,3,2] y) { v, i = TopK(x, k) y = Gather(t, i) }", {"k": [3], "t": (6, 2)}),
    "a pool of rows": ("(float[1,4,4,4] x) => (float[1,4,2,4] y) { r = Reshape(x, s) p = AveragePool<kernel_shape=[2,1], strides=[2,1]>(r) y = Reshape(p, s2) }", {"s": [1, 1, 16, 4], "s2": [1, 4, 2, 4]}),
    "places in each sample": ("(float[1,5] x) => (float[1,5] y) { y = ScatterND(x, i, u) }", {"i": [[[0, 1], [0, 3]]], "u": (1, 2)}),
    "boxes written in place": ("(float[1,3,4] x) => (float[1,3,4] y) { s = Slice(x, a, b, c) t = Sigmoid(s) y = ScatterND(x, i, t) }", {"a": [0], "b": [2], "c": [2], "i": np.stack(np.meshgrid([0], range(3), range(2), indexing="ij"), -1)}),
    "the largest of each sample": ("(float[1,5,4] x, int64[1] k) => (float[1,4] y) { m = Mod(k, f) u = Unsqueeze(m, one) i = Concat<axis=1>(z, u) y = GatherND(x, i) }", {"f": [5], "one": [1], "z": [[0]]}),
    "fixed places of each sample": ("(float[1,5,4] x) => (float[1,2,4] y) { y = GatherND(x, i) }", {"i": [[[0, 1], [0, 3]]]}),
    "a row of each sample": ("(float[1,5,4] x, int64[1] k) => (float[1,4] y) { m = Mod(k, f) r = Flatten<axis=2>(x) y = Gather<axis=0>(r, m) }", {"f": [5]}),
    "a row from the end": ("(float[1,5,4] x, int64[1] k) => (float[1,4] y) { m = Mod(k, f) n = Sub(m, f) r = Flatten<axis=2>(x) y = Gather<axis=0>(r, n) }", {"f": [5]}),
    "rows of a graph": ("(float[1,5,4] x, int64[1,3] k) => (float[1,3,4] y) { m = Mod(k, f) i = Reshape(m, all) r = Flatten<axis=2>(x) g = Gather<axis=0>(r, i) y = Reshape(g, s) }", {"f": [5], "all": [-1], "s": [1, 3, 4]}),
    "rows of a graph by coordinates": ("(float[1,5,4] x, int64[1,3] k) => (float[1,3,4] y) { m = Mod(k, f) i = Reshape(m, all) r = Flatten<axis=2>(x) g = GatherND(r, i) y = Reshape(g, s) }", {"f": [5], "all": [-1, 1], "s": [1, 3, 4]}),
    "boxes written to zeros": (INTO_ZEROS.format(1), into_zeros(1)),
    "sizes as numbers": ("(float[1,5,8] x) => (float[1,5,8] y) { n = Size(x) c = Cast<to=1>(n) y = Div(x, c) }", {}),
    "a constant output": ("(float[1,4] x) => (float[1,4] y, float[1,3] z, float[5] u) { y = Relu(x) z = Exp(c) u = Exp(d) }", {"c": (1, 3), "d": (5,)}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constants"), RIGHT.values(), ids=RIGHT)
def test_a_batch_is_taken_out(body, constants, tmp_path):
    model = model_with(body, **constants)
    targets = {"y": 1} if "GRU" in body and "[6,1" in body else {"u": -1}
    assert_is_rebatched(model, tmp_path, "N", targets=targets)
    assert_is_rebatched(model, tmp_path, 3, targets=targets)


FLAT = {"s": [5, 8], "z": [0], "one": [1], "end": [1000], "minus": [-1], "begin": [-1000], "k": [3]}
BACK = {"s2": [1, 5, 8]}


def of_rows(operators: str, result: str = "1,5,8") -> str:
    return f"(float[1,5,8] x) => (float[{result}] y) {{ r = Reshape(x, s) {operators} }}"


def of_x(operators: str, result: str = "1,5,8") -> str:
    return f"(float[1,5,8] x) => (float[{result}] y) {{ {operators} }}"


# name: (text, constants, the operator that is refused). At a batch of 1 tokens are merged with it.
MIXED = {
    "products of all rows": (of_rows("t = Transpose<perm=[1,0]>(r) a = MatMul(r, t) o = MatMul(a, r) y = Reshape(o, s2)"), FLAT | BACK, "MatMul"),
    "a Gemm of all rows": (of_rows("a = Gemm<transB=1>(r, r) o = Gemm(a, r) y = Reshape(o, s2)"), FLAT | BACK, "Gemm"),
    "an Einsum of all rows": (of_rows('o = Einsum<equation="ij,kj,kl->il">(r, r, r) y = Reshape(o, s2)'), FLAT | BACK, "Einsum"),
    "every two samples": (of_x("q = Transpose<perm=[1,0,2]>(x) k = Transpose<perm=[1,2,0]>(x) a = MatMul(q, k) o = MatMul(a, q) y = Transpose<perm=[1,0,2]>(o)"), {}, "MatMul"),
    "a sum of samples": (of_x("q = Transpose<perm=[1,2,0]>(x) k = Transpose<perm=[1,0,2]>(x) y = MatMul(q, k)", "5,8,8"), {}, "MatMul"),
    "its own transpose": (of_x("q = Transpose<perm=[1,0,2]>(x) y = Add(x, q)", "5,5,8"), {}, "Add"),
    "reversed rows": (of_rows("y = Slice(r, minus, begin, z, minus)", "5,8"), FLAT, "Slice"),
    "rolled rows": (of_rows("a = Slice(r, one, end, z) b = Slice(r, z, one, z) y = Concat<axis=0>(a, b)", "5,8"), FLAT, "Slice"),
    "every third row": (of_rows("y = Slice(r, z, end, z, k)", "2,8"), FLAT, "Slice"),
    "samples twice": (of_x("y = Concat<axis=0>(x, x)", "2,5,8"), {}, "Output"),
    "repeated rows": (of_rows("y = Tile(r, t)", "10,8"), FLAT | {"t": [2, 1]}, "Tile"),
    "padded rows": (of_rows("y = Pad(r, p)", "7,8"), FLAT | {"p": [1, 0, 1, 0]}, "Pad"),
    "steps of all samples": (of_rows("u = Unsqueeze(r, one) o, h, c = LSTM<hidden_size=4>(u, w, v) y = Squeeze(o, one)", "5,1,4"), FLAT | {"w": (1, 16, 8), "v": (1, 16, 4)}, "LSTM"),
    "a Conv over samples": (of_rows("q = Transpose<perm=[1,0]>(r) u = Unsqueeze(q, one) y = Conv<pads=[1,1]>(u, w)", "8,1,5"), FLAT | {"w": (1, 1, 3)}, "Conv"),
    "a Softmax over samples": (of_x("y = Softmax<axis=0>(x)"), {}, "Softmax"),
    "a mean of samples": (of_x("m = ReduceMean<keepdims=0>(x) y = Sub(x, m)"), {}, "ReduceMean"),
    "the largest rows": (of_rows("y, i = TopK<axis=0>(r, k)", "3,8"), FLAT, "TopK"),
    "one sample": (of_x("y = Gather<axis=0>(x, i)", "5,8"), {"i": 0}, "Gather"),
    "a place in one sample": (of_x("y = ScatterND(x, i, u)"), {"i": [[0, 2, 3], [0, 1, 1]], "u": (2,)}, "ScatterND"),
    "places": ("(float[1,5,8] x) => (int64[3,K] y) { y = NonZero(x) }", {}, "NonZero"),
    "boxes": ("(float[1,6,4] x) => (int64[K,3] y) { y = NonMaxSuppression(x, t, k) }", {"t": (1, 1, 6), "k": 3}, "NonMaxSuppression"),
    "scales of all samples": ("(float[1,6,4] x) => (uint8[1,6,4] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }", {}, "DynamicQuantizeLinear"),
    "a transposed Reshape": ("(float[1,12,64] x) => (float[12,1,64] y) { y = Reshape(x, s) }", {"s": [12, 1, 64]}, "Output"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constants", "op"), MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("batch", ["N", 4])
def test_what_mixes_samples_is_refused(batch, body, constants, op, tmp_path):
    onnx.save(model_with(body, **constants), tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible, match=f"{op} ×.*batch of 1"):
        serde.load(tmp_path / "a.onnx", rebatch=batch)


TWO = {
    "merged heads": ("(float[2,5,8] x) => (float[2,5,8] y) { r = Reshape(x, s) t = Transpose<perm=[0,2,1,3]>(r) m = Reshape(t, s2) u = Transpose<perm=[0,2,1]>(m) a = MatMul(m, u) o = MatMul(a, m) v = Reshape(o, s3) w = Transpose<perm=[0,2,1,3]>(v) y = Reshape(w, s4) }", {"s": [2, 5, 2, 4], "s2": [4, 5, 4], "s3": [2, 2, 5, 4], "s4": [2, 5, 8]}),
    "equal tokens": ("(float[2,4,8] x) => (float[2,5,8] y) { y = Concat<axis=1>(t, x) }", {"t": np.broadcast_to(random(1, 1, 8), (2, 1, 8))}),
    "zero states": ("(float[2,6,3] x) => (float[2,6,4] y) { t = Transpose<perm=[1,0,2]>(x) o, h, c = LSTM<hidden_size=4>(t, w, r, , , i, i) q = Squeeze(o, a) y = Transpose<perm=[1,0,2]>(q) }", {"w": (1, 16, 3), "r": (1, 16, 4), "i": np.zeros((1, 2, 4), np.float32), "a": [1]}),
    "masks for each head": ("(float[2,5,8] x) => (float[2,5,8] y) { r = Reshape(x, s) t = Transpose<perm=[0,2,1,3]>(r) m = Reshape(t, s2) n = Mul(m, k) v = Reshape(n, s3) w = Transpose<perm=[0,2,1,3]>(v) y = Reshape(w, s4) }", {"s": [2, 5, 2, 4], "s2": [4, 5, 4], "s3": [2, 2, 5, 4], "s4": [2, 5, 8], "k": np.tile(random(2, 5, 4), (2, 1, 1))}),
    "many tokens": ("(float[2,4,64] x) => (float[2,2004,64] y, float[2,2000,64] z) { t = Expand(q, s) u = Mul(t, k) z = Exp(u) y = Concat<axis=1>(z, x) }", {"q": (1, 2000, 64), "s": [2, 2000, 64], "k": (64,)}),
    "a constant output": ("(float[2,4] x) => (float[2,4] y, float[2,3] z) { y = Relu(x) z = Exp(c) }", {"c": np.ones((2, 3), np.float32)}),
    "repeated tokens": ("(float[2,4,8] x) => (float[2,5,8] y) { n = Neg(t) r = Tile(n, s) y = Concat<axis=1>(r, x) }", {"t": (1, 1, 8), "s": [2, 1, 1]}),
    "boxes written to zeros": (INTO_ZEROS.format(2), into_zeros(2)),
    "zeros with more axes": ("(float[2,3,4] x) => (float[2,3,4] y) { z = ConstantOfShape(n) u = Unsqueeze(z, one) m = Add(u, w) b = ReduceMax<keepdims=0>(m, one) y = Add(x, b) }", {"n": [2, 3, 4], "one": [1], "w": (5, 3, 4)}),
    "zeros in another shape": ("(float[2,12] x) => (float[2,12] y) { z = ConstantOfShape(n) e = Exp(z) r = Reshape(e, s) y = Add(x, r) }", {"n": [2, 3, 4], "s": [2, 12]}),
    "zeros with fewer axes": ("(float[2,12] x) => (float[2,12] y) { z = Expand(t, n) r = Squeeze(z, one) q = Mul(r, r) y = Add(x, q) }", {"n": [2, 1, 12], "t": (1, 12), "one": [1]}),
    "all samples": ("(float[2,4] x) => (float[2,4] y) { y = Slice(x, a, b) }", {"a": [0], "b": [2]}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constants"), TWO.values(), ids=TWO)
def test_a_batch_of_two_is_taken_out(body, constants, tmp_path):
    assert_is_rebatched(model_with(body, **constants), tmp_path)


OLD = {
    "a weight for each sample": ("(float[2,4] x) => (float[2,4] y) { y = Add(x, w) }", {"w": (2, 4)}),
    "a state for each": ("(float[2,6,3] x) => (float[6,1,2,4] y) { t = Transpose<perm=[1,0,2]>(x) y, h, c = LSTM<hidden_size=4>(t, w, r, , , i) }", {"w": (1, 16, 3), "r": (1, 16, 4), "i": (1, 2, 4)}),
    "other masks for a head": (TWO["masks for each head"][0], TWO["masks for each head"][1] | {"k": (4, 5, 4)}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constants"), OLD.values(), ids=OLD)
def test_constants_of_the_old_batch_are_refused(body, constants, tmp_path):
    onnx.save(model_with(body, **constants), tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible, match="is for a batch of 2"):
        serde.load(tmp_path / "a.onnx", rebatch="N")


def test_other_places_for_a_sample_are_refused(tmp_path):
    constants = into_zeros(2) | {"i": into_zeros(2)["i"][::-1]}
    onnx.save(model_with(INTO_ZEROS.format(2), **constants), tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible, match="ScatterND ×.*batch of 2"):
        serde.load(tmp_path / "a.onnx", rebatch="N")


def test_all_problems_are_told(tmp_path):
    body = "(float[1,4] x) => (float[1,4] y, float[1,4] z) { y = Softmax<axis=0>(x) z = Hardmax<axis=0>(x) }"
    onnx.save(model_with(body), tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible) as error:
        serde.load(tmp_path / "a.onnx", rebatch="N")
    assert [(p.op, p.names) for p in error.value.problems] == [
        ("Softmax", ("y",)),
        ("Hardmax", ("z",)),
    ]


def test_other_sizes_by_name_stay(tmp_path):
    body = """(float[1,3,H,W] x) => (float[1,A,B] y) {
      s = Shape(x) h = Gather(s, two) w = Gather(s, three) n = Mul(h, w)
      t = Concat<axis=0>(one, three, n) r = Reshape(x, t) u = Transpose<perm=[0,2,1]>(r)
      m = MatMul(u, k) y = Reshape(m, z) }"""
    model = model_with(body, two=[2], three=[3], one=[1], k=(3, 5), z=[1, -1, 5])
    onnx.save(model, tmp_path / "a.onnx")
    graph = serde.load(tmp_path / "a.onnx", rebatch="N")
    assert graph.inputs[0].shape == ("N", 3, "H", "W")
    serde.save(graph, tmp_path / "b.onnx")
    x = random(4, 3, 6, 5)
    parts = [run_model(tmp_path / "a.onnx", {"x": x[i : i + 1]})[0] for i in range(4)]
    (actual,) = run_model(tmp_path / "b.onnx", {"x": x})
    np.testing.assert_allclose(actual, np.concatenate(parts), rtol=1e-5, atol=1e-5)


STATE = """(float[1,3] x, float[2,1,4] h, float rate) => (float[1,4] y, float[2,1,4] g) {
  p = Mul(x, rate) q = MatMul(p, w) i = Gather<axis=0>(h, zero) j = Gather<axis=0>(h, one)
  a = Add(q, i) y = Tanh(a) b = Add(y, j) c = Unsqueeze(y, z) d = Unsqueeze(b, z)
  g = Concat<axis=0>(c, d) }"""
CONSTANTS = {"w": (3, 4), "zero": 0, "one": 1, "z": [0]}


@pytest.mark.parametrize("batch", [
    {"*": "N", "h": (1, "N")}, {"*": "N", "h": 1, "rate": None}, {"x": (0, "N"), "h": 1}, {"*": 3, "h": [1, 3]},
])  # fmt: skip
def test_inputs_have_the_batch_along_other_axes(batch, tmp_path):
    graph = assert_is_rebatched(
        model_with(STATE, **CONSTANTS), tmp_path, batch, {"x": 0, "h": 1}, {"g": 1}
    )
    assert {v.name: v.shape[1:2] for v in graph.inputs}["h"] in (("N",), (3,))


def test_inputs_without_a_batch(tmp_path):
    body = "(float[1,3] x, float[1,3] k) => (float[1,3] y) { y = Mul(x, k) }"
    assert_is_rebatched(model_with(body), tmp_path, {"*": "N", "k": None}, {"x": 0})
    body = "(float[1,3] x, float[5,3] k) => (float[1,5] y) { t = Transpose(k) y = MatMul(x, t) }"
    onnx.save(model_with(body), tmp_path / "a.onnx")
    with pytest.raises(serde.UsageError, match=r"do not share a batch.*rebatch={'NAME': None}"):
        serde.load(tmp_path / "a.onnx", rebatch="N")
    assert_is_rebatched(model_with(body), tmp_path, {"*": "N", "k": None}, {"x": 0})


STEPS = """(float[1,5,3] x) => (float[5,1,4] y, float[1,1,4] z) { r = Reshape(x, s) u = Unsqueeze(r, a)
  o, z = RNN<hidden_size=4>(u, w, v) y = Squeeze(o, a) }"""
WEIGHTS = {"s": [5, 3], "a": [1], "w": (1, 4, 3), "v": (1, 4, 4)}


def test_outputs_are_named_where_their_axis_is_not_clear(tmp_path):
    """Whether rows of 5 are steps of a sample is known to the RNN alone."""
    model = model_with(STEPS, **WEIGHTS)
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible, match=r"may move the batch of 1.*rebatch={'z': 1}"):
        serde.load(tmp_path / "a.onnx", rebatch="N")
    named = {"*": "N", "y": 1, "z": 1}
    assert_is_rebatched(model, tmp_path, named, {"x": 0}, {"y": 1, "z": 1})
    constant = "(float[1,4] x) => (float[1,4] y, float[1,3] z) { y = Relu(x) z = Exp(c) }"
    model = model_with(constant, c=(1, 3))
    assert_is_rebatched(model, tmp_path, {"*": "N", "z": None}, {"x": 0}, {"z": -1})


def test_an_input_that_is_an_output_stays(tmp_path):
    body = "(float[1,4] x, float[1,3] k) => (float[1,4] y, float[1,3] k) { y = Relu(x) }"
    request = {"*": "N", "k": None}
    assert_is_rebatched(model_with(body), tmp_path, request, {"x": 0}, {"k": -1})


def test_operators_tell_the_axis_of_an_output(tmp_path):
    """As if the model had been exported with a batch by name."""
    body = "(float[1,1,4] x) => (float[1,1,4] y) { y = Transpose<perm=[1,0,2]>(x) }"
    assert_is_rebatched(model_with(body), tmp_path, "N", targets={"y": 1})
    body = """(float[1,6,3] x) => (float[1,6,4] y, float[1,1,4] h) { t = Transpose<perm=[1,0,2]>(x)
      o, h, c = LSTM<hidden_size=4>(t, w, r) q = Squeeze(o, a) y = Transpose<perm=[1,0,2]>(q) }"""
    model = model_with(body, w=(1, 16, 3), r=(1, 16, 4), a=[1])
    assert_is_rebatched(model, tmp_path, "N", targets={"h": 1})


CRNN = """(float[1,3,4,6] x) => (float[6,1,5] y) { c = Conv(x, k) q = Squeeze(c, two)
  t = Transpose<perm=[2,0,1]>(q) o, h, e = LSTM<hidden_size=4>(t, w, r, , , i, i) s = Squeeze(o, one)
  f = Reshape(s, rows) g = Gemm(f, d) y = Reshape(g, steps) }"""


@pytest.mark.parametrize("batch", ["N", 3])
def test_rows_of_two_directions_come_back_as_steps(batch, tmp_path):
    body = CRNN.replace("hidden_size=4", 'hidden_size=4, direction="bidirectional"')
    body = body.replace("s = Squeeze(o, one)", "s = Transpose<perm=[0,2,1,3]>(o)")
    sizes = {"two": [2], "rows": [-1, 8], "steps": [6, 1, -1]}
    weights = {"k": (3, 3, 4, 1), "w": (2, 16, 3), "r": (2, 16, 4), "i": (2, 1, 4), "d": (8, 5)}
    assert_is_rebatched(model_with(body, **sizes, **weights), tmp_path, batch, targets={"y": 1})


@pytest.mark.parametrize("batch", ["N", 3])
def test_rows_of_all_steps_come_back_as_steps(batch, tmp_path):
    sizes = {"two": [2], "one": [1], "rows": [-1, 4], "steps": [6, 1, -1]}
    weights = {"k": (3, 3, 4, 1), "w": (1, 16, 3), "r": (1, 16, 4), "i": (1, 1, 4), "d": (4, 5)}
    assert_is_rebatched(model_with(CRNN, **sizes, **weights), tmp_path, batch, targets={"y": 1})


MOVED = {
    "attention of merged tokens": (of_x("q = MatMul(x, w) r = Reshape(q, s) t = Transpose<perm=[1,0,2]>(r) u = Transpose<perm=[0,2,1]>(t) a = MatMul(t, u) p = Relu(a) o = MatMul(p, t) v = Transpose<perm=[1,0,2]>(o) y = Reshape(v, s2)"), {"s": [5, 2, 4], "w": (8, 8)} | BACK),
    "a mean of rows": (of_rows("m = ReduceMean(r, z) o = Sub(r, m) y = Reshape(o, s2)"), FLAT | BACK),
    "sums up to a row": (of_rows("o = CumSum(r, n) y = Reshape(o, s2)"), FLAT | BACK | {"n": 0}),
    "some rows": (of_rows("o = Gather<axis=0>(r, i) y = Reshape(o, s2)", "1,3,8"), {"s": [5, 8], "i": [0, 2, 4], "s2": [1, 3, 8]}),
    "steps first": ("(float[1,5,3] x) => (float[1,5,4] y) { t = Reshape(x, s) o, h = RNN<hidden_size=4>(t, w, v) q = Squeeze(o, a) y = Reshape(q, s2) }", {"s": [5, 1, 3], "s2": [1, 5, 4], "w": (1, 4, 3), "v": (1, 4, 4), "a": [1]}),
    "two directions": ("(float[1,5,3] x) => (float[1,5,8] y) { t = Reshape(x, s) o, h = RNN<hidden_size=4, direction=\"bidirectional\">(t, w, v) q = Reshape(o, s3) y = Reshape(q, s2) }", {"s": [5, 1, 3], "s2": [1, 5, 8], "s3": [5, 1, 8], "w": (2, 4, 3), "v": (2, 4, 4)}),
    "merged before": ("(float[1,8,5] x) => (float[1,5,8] y) { t = Transpose<perm=[2,0,1]>(x) r = Reshape(t, s) c = Conv<pads=[1,1]>(r, w) y = Reshape(c, s2) }", {"w": (8, 8, 3), "s": [1, 8, 5], "s2": [1, 5, 8]}),
    "a norm of each step": ("(float[1,4,6] x) => (float[1,4,6] y) { t = Transpose<perm=[1,0,2]>(x) u = Relu(t) r = Reshape(u, s) n = InstanceNormalization(r, g, g) q = Reshape(n, s2) y = Reshape(q, s3) }", {"s": [4, 6, 1], "s2": [4, 1, 6], "s3": [1, 4, 6], "g": (6,)}),
}  # fmt: skip


@pytest.mark.parametrize(("body", "constants"), MOVED.values(), ids=MOVED)
def test_a_transpose_of_an_axis_of_1_may_be_a_reshape(body, constants, tmp_path):
    assert_is_rebatched(model_with(body, **constants), tmp_path, "N")
    assert_is_rebatched(model_with(body, **constants), tmp_path, 3)


def test_a_batch_by_name_gets_another(tmp_path):
    onnx.save(model_with("(float[B,3] x) => (float[B,3] y) { y = Relu(x) }"), tmp_path / "a.onnx")
    assert serde.load(tmp_path / "a.onnx", rebatch="N").outputs[0].shape == ("N", 3)
    assert serde.load(tmp_path / "a.onnx", rebatch=4).outputs[0].shape == (4, 3)
