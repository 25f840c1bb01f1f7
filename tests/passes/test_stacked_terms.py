"""Reductions along an axis that tensors were stacked along, which become those of the tensors."""

from __future__ import annotations

import numpy as np
import pytest

from serde.passes.stacked_terms import add_stacked_terms
from testing.onnx_live import ir_of, run

STACK = "p = Unsqueeze(x, {a}) q = Unsqueeze(z, {a}) c = Concat<axis={axis}>(p, q, p) "
CASES = {  # nodes, the shape of the result, and the operator that is left
    "a sum": (STACK.format(a="first", axis=0) + "y = ReduceSum<keepdims=0>(c, first)", "2,3", "Sum"),
    "a mean": (STACK.format(a="last", axis=2) + "y = ReduceMean<keepdims=0>(c, last)", "2,3", "Mean"),
    "the largest": (STACK.format(a="last", axis=-1) + "y = ReduceMax<keepdims=0>(c, last)", "2,3", "Max"),
    "the axis is kept": (STACK.format(a="first", axis=0) + "y = ReduceSum(c, first)", "1,2,3", None),
    "another axis": (STACK.format(a="first", axis=0) + "y = ReduceSum<keepdims=0>(c, last)", "3,2", None),
    "joined": ("c = Concat<axis=0>(x, z) y = ReduceSum<keepdims=0>(c, first)", "3", None),
    "all axes": (STACK.format(a="first", axis=0) + "y = ReduceSum<keepdims=0>(c)", "", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_reductions_of_stacks_compute_the_same(name):
    body, shape, op = CASES[name]
    graph = ir_of(f"""g (float[2,3] x, float[2,3] z) => (float[{shape}] y)
        <int64[1] first = {{0}}, int64[1] last = {{-1}}> {{ {body} }}""")
    done = add_stacked_terms(graph)
    if op is None:
        assert done is graph
        return
    assert [n.op for n in done.nodes if n.op != "Unsqueeze"] == [op]
    feeds = {
        v.name: np.random.default_rng(n).standard_normal((2, 3), np.float32)
        for n, v in enumerate(graph.inputs)
    }
    for got, expected in zip(run(done, feeds), run(graph, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_sums_of_integers_stay():
    body = STACK.format(a="first", axis=0) + "y = ReduceSum<keepdims=0>(c, first)"
    graph = ir_of(f"""g (int32[2,3] x, int32[2,3] z) => (int32[2,3] y)
        <int64[1] first = {{0}}> {{ {body} }}""")
    assert add_stacked_terms(graph) is graph
