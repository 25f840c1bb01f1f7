"""Reductions of reductions, which become one."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.merge_reductions import merge_reductions
from testing.onnx_live import ir_of, run

RNG = np.random.default_rng(0)
CASES = {
    "two means": ("g (float[2,3,4] x) => (float[2] y) <int64[1] a = {1}> "
                  "{ t = ReduceMean<keepdims=0>(x, a)\n y = ReduceMean<keepdims=0>(t, a) }", "ReduceMean"),
    "kept axes": ("g (float[2,3,4] x) => (float[2,1,1] y) <int64[1] a = {1}, int64[1] b = {2}> "
                  "{ t = ReduceMax(x, a)\n y = ReduceMax(t, b) }", "ReduceMax"),
    "others": ("g (float[2,3,4] x) => (float[2] y) <int64[1] a = {1}> "
               "{ t = ReduceMean<keepdims=0>(x, a)\n y = ReduceMax<keepdims=0>(t, a) }", "ReduceMean ReduceMax"),
    "read twice": ("g (float[2,3,4] x) => (float[2] y, float[2,4] t) <int64[1] a = {1}> "
                   "{ t = ReduceSum<keepdims=0>(x, a)\n y = ReduceSum<keepdims=0>(t, a) }", "ReduceSum ReduceSum"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "ops"), CASES.values(), ids=CASES)
def test_fewer_nodes_compute_the_same(body, ops):
    graph = ir_of(body)
    done = merge_reductions(graph)
    assert [n.op for n in done.nodes] == ops.split()
    feeds = {v.name: RNG.standard_normal(v.static_shape).astype(np.float32) for v in graph.inputs}
    for got, expected in zip(run(done, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    if len(done.nodes) == len(graph.nodes):
        assert done is graph
