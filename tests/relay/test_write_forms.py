"""Forms of models in live TVM: sequences, and what is no single node or ONNX Runtime refuses."""

from __future__ import annotations

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.passes import tidy
from testing.onnx_live import ir_of, model_of, run_model
from testing.relay.tvm_live import run

RNG = np.random.default_rng(11)


def f32(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def put(x, where, values):
    x[where] = values
    return x


def add(x, where, values):
    np.add.at(x, where, values)
    return x


TEXTS = {
    "a Slice to a size without axes": (
        "g (float[4,6] x) => (y) <int64[1] first={1}, int64 zero={0}, int64[1] axis={0}>"
        "{ s = Shape(x) \n end = Gather(s, zero) \n y = Slice(x, first, end, axis) }",
        lambda x: x[1:],
    ),
    "a Slice that ends before it begins": (
        "g (float[4,6] x) => (y) <int64[1] from={3}, int64[1] to={1}> { y = Slice(x, from, to) }",
        lambda x: x[3:1],
    ),
    "a TopK of none": (
        "g (float[4,6] x) => (y) <int64[1] none={0}> { y, i = TopK(x, none) }",
        lambda x: x[:, :0],
    ),
    "GatherElements of fewer rows than there are": (
        "g (float[4,6] x) => (y) <int64[2,1] at={-1,2}> { y = GatherElements<axis=1>(x, at) }",
        lambda x: np.take_along_axis(x[:2], np.array([[-1], [2]]), 1),
    ),
    **{
        f"ScatterElements of fewer rows than there are, {how}": (
            "g (float[4,6] x) => (y) <int64[2,1] at={-1,2}, int64[2] from={0,0}, int64[2] to={2,1}>"
            f'{{ u = Slice(x, from, to) \n y = ScatterElements<axis=1, reduction="{how}">(x, at, u) }}',
            lambda x, at=at: at(x.copy(), (np.array([0, 1]), np.array([5, 2])), x[:2, 0].copy()),
        )
        for how, at in {"none": put, "add": add}.items()
    },
    **{
        f"an If in an If of {axes or 'no'} axes": (
            f"g (float[4,6] x, bool{axes} c) => (float[4,6] y) {{ y = If(c) <"
            "then_branch = a () => (float[4,6] p) { p = If(c) <"
            "then_branch = b () => (float[4,6] q) { q = Neg(x) },"
            "else_branch = d () => (float[4,6] r) { r = Abs(x) }> },"
            "else_branch = e () => (float[4,6] s) { s = Exp(x) }> }",
            lambda x: -x,
        )
        for axes in ("", "[1]", "[1,1]")
    },
}  # fmt: skip


SEQUENCES = {  # beside x, and a = Neg(x)
    "SplitToSequence": "s = SplitToSequence <axis = 0> (x) \n y = SequenceAt(s, one)",
    "SplitToSequence sizes": "s = SplitToSequence <axis = 1> (x, sizes) \n y = SequenceAt(s, last)",
    "SplitToSequence keepdims": "s = SplitToSequence <axis = 1, keepdims = 0> (x)"
    "y = ConcatFromSequence <axis = 0, new_axis = 1> (s)",
    "ConcatFromSequence": "s = SequenceConstruct(x, a) \n y = ConcatFromSequence <axis = 0> (s)",
    "SequenceInsert, SequenceErase": "s = SequenceConstruct(x, a) \n b = Abs(a)"
    "t = SequenceInsert(s, b, zero) \n u = SequenceErase(t, last)"
    "y = ConcatFromSequence <axis = 1> (u)",
    "SequenceLength": "s = SequenceConstruct(x, a, x) \n y = SequenceLength(s)",
    "SequenceEmpty": "s = SequenceEmpty <dtype = 1> () \n t = SequenceInsert(s, x)"
    "u = SequenceInsert(t, a) \n y = ConcatFromSequence <axis = 1> (u)",
    "SequenceAt a computed position": "s = SequenceConstruct(x, a) \n n = ReduceSum(x) \n"
    "c = Less(n, n) \n i = Cast <to = 7> (c) \n k = Squeeze(i) \n y = SequenceAt(s, k)",
    "SequenceMap": "s = SequenceConstruct(x, a) \n m = SequenceMap (s) <body = each "
    "(float[4,6] e) => (float[4,6] o) { o = Exp(e) }> \n y = ConcatFromSequence <axis = 0> (m)",
    "If": "n = ReduceMax(x) \n m = ReduceMin(x) \n c = Less(m, n) \n k = Squeeze(c) \n"
    "s = If(k) <then_branch = t () => (seq(float[4,6]) p) { p = SequenceConstruct(x, a) }, "
    "else_branch = e () => (seq(float[4,6]) q) { q = SequenceConstruct(a, x) }> \n"
    "y = SequenceAt(s, one)",
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_whose_contents_are_static(name):
    body = (
        "g (float[4,6] x) => (y) <int64 zero = {0}, int64 one = {1}, int64 last = {-1}, "
        f"int64[2] sizes = {{2, 4}}> {{ a = Neg(x) \n {SEQUENCES[name]} }}"
    )
    graph = from_ir(tidy(ir_of(body, 17)))
    module, _ = to_module(graph)
    feeds = {"x": f32(4, 6)}
    (got,), (expected,) = (
        run("json", to_json(module), feeds),
        run_model(model_of(body, 17, 8), feeds),
    )
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "op"),
    [
        ("g (seq(float[4,6]) s, int64 i) => (y) { y = SequenceAt(s, i) }", "SequenceAt"),
        ("g (float[N,6] x) => (y) <int64 i = {0}> { s = SplitToSequence <axis = 0> (x) \n"
         "y = SequenceAt(s, i) }", "SplitToSequence"),
        ("g (float[4,6] x) => (s) { a = Neg(x) \n s = SequenceConstruct(x, a) }",
         "SequenceConstruct"),
    ],
)  # fmt: skip
def test_sequences_that_are_dynamic_are_refused(body, op):
    with pytest.raises(Unconvertible) as caught:
        from_ir(tidy(ir_of(body, 17)))
    reasons = {p.op: p.reason for p in caught.value.problems}
    assert "Relay has no sequences" in reasons[op]


@pytest.mark.parametrize("name", TEXTS)
def test_forms(name):
    """Forms that ONNX Runtime refuses, or that are no one node, against NumPy."""
    body, expected = TEXTS[name]
    graph = from_ir(tidy(ir_of(body, 17)))
    module, _ = to_module(graph)
    x = f32(4, 6)
    feeds = {"x": x}
    if len(graph.inputs) > 1:
        feeds["c"] = np.ones(graph.inputs[1].static_shape, bool)
    (got,) = run("json", to_json(module), feeds)
    np.testing.assert_allclose(got, expected(x), rtol=1e-6)
