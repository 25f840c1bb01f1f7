"""Shuffles of channels compute the same with channels last, and take one Transpose each."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.layout.place import place
from serde.passes.layout.shuffles import turn_shuffles
from testing.onnx_live import error, ir_of, run

IMAGES = frozenset({"Conv"})
BODY = "a = Conv(x, w) r = Reshape(a, s) t = Transpose<perm=[{perm}]>(r) b = Reshape(t, u) c = Relu(b) y = Conv(c, w)"
CASES = {  # the shape of groups, the permutation, and Transposes between the convolutions
    "two groups": ("0,2,3,4,5", "0,2,1,3,4", 1),
    "three groups": ("0,3,2,4,5", "0,2,1,3,4", 1),
    "rows too": ("0,2,3,4,5", "0,2,1,4,3", None),
    "groups of rows": ("0,6,2,2,5", "0,1,3,2,4", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_shuffles_compute_the_same(name):
    split, perm, count = CASES[name]
    graph = build(split, perm)
    turned = turn_shuffles(graph)
    if count is None:
        assert turned is graph
        return
    placed = place(turned, IMAGES)
    x = np.random.default_rng(0).standard_normal((2, 6, 4, 5), np.float32)
    (expected,), (got,) = run(graph, {"x": x}), run(placed, {"x": x})
    assert error(got, expected) < 1e-6
    # those behind and before a convolution are part of it
    assert [n.op for n in placed.nodes].count("Transpose") - 2 == count


def test_what_is_read_twice_stays():
    graph = build("0,2,3,4,5", "0,2,1,3,4", "z = Reshape(t, u) ", ", float[N,6,4,5] z")
    assert turn_shuffles(graph) is graph


def build(split, perm, more="", results=""):
    numbers = ", ".join(map(str, np.random.default_rng(1).standard_normal(36).round(2)))
    body = BODY.format(perm=perm) + more
    return ir_of(f"""g (float[N,6,4,5] x) => (float[N,6,4,5] y{results})
        <float[6,6,1,1] w = {{{numbers}}}, int64[5] s = {{{split}}}, int64[4] u = {{0,6,4,5}}>
        {{ {body} }}""")
