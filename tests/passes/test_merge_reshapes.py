"""Chains of nodes that rearrange axes, which become one."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.dce import drop_dead
from serde.passes.merge_reshapes import merge_reshapes
from testing.onnx_live import ir_of, run

RNG = np.random.default_rng(0)
CASES = {
    "two": ("g (float[2,3,4] x) => (float[24] y) <int64[2] a = {6, 4}, int64[1] b = {24}> "
            "{ t = Reshape(x, a)\n y = Reshape(t, b) }", "Reshape"),
    "back": ("g (float[2,3] x) => (float[2,3] y) <int64[1] a = {6}, int64[2] b = {2, 3}> "
             "{ r = Relu(x)\n t = Reshape(r, a)\n u = Reshape(t, b)\n y = Neg(u) }", "Relu Neg"),
    "moved": ("g (float[2,3] x) => (float[6] y) <int64[1] a = {6}> "
              "{ t = Transpose<perm=[1,0]>(x)\n y = Reshape(t, a) }", "Transpose Reshape"),
    "read twice": ("g (float[2,3] x) => (float[6] y, float[3,2] t) <int64[2] a = {3, 2}, int64[1] b = {6}> "
                   "{ t = Reshape(x, a)\n y = Reshape(t, b) }", "Reshape Reshape"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "ops"), CASES.values(), ids=CASES)
def test_fewer_nodes_compute_the_same(body, ops):
    graph = ir_of(body)
    done = drop_dead(merge_reshapes(graph))
    assert [n.op for n in done.nodes] == ops.split()
    feeds = {v.name: RNG.standard_normal(v.static_shape).astype(np.float32) for v in graph.inputs}
    for got, expected in zip(run(done, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    if len(done.nodes) == len(graph.nodes):
        assert done is graph
