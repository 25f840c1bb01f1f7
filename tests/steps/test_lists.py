"""Sequences and optionals whose contents are known, at opsets without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.errors import Unconvertible
from serde.formats.onnx.writer import to_proto
from serde.opset import lower_to
from tests.node_cases import results
from tests.onnx_live import ir_of, model_of

RNG = np.random.default_rng(9)
X = RNG.standard_normal((6, 4)).astype(np.float32)
Y = RNG.standard_normal((6, 4)).astype(np.float32)
AT = "one = Constant<value_int = 1>() last = Constant<value_int = -1>()"
BODIES = {
    "built and read": "s = SequenceConstruct(x, y) z = SequenceAt(s, last)",
    "changed": "s = SequenceConstruct(x, y) t = SequenceInsert(s, y, one) u = SequenceErase(t, last)"
               " v = SequenceAt(u, one) z = Add(v, x)",
    "grown from nothing": "s = SequenceEmpty<dtype = 1>() t = SequenceInsert(s, x)"
                          " u = SequenceInsert(t, y) z = ConcatFromSequence<axis = 1>(u)",
    "stacked": "s = SequenceConstruct(x, y) z = ConcatFromSequence<axis = -1, new_axis = 1>(s)",
    "counted": "s = SequenceConstruct(x, y, x) n = SequenceLength(s) m = Cast<to = 1>(n)"
               " z = Mul(x, m)",
    "split one by one": "s = SplitToSequence<axis = 1, keepdims = 0>(x) z = SequenceAt(s, one)",
    "split in pieces": "k = Constant<value_int = 4>() s = SplitToSequence<axis = 0>(x, k)"
                       " z = SequenceAt(s, last)",
    "split by sizes": "k = Constant<value_ints = [1, 3, 2]>() s = SplitToSequence(x, k)"
                      " z = SequenceAt(s, one)",
    "named again": "s = SequenceConstruct(x, y) t = Identity(s) z = SequenceAt(t, one)",
    "by a computed place": "s = SequenceConstruct(x, y) n = Shape<start = 1>(x)"
                           " two = Constant<value_ints = [3]>() i = Sub(n, two) o = Squeeze(i)"
                           " z = SequenceAt(s, o)",
    "mapped": "s = SequenceConstruct(x, y) t = SequenceMap<body = b (float[6, 4] v)"
              " => (float[6, 4] w) { u = Add(v, x) w = Relu(u) }>(s) z = ConcatFromSequence<axis = 0>(t)",
    "chosen": "c = ReduceMax<keepdims = 0>(x) zero = Constant<value_float = 0.5>()"
              " f = Greater(c, zero) s = If<then_branch = a () => (seq(float[6, 4]) p)"
              " { p = SequenceConstruct(x, y) }, else_branch = b () => (seq(float[6, 4]) q)"
              " { q = SequenceConstruct(y, x) }>(f) z = SequenceAt(s, one)",
    "optional": "o = Optional(x) h = OptionalHasElement(o) e = OptionalGetElement(o)"
                " c = Cast<to = 1>(h) z = Mul(e, c)",
}  # fmt: skip


def body(name: str, result: str = "float[A, B] z") -> str:
    shape = "float[6, 4, 2] z" if name == "stacked" else result
    if name == "split one by one":
        shape = "float[6] z"
    nodes = f"{AT} {BODIES[name]}"
    return f"g (float[6, 4] x, float[6, 4] y) => ({shape}) {{ {nodes} }}"


def ran(model: Any) -> np.ndarray[Any, Any]:
    return next(r for _, r in results(model, [X, Y]) if not isinstance(r, Exception))[0]


@pytest.mark.parametrize("name", BODIES)
def test_resolved(name: str) -> None:
    """No sequence and no optional is left, and the result is that of the model as it is."""
    wanted = ran(model_of(body(name)))
    for opset in (7, 10, 12, 14):
        graph = lower_to(ir_of(body(name)), opset)
        left = {n.op for n in graph.nodes if opset < 13 or "Optional" in n.op}
        assert not [op for op in left if "Sequence" in op or "Optional" in op]
        np.testing.assert_allclose(ran(to_proto(graph)), wanted, rtol=1e-6)


def test_constructed_where_it_leaves() -> None:
    """An output that is a sequence stays one where the opset has them, and is refused below."""
    text = (
        "g (float[6, 4] x, float[6, 4] y) => (seq(float[6, 4]) s) { s = SequenceConstruct(x, y) }"
    )
    assert [n.op for n in lower_to(ir_of(text), 12).nodes] == ["SequenceConstruct"]
    with pytest.raises(Unconvertible, match="leaves the graph.*opset 11 is the lowest"):
        lower_to(ir_of(text), 10)
