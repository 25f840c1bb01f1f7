"""Constants in place of nodes that repeat them."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.expand_constants import expand_constants
from testing.onnx_live import ir_of, run

RNG = np.random.default_rng(0)
CASES = {
    "expanded": ("g (float[2,3] x) => (float[2,3] y) <float[1,3] w = {1,2,3}, int64[2] s = {2,3}> "
                 "{ e = Expand(w, s)\n y = Add(x, e) }", "Add"),
    "of an input": ("g (float[1,3] x) => (float[2,3] y) <int64[2] s = {2,3}> { e = Expand(x, s)\n y = Neg(e) }",
                    "Expand Neg"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "ops"), CASES.values(), ids=CASES)
def test_fewer_nodes_compute_the_same(body, ops):
    graph = ir_of(body)
    done = expand_constants(graph)
    assert [n.op for n in done.nodes] == ops.split()
    feeds = {v.name: RNG.standard_normal(v.static_shape).astype(np.float32) for v in graph.inputs}
    for got, expected in zip(run(done, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    if len(done.nodes) == len(graph.nodes):
        assert done is graph
