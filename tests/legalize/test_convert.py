"""Graphs raised to the IR and lowered to an opset or a target: what is done to a whole graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from serde.errors import ConversionError, SerdeError, Unconvertible, UsageError
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import IR_OPSET, DType, Graph, Node, Value
from serde.legalize.convert import (
    lower_to,
    lower_to_target,
    raise_to_ir,
    require_opset,
    scalarize_sequences,
    without_functions,
)
from serde.legalize.target import Target
from serde.spec import schema
from serde.spec.onnx_builder import OnnxBuilder
from testing.onnx_live import decode_text, ir_of, model_of, run_model
from testing.version_converter.old import Old, X

FUNCTION = """<ir_version: 8, opset_import: ["": 17, "own": 1]>
g (float[N,4] x) => (float[N,4] y) {{ t = own.F(x) y = Softmax(t) }}
<domain: "own", opset_import: ["": {opset}]> F (a) => (b) {{ c = {op}(a) b = Neg(c) }}"""


def decode_functions(op: str, opset: int) -> Graph:
    from onnx import parser

    from serde.formats.onnx.reader import decode

    return decode(parser.parse_model(FUNCTION.format(op=op, opset=opset)))


def operators(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


@pytest.mark.parametrize("op", ["ATen", "GivenTensorFill", "GRUUnit"])
def test_withdrawn_operators_are_refused(op: str) -> None:
    """Experiments of the first opsets that the standard no longer describes."""
    Old(op, 5, (X,)).check_refused(op)


M = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(("case", "reason"), [
    (Old("ReduceSum", 19, (X,), {"axes": [0]}),
     r"ReduceSum has no axes=\(0,\) at opset 19; opset 12 is the last that has it"),
    (Old("Squeeze", 13, (M[None],), {"axes": [0]}), "at opset 13; opset 12 is the last"),
    (Old("Pad", 11, (M, np.int64([0, 0, 0, 0])), {"pads": [1, 1, 1, 1]}), "opset 10 is the last"),
])  # fmt: skip
def test_attributes_of_another_opset_are_refused(case: Old, reason: str) -> None:
    case.check_refused(reason)


@pytest.mark.parametrize("opset", [0, IR_OPSET + 1])
def test_opsets_that_are_not_known_are_refused(opset: int) -> None:
    graph = Graph("g", (), (), (), opset=opset)
    with pytest.raises(SerdeError, match=f"opset {opset}; those known are 1 to {IR_OPSET}"):
        raise_to_ir(graph)
    with pytest.raises(UsageError, match=f"opset {opset} is not one of 7 to {IR_OPSET}"):
        require_opset(opset, 7)
    require_opset(7, 7)


def test_a_graph_that_is_legal_stays_as_it_is() -> None:
    graph = ir_of("g (float[N,4] x) => (float[N,4] y) { y = Relu(x) }")
    done = lower_to(graph, 21)
    assert done.nodes is graph.nodes and done.opset == 21 and graph.opset == IR_OPSET


@pytest.mark.parametrize("is_training", [False, True])
def test_dropout_stays_for_training_only(is_training: bool) -> None:
    text = """g (float[N,4] x) => (float[N,4] y) <float r = {0.5}> {
        z = Dropout(x, r) y = Relu(z) }"""
    graph = raise_to_ir(decode_text(text), training=is_training)
    assert operators(graph) == (["Dropout", "Relu"] if is_training else ["Relu"])


def test_operators_to_avoid_are_written_as_older_ones() -> None:
    graph = ir_of("g (float[N,4] x) => (float[N,4] y) { y = HardSwish(x) }")
    assert operators(lower_to(graph, 21)) == ["HardSwish"]
    done = lower_to(graph, 21, decomposed=frozenset({"HardSwish"}))
    x = np.float32([[-4, -1, 0.5, 4]])
    (got,) = run_model(to_proto(done), {"x": x})
    np.testing.assert_allclose(got, x * np.clip(x / 6 + 0.5, 0, 1), rtol=1e-6)
    assert "HardSwish" not in operators(done)


@pytest.mark.parametrize(("op", "opset", "keep", "count"), [
    ("LeakyRelu", 17, True, 1), ("LeakyRelu", 17, False, 0), ("Softmax", 17, True, 1),
])  # fmt: skip
def test_functions_are_kept_where_they_can_be(op: str, opset: int, keep: bool, count: int) -> None:
    graph = raise_to_ir(decode_functions(op, opset))
    done = lower_to(graph, 17, keep_functions=keep)
    assert len(done.functions) == count
    assert operators(done) == (["F", "Softmax"] if count else [op, "Neg", "Softmax"])
    assert operators(without_functions(graph)) == [op, "Neg", "Softmax"]


def test_sequences_of_known_length_become_tensors() -> None:
    text = """g (float[2,3] x) => (float[2,3] y) { s = SequenceConstruct(x, x)
        i = Constant<value_int = 1>() y = SequenceAt(s, i) }"""
    graph = scalarize_sequences(ir_of(text))
    assert not any(v.container for n in graph.nodes for v in n.outputs)
    dynamic = ir_of("""g (float[N,3] x, int64 i) => (float[A,3] y) {
        s = SplitToSequence<axis = 0>(x) y = SequenceAt(s, i) }""")
    assert operators(scalarize_sequences(dynamic)) == ["SplitToSequence", "SequenceAt"]
    plain = ir_of("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    assert scalarize_sequences(plain) is plain


def make_target(**options: Any) -> Target:
    supports = {op: {} for op in schema.names(17) if op != "Sin"}
    return Target("toy", 17, supports, **options)


def test_all_that_a_target_cannot_take_is_refused_at_once() -> None:
    text = "g (float[N,4] x) => (float[N,4] y) { a = Sin(x) b = Relu(a) c = Sin(b) y = Neg(c) }"
    with pytest.raises(Unconvertible) as caught:
        lower_to_target(ir_of(text), make_target())
    assert caught.value.stage == "ir → toy"
    assert [(p.op, p.count) for p in caught.value.problems] == [("Sin", 2)]
    with pytest.raises(Unconvertible) as caught:
        lower_to_target(ir_of(text), make_target(dynamic_shapes=False))
    assert [p.op for p in caught.value.problems] == ["input", "Sin"]


def test_a_target_gets_what_is_legal_for_it() -> None:
    g = OnnxBuilder("g")
    x = g.input("x", DType.FLOAT32, (2, 3))
    graph = g.build([g.Relu(g.LpNormalization(x, axis=1, p=2))])
    done = lower_to_target(graph, make_target())
    assert operators(done) == ["LpNormalization", "Relu"]
    feeds = {"x": np.float32([[1, -2, 2], [0, 3, 4]])}
    (got,) = run_model(to_proto(done), feeds)
    np.testing.assert_allclose(got, [[1 / 3, 0, 2 / 3], [0, 0.6, 0.8]], rtol=1e-6)


def test_a_type_that_the_file_leaves_open_is_named() -> None:
    x, h, y = Value("x", DType.FLOAT32, (2, 3)), Value("h"), Value("y")
    foreign = Node("Foo", (x,), (h,), {}, "com.acme", "layer")
    mean = Node("MeanVarianceNormalization", (h,), (y,), {}, "", "last")
    graph = Graph("g", (x,), (y,), (foreign, mean), "", opset=7, imports={"com.acme": 1})
    with pytest.raises((Unconvertible, ConversionError), match="Add them to value_info"):
        raise_to_ir(graph)


def test_the_numbers_hold_at_every_opset() -> None:
    """Of a graph whose operators changed at different ones."""
    text = """g (float[2,3,4] x) => (float[A,B] y) <int64[1] a = {2}, int64[2] s = {0, -1}> {
        m = ReduceSum<keepdims = 0>(x, a) p = Softmax<axis = 0>(m) u = Unsqueeze(p, a)
        r = Reshape(u, s) y = HardSwish(r) }"""
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    (expected,) = run_model(model_of(text), {"x": x})
    for opset in range(7, 22):
        (got,) = run_model(to_proto(lower_to(ir_of(text), opset)), {"x": x})
        np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=f"at {opset}")
