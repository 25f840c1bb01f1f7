"""Reshapes around an InstanceNormalization, which become one GroupNormalization."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.group_norms import merge_group_norms
from testing.onnx_live import ir_of, run

BODY = "r = Reshape(x, s) n = InstanceNormalization<epsilon=0.01>(r, f, b) y = Reshape(n, t)"
MERGED, KEPT = ["GroupNormalization"], ["Reshape", "InstanceNormalization", "Reshape"]
CASES = {  # the shape of the tensor, that of groups, and what is left
    "two groups": ((2, 4, 3, 5), (0, 2, -1), MERGED),
    "one group": ((2, 4, 6), (2, 1, 24), MERGED),
    "groups of rows": ((2, 6, 4, 5), (2, 2, 12, 5), MERGED),
    "volumes": ((1, 4, 2, 3, 2), (0, 2, -1), MERGED),
    "samples together": ((2, 4, 3, 5), (1, 2, -1), KEPT),
    "parts of channels": ((2, 4, 3, 2), (2, 3, 8), KEPT),
    "rows": ((2, 4), (2, 2, 2), KEPT),
}


@pytest.mark.parametrize("name", CASES)
def test_groups_compute_the_same(name):
    shape, split, ops = CASES[name]
    graph = build(shape, split, shape)
    done = merge_group_norms(graph)
    assert [n.op for n in done.nodes] == ops
    compare(graph, done)


def test_another_shape_stays():
    graph = build((2, 4, 6), (0, 2, -1), (2, 4, 2, 3))
    assert merge_group_norms(graph) is graph


def test_computed_factors_stay():
    graph = ir_of("""g (float[2,4,6] x, float[2] f) => (float[2,4,6] y)
        <int64[3] s = {0,2,-1}, int64[3] t = {2,4,6}> {
        r = Reshape(x, s) n = InstanceNormalization(r, f, f) y = Reshape(n, t) }""")
    assert merge_group_norms(graph) is graph


def build(shape, split, result):
    """A graph that normalizes groups, each by a factor and a summand of its own."""
    groups = split[1]
    constants = {
        "s": ("int64", split), "t": ("int64", result),
        "f": ("float", range(1, groups + 1)), "b": ("float", range(groups)),
    }  # fmt: skip
    texts = [f"{t}[{len(v)}] {n} = {{{', '.join(map(str, v))}}}" for n, (t, v) in constants.items()]
    x, y = (",".join(map(str, sizes)) for sizes in (shape, result))
    return ir_of(f"g (float[{x}] x) => (float[{y}] y) <{', '.join(texts)}> {{ {BODY} }}")


def compare(graph, done):
    feeds = {
        v.name: np.random.default_rng(0).standard_normal(v.static_shape, np.float32)
        for v in graph.inputs
    }
    for got, expected in zip(run(done, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)
