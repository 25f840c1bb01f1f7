"""Loops of as many turns as data says, and dynamic sizes, in live TVM against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from serde.formats.onnx.reader import decode
from serde.formats.relay.from_ir import from_ir
from serde.formats.relay.json.writer import to_json
from serde.formats.relay.to_module import to_module
from serde.legalize.convert import raise_to_ir
from serde.passes import tidy
from testing.relay.tvm_live import run
from tests.relay.test_write_numbers import call, compare, f32, model_of

RECURRENT = [
    call("LSTM", f32(4, 2, 3), held=[f32(2, 20, 3), f32(2, 20, 5), f32(2, 40)], hidden_size=5,
         direction="bidirectional", outputs=3),
    call("GRU", f32(4, 2, 3), held=[f32(1, 15, 3), f32(1, 15, 5), f32(1, 30),
         np.array([4, 2], "int32")], hidden_size=5, direction="reverse", outputs=2),
    call("RNN", f32(4, 2, 3), held=[f32(1, 5, 3), f32(1, 5, 5)], hidden_size=5, clip=0.7,
         activations=["Relu"], outputs=2),
]  # fmt: skip
HALF = helper.make_tensor("half", TensorProto.FLOAT, [1], [0.5])


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def make_scan():
    """A running sum over rows, and over columns from the last, given in the same order."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "p"], ["t"]), helper.make_node("Add", ["t", "q"], ["u"]),
         helper.make_node("Identity", ["t"], ["v"])],
        "b", [info("s", [2]), info("p", [2]), info("q", [2])], [info("t", [2]), info("u", [2]),
                                                                info("v", [2])],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["s0", "x", "y"], ["s1", "us", "vs"], body=body, num_scan_inputs=2,
        scan_input_axes=[0, 1], scan_input_directions=[0, 1], scan_output_axes=[0, 1],
        scan_output_directions=[1, 0],
    )  # fmt: skip
    return [node], [info("s0", [2]), info("x", ["T", 2]), info("y", [2, "T"])], ["s1", "us", "vs"]


def make_gather():
    """A loop that ends early and gathers the rows it has, of dynamic size."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("ReduceSum", ["t"], ["r"], keepdims=0),
         helper.make_node("Less", ["r", "most"], ["go"]), helper.make_node("Neg", ["t"], ["n"])],
        "b", [info("i", [], TensorProto.INT64), info("on", [], TensorProto.BOOL), info("s", ["N"])],
        [info("go", [], TensorProto.BOOL), info("t", ["N"]), info("n", ["N"])],
    )  # fmt: skip
    node = helper.make_node("Loop", ["turns", "", "x"], ["last", "all"], body=body)
    ends = [info("turns", [], TensorProto.INT64), info("x", ["N"]), info("most", [])]
    return [node], ends, ["last", "all"]


def build(nodes, inputs, outputs):
    infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "g", inputs, infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(model, feeds, op="while"):
    graph = from_ir(tidy(raise_to_ir(decode(model))))
    assert any(n.op == op for n in graph.nodes)
    module, weights = to_module(graph)
    inputs = {v.name: feeds[v.name] for v in graph.inputs}
    outputs = run("json", to_json(module), inputs | {n: t.load() for n, t in weights.items()})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])  # fmt: skip
    for got, expected in zip(outputs, session.run(None, feeds), strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_recurrent_layers_of_an_open_length():
    compare(RECURRENT, *model_of(RECURRENT, known=False))


def test_a_scan_of_an_open_length():
    check(build(*make_scan()), {"s0": f32(2), "x": f32(5, 2), "y": f32(2, 5)})


@pytest.mark.parametrize("most", [-99.0, 11.0, 99.0])
def test_a_loop_that_gathers_rows_of_an_open_size(most):
    x = np.float32([1, 2])
    feeds = {"turns": np.array(6, np.int64), "x": x, "most": np.array(most, np.float32)}
    check(build(*make_gather()), feeds)


def test_what_reads_one_of_several_results_of_open_sizes():
    """TVM would take the size of the scalar, the first of the loop's results."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["go"]), helper.make_node("Add", ["s", "step"], ["t"]),
         helper.make_node("Identity", ["s"], ["each"])],
        "b", [info("i", [], TensorProto.INT64), info("on", [], TensorProto.BOOL), info("s", [])],
        [info("go", [], TensorProto.BOOL), info("t", []), info("each", [])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Loop", ["turns", "", "start"], ["last", "all"], body=body),
        helper.make_node("Cast", ["all"], ["y"], to=TensorProto.FLOAT16),
    ]
    inputs = [info("turns", [], TensorProto.INT64), info("start", []), info("step", [])]
    feeds = {"turns": np.array(3), "start": f32(), "step": np.array(0.5, np.float32)}
    check(build(nodes, inputs, ["last", "y"]), feeds)


def test_rows_of_a_given_shape_join_an_open_number():
    """TVM has no function for the shape of what it would make one kernel of."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["go"]), helper.make_node("Cast", ["i"], ["f"], to=1),
         helper.make_node("Expand", ["f", "shape"], ["row"]),
         helper.make_node("Concat", ["rows", "row"], ["more"], axis=0)],
        "b", [info("i", [], TensorProto.INT64), info("on", [], TensorProto.BOOL),
              info("rows", ["N", 3])],
        [info("go", [], TensorProto.BOOL), info("more", ["N", 3])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["shape"], value_ints=[1, 3]),
        helper.make_node("Loop", ["turns", "", "x"], ["y"], body=body),
    ]
    inputs = [info("turns", [], TensorProto.INT64), info("x", ["N", 3])]
    check(build(nodes, inputs, ["y"]), {"turns": np.array(2), "x": f32(2, 3)})


def test_products_over_sizes_told_beside_open_ones():
    """TVM takes no size from a computed shape, and wants to know over how much it sums."""
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], end=1),
        helper.make_node("Concat", ["n", "rest"], ["shape"], axis=0),
        helper.make_node("ConstantOfShape", ["shape"], ["filled"], value=HALF),
        helper.make_node("MatMul", ["filled", "x"], ["y"]),
    ]
    rest = helper.make_node("Constant", [], ["rest"], value_ints=[4, 2])
    check(build([rest, *nodes], [info("x", ["N", 2, 3])], ["y"]), {"x": f32(5, 2, 3)}, "dyn.full")
