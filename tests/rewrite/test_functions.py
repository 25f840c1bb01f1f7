"""Model-local functions: kept where the target has them, inlined where it has not."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import serde
from serde.errors import ConversionError, Unconvertible
from serde.ir.graph import AttrRef, DType, Function, Graph, Node, Tensor, Value
from serde.rewrite.functions import FunctionTable, constant, rewrite_functions
from serde.spec.onnx_builder import OnnxBuilder

BODY = """
<ir_version: 8, opset_import: ["": 17, "local": 1]>
main (float[N, 4] x) => (float[N, 4] y) {
  t = local.shifted <slope = 0.3> (x)
  y = local.twice (t)
}
<domain: "local", opset_import: ["": %d]>
shifted <slope> (a) => (b) {
  c = LeakyRelu <alpha: float = @slope> (a)
  one = Constant <value = float {1.0}> ()
  d = Add (c, one)
  b = Softmax <axis = 1> (d)
}
<domain: "local", opset_import: ["": 17, "local": 1]>
twice (a) => (b) {
  c = local.shifted <slope = 0.5> (a)
  b = local.shifted <slope = 0.7> (c)
}
"""


@pytest.fixture
def feeds():
    return {"x": np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)}


def outputs(path, feeds):
    return onnxruntime.InferenceSession(path).run(None, feeds)


@pytest.mark.parametrize(
    ("body", "opset", "kept"), [(17, 17, 2), (17, 21, 2), (17, 13, 0), (11, 17, 2), (17, 8, 0)]
)
def test_functions_compute_the_same(tmp_path, feeds, body, opset, kept):
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(parser.parse_model(BODY % body), source)
    serde.convert(source, target, opset=opset)
    assert len(onnx.load(target).functions) == kept
    onnx.checker.check_model(target, full_check=True)
    for got, expected in zip(outputs(target, feeds), outputs(source, feeds), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_function_that_calls_itself_is_refused(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
    main (float[2] x) => (float[2] y) { y = local.f (x) }
    <domain: "local", opset_import: ["": 17, "local": 1]> f (a) => (b) { b = local.f (a) }"""
    onnx.save(parser.parse_model(text), tmp_path / "a.onnx")
    with pytest.raises(serde.Unconvertible, match="calls itself"):
        serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", opset=13)


# Functions of a module one by one.


def body_of(*calls: str, domain: str = "own") -> Graph:
    """A graph of calls in a row."""
    values = [Value(f"v{i}") for i in range(len(calls) + 1)]
    nodes = [Node(op, (values[i],), (values[i + 1],), {}, domain) for i, op in enumerate(calls)]
    return Graph("b", (values[0],), (values[-1],), tuple(nodes), opset=17)


def test_nodes_that_calls_become_are_counted_before_they_are_made():
    """A few functions that call each other twice would become nodes without bound."""
    doubled = [Function("own", f"F{i}", body_of(f"F{i - 1}", f"F{i - 1}")) for i in range(1, 40)]
    graph = Graph("g", (), (), (), functions=(Function("own", "F0", body_of()), *doubled))
    known = FunctionTable(graph)
    known.spend(body_of("F3").nodes[0])
    with pytest.raises(ConversionError, match=r"function 'F39' expands to \d+ nodes, too many"):
        known.spend(body_of("F39").nodes[0])


@pytest.mark.parametrize(("attrs", "outputs", "reason"), [
    ({}, 1, "a Constant with 0 attributes instead of one"),
    ({"value_int": 1, "value_float": 1.0}, 1, "a Constant with 2 attributes"),
    ({"value_int": AttrRef("n", "INT")}, 1, "whose value the call of a function gives"),
    ({"value_int": 1}, 0, "a Constant without output"),
])  # fmt: skip
def test_constants_that_say_nothing_are_refused(attrs, outputs, reason):
    node = Node("Constant", (), tuple(Value(f"c{i}") for i in range(outputs)), attrs)
    with pytest.raises(ConversionError, match=reason):
        constant(OnnxBuilder("g"), node)


@pytest.mark.parametrize(("attrs", "expected", "kind"), [
    ({"value_int": 3}, 3, DType.INT64), ({"value_floats": (1.0, 2.5)}, [1, 2.5], DType.FLOAT32),
    ({"value": Tensor.of(np.int8([[4]]))}, [[4]], DType.INT8),
])  # fmt: skip
def test_constants_of_all_forms(attrs, expected, kind):
    value = constant(OnnxBuilder("g"), Node("Constant", (), (Value("c"),), attrs))
    assert (value.name, value.dtype, value.array().tolist()) == ("c", kind, expected)


def test_a_body_that_cannot_be_rewritten_has_all_calls_inlined():
    def rewrite(body: Graph) -> Graph:
        if body.nodes[0].op == "Bad":
            raise Unconvertible("toy", [])
        return body

    graphs = [Graph("g", (), (), (), functions=(Function("own", "F", body_of(op)),))
              for op in ("Good", "Bad")]  # fmt: skip
    (function,) = rewrite_functions(graphs[0], 21, rewrite)
    assert (function.name, function.body.opset) == ("F", 21)
    assert rewrite_functions(graphs[1], 21, rewrite) is None
