"""Sizes that are followed by rules are those that inference tells."""

from __future__ import annotations

import pytest

from serde.errors import SerdeError
from serde.passes.change_batch import fix_dimensions
from serde.spec.follow_sizes import follow_sizes
from testing.onnx_live import ir_of

IMAGES = """(float[N,3,H,W] x, float[4,3,3,3] w, float[4] b) => (float[A,B] y) {
    c = Conv<kernel_shape = [3, 3], strides = [2, 2]>(x, w, b)
    r = Relu(c)
    p = MaxPool<kernel_shape = [2, 2]>(r)
    j = Concat<axis = 1>(p, p)
    s = Add(j, j)
    y = Flatten<axis = 1>(s)
}"""
ROWS = """(float[N,4] x, float[4,6] w) => (float[A,6] y) {
    a = Gemm(x, w)
    t = Transpose<perm = [1, 0]>(a)
    u = Transpose<perm = [1, 0]>(t)
    y = Mul(u, a)
}"""
ADDED = "(float[N,4] x, float[3,4] c) => (float[A,4] y) { y = Add(x, c) }"
FOLDED = """(float[N,3,4] x) => (float[A,B] y) <int64[2] s = {1, 12}> { y = Reshape(x, s) }"""
UNKNOWN = "(float[N,4] x) => (float[N,4] y) { y = CumSum(x, a) a = Constant<value_int = 0>() }"


@pytest.mark.parametrize("body", [IMAGES, ROWS, ADDED, FOLDED])
@pytest.mark.parametrize(
    "sizes",
    [{"N": 3}, {"N": 31}, {"N": 1}, {"H": 20}, {"H": 2}, {"N": 2, "H": 20, "W": 9}, {"N": 12}],
)
def test_numbers_are_those_of_inference(body, sizes):
    graph = ir_of(f"g {body}")
    names = {d for v in graph.inputs for d in v.shape}
    sizes = {n: size for n, size in sizes.items() if n in names}
    shapes = follow_sizes(graph, sizes)
    try:
        known = fix_dimensions(graph, sizes)
    except SerdeError:
        assert shapes is None  # what is refused is never followed
        return
    if shapes is None:
        return
    inferred = {v.name: v.shape for node in known.nodes for v in node.outputs}
    for value, shape in shapes.items():
        numbers = tuple(d if isinstance(d, int) else None for d in inferred.get(value.name, shape))
        assert numbers == shape, value.name


@pytest.mark.parametrize(
    "body, sizes, is_followed",
    [
        (IMAGES, {"N": 2, "H": 20, "W": 9}, True),
        (IMAGES, {"N": 2}, True),
        (IMAGES, {"H": 2}, False),  # the window does not fit
        (ROWS, {"N": 5}, True),
        (ADDED, {"N": 31}, False),
        (ADDED, {"N": 3}, True),
    ],
)
def test_what_is_followed(body, sizes, is_followed):
    assert (follow_sizes(ir_of(f"g {body}"), sizes) is not None) is is_followed
