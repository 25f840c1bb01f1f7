"""Sequences and optionals whose contents are known, at opsets without them."""

from __future__ import annotations

import pytest

from serde.errors import Unconvertible
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.legalize.convert import lower_to, raise_to_ir
from testing.legalize.sequence_cases import BODIES, list_cases
from testing.node_cases import Case, verdict
from testing.onnx_live import ir_of


@pytest.mark.parametrize(
    "case", [c for c in list_cases() if c.name in BODIES], ids=lambda c: c.name
)
def test_resolved(case: Case) -> None:
    """No sequence and no optional is left, and the result is that of the model as it is."""
    ir = raise_to_ir(decode(case.model))
    for opset in (7, 10, 12, 14):
        graph = lower_to(ir, opset)
        left = {n.op for n in graph.nodes if opset < 13 or "Optional" in n.op}
        assert not [op for op in left if "Sequence" in op or "Optional" in op]
        assert verdict(case, to_proto(graph)) == "right"


def test_constructed_where_it_leaves() -> None:
    """An output that is a sequence stays one where the opset has them, and is refused below."""
    text = (
        "g (float[6, 4] x, float[6, 4] y) => (seq(float[6, 4]) s) { s = SequenceConstruct(x, y) }"
    )
    assert [n.op for n in lower_to(ir_of(text), 12).nodes] == ["SequenceConstruct"]
    with pytest.raises(Unconvertible, match="an output of the graph.*opset 11 is the lowest"):
        lower_to(ir_of(text), 10)


@pytest.mark.parametrize(("count", "go"), [("n", ""), ("", "f")])
def test_loop_that_turns_as_often_as_data_says(count: str, go: str) -> None:
    text = (
        "g (float[6, 4] x, int64 n, bool f) => (float[A, 4] z) { s = SequenceConstruct(x, x)"
        f" t = Loop<body = b (int64 i, bool c, seq(float[6, 4]) p) => (bool c, seq(float[6, 4]) q)"
        f" {{ q = SequenceInsert(p, x) }}>({count}, {go}, s)"
        " z = ConcatFromSequence<axis = 0>(t) }"
    )
    assert "Loop" in {n.op for n in lower_to(ir_of(text), 13).nodes}
    for opset in (7, 10, 12):
        with pytest.raises(Unconvertible, match="as often as data says; opset 13 is the lowest"):
            lower_to(ir_of(text), opset)
