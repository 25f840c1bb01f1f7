"""Slices of Slices along other axes, which become one."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.merge_slices import merge_slices
from testing.onnx_live import ir_of, run

RNG = np.random.default_rng(0)
CASES = {
    "two axes": ("g (float[6,8] x) => (float[3,4] y) <int64[1] s = {1}, int64[1] e = {4}, int64[1] f = {5}, "
                 "int64[1] a = {0}, int64[1] b = {1}> { t = Slice(x, s, e, a)\n y = Slice(t, s, f, b) }", "Slice"),
    "one axis": ("g (float[6,8] x) => (float[2,8] y) <int64[1] s = {1}, int64[1] e = {4}, int64[1] a = {0}> "
                 "{ t = Slice(x, s, e, a)\n y = Slice(t, s, e, a) }", "Slice Slice"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "ops"), CASES.values(), ids=CASES)
def test_fewer_nodes_compute_the_same(body, ops):
    graph = ir_of(body)
    done = merge_slices(graph)
    assert [n.op for n in done.nodes] == ops.split()
    feeds = {v.name: RNG.standard_normal(v.static_shape).astype(np.float32) for v in graph.inputs}
    for got, expected in zip(run(done, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    if len(done.nodes) == len(graph.nodes):
        assert done is graph
