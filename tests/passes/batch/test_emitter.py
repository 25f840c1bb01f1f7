"""Values that are one for all samples are repeated where operators do not broadcast them."""

from __future__ import annotations

import pytest

from tests.passes.batches import assert_is_rebatched, model_with

HEADS = "t = Transpose<perm=[0,2,1,3]>(r) m = Reshape(t, s2) n = Mul(m, k) v = Reshape(n, s3) w = Transpose<perm=[0,2,1,3]>(v) y = Reshape(w, s4)"


@pytest.mark.parametrize("batch", ["N", 3])
def test_constants_of_merged_axes(batch, tmp_path):
    """A mask for each head is repeated for all samples, in front of or behind the batch."""
    sizes = {"s": [1, 5, 2, 4], "s2": [2, 5, 4], "s3": [1, 2, 5, 4], "s4": [1, 5, 8]}
    front = model_with(
        f"(float[1,5,8] x) => (float[1,5,8] y) {{ r = Reshape(x, s) {HEADS} }}",
        k=(2, 5, 4),
        **sizes,
    )
    assert_is_rebatched(front, tmp_path, batch)
    text = """(float[1,5,8] x) => (float[1,5,8] y) { t = Transpose<perm=[1,2,0]>(x) r = Reshape(t, s)
      n = Mul(r, k) v = Reshape(n, s2) y = Transpose<perm=[2,0,1]>(v) }"""
    behind = model_with(text, k=(40, 1), s=[40, 1], s2=[5, 8, 1])
    assert_is_rebatched(behind, tmp_path, batch)
    both = text.replace("n = Mul(r, k)", "q = Reshape(r, s3) p = Mul(q, k) n = Reshape(p, s)")
    assert_is_rebatched(
        model_with(both, k=(40,), s=[40, 1], s2=[5, 8, 1], s3=[40]), tmp_path, batch
    )
    text = """(float[1,5,8] x) => (float[1,5,8] y) { t = Transpose<perm=[1,0,2]>(x) r = Reshape(t, s)
      n = Mul(r, k) v = Reshape(n, s2) y = Transpose<perm=[1,0,2]>(v) }"""
    around = model_with(text, k=(40,), s=[40], s2=[5, 1, 8])
    assert_is_rebatched(around, tmp_path, batch)
