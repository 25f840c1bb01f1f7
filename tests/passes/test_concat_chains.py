"""Concats of Concats become one."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, parser

import serde
from testing.cpu_limit import limit_cpu
from testing.onnx_live import run_model


def test_only_parts_of_the_same_axis_that_nothing_else_reads(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2,2] x) => (float[6,2] a, float[2,6] b, float[8,2] c) {
        r = Relu(x)
        p = Concat<axis = 0>(x, r)
        a = Concat<axis = 0>(p, x)
        q = Concat<axis = 0>(x, r)
        t = Transpose(q)
        u = Concat<axis = 1>(x, r)
        b = Concat<axis = 1>(u, r)
        s = Sigmoid(x)
        v = Concat<axis = 0>(s, x)
        w = Concat<axis = 0>(v, x)
        c = Concat<axis = 0>(w, r)
    }"""
    model = parser.parse_model(text)
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx")
    new_model = onnx.load(tmp_path / "b.onnx")
    assert [len(n.input) for n in new_model.graph.node if n.op_type == "Concat"] == [3, 3, 4]
    feeds = {"x": np.random.default_rng(0).normal(size=(2, 2)).astype(np.float32)}
    for a, b in zip(run_model(model, feeds), run_model(new_model, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


def test_doubled_operands_are_not_written_out(tmp_path):
    lines = ["y0 = Concat<axis = 0>(x, x)"]
    lines += [f"y{i} = Concat<axis = 0>(y{i - 1}, y{i - 1})" for i in range(1, 20)]
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[1] x) => (float[1048576] y19) {{ {" ".join(lines)} }}"""
    onnx.save(parser.parse_model(text), tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx")
    new_model = onnx.load(tmp_path / "b.onnx")
    assert sum(len(n.input) for n in new_model.graph.node) < 512
    (y,) = run_model(new_model, {"x": np.float32([3])})
    assert y.shape == (1 << 20,) and (y == 3).all()


def test_a_long_chain_is_joined_at_once(tmp_path):
    """The time of each one to take over all before it would grow with the square of the length."""
    length = 6000
    nodes = [helper.make_node("Concat", ["x", "x"], ["y1"], axis=0)]
    nodes += [
        helper.make_node("Concat", [f"y{i - 1}", "x"], [f"y{i}"], axis=0) for i in range(2, length)
    ]
    x, y = (
        helper.make_tensor_value_info(n, 1, [s]) for n, s in (("x", 1), (f"y{length - 1}", length))
    )
    opsets = [helper.make_opsetid("", 17)]
    graph = helper.make_graph(nodes, "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "a.onnx")
    with limit_cpu(0.6):
        loaded = serde.load(tmp_path / "a.onnx")
    assert [len(n.inputs) for n in loaded.nodes] == [length]
