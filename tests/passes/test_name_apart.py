"""Values that passes gave a name which another bears."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import serde
from serde.ir.graph import DType, Graph, Node, Value
from serde.passes.name_apart import name_apart, name_outputs
from testing.onnx_live import model_of, run_model

F32 = DType.FLOAT32


def test_ends_keep_their_names():
    x, a, y = (Value(n, F32, (2,)) for n in ("y", "x", "x"))
    inner, taken = Value("x", F32, (2,)), Value("b", F32, (2,))
    body = Graph("b", (), (inner,), (Node("Neg", (a,), (inner,)),))
    other = Graph("o", (), (taken,), (Node("Abs", (a,), (taken,)),))
    choose = Node("If", (Value("c", DType.BOOL, ()),), (y,),
                  {"then_branch": body, "else_branch": other})  # fmt: skip
    done = name_apart(Graph("g", (x,), (y,), (Node("Exp", (x,), (a,)), choose)))
    assert done.inputs[0] is x and done.outputs[0] is y
    names = [v.name for v in done.all_values()]
    assert sorted(names) == ["b", "x", "x_1", "x_2", "y"]
    exponent, choice = done.nodes
    (negation,) = choice.attrs["then_branch"].nodes
    assert negation.inputs[0] is exponent.outputs[0]
    assert choice.attrs["then_branch"].outputs == negation.outputs


def test_a_graph_of_names_apart_stays():
    x, y = (Value(n, F32, (2,)) for n in "xy")
    graph = Graph("g", (x,), (y,), (Node("Neg", (x,), (y,)),))
    assert name_apart(graph) is graph


@pytest.mark.parametrize("name", ["x/float16", "y/float16", "w/float16"])
def test_float16_of_a_model_with_such_names(tmp_path, name):
    text = """g (float[N,4] x) => (float[N,4] y) <float[4] w = {1, 2, 3, 4}> {
        a = Mul(x, w) y = Relu(a) }"""
    model = model_of(text)
    old = "y" if name[0] != "y" else "x"
    for value in (*model.graph.input, *model.graph.output):
        value.name = name if value.name == old else value.name
    for node in model.graph.node:
        for ends in (node.input, node.output):
            ends[:] = [name if n == old else n for n in ends]
    onnx.save(model, tmp_path / "a.onnx")
    serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", fp16=True)
    done = onnx.load(tmp_path / "b.onnx")
    for before, after in ((model.graph.input, done.graph.input),
                          (model.graph.output, done.graph.output)):  # fmt: skip
        assert [v.name for v in before] == [v.name for v in after]
    feeds = {model.graph.input[0].name: np.ones((2, 4), np.float32)}
    np.testing.assert_allclose(run_model(done, feeds)[0], run_model(model, feeds)[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "inside", "notes"),
    [("new", ["x"], ["new", "z"], ["t"], 0), ("t", ["x"], ["t", "z"], ["t_1"], 0),
     ("x", ["x_in"], ["x", "z"], ["t"], 1), ("z", ["x"], ["z", "z_1"], ["t"], 1),
     ("y", ["x"], ["y", "z"], ["t"], 0)],
)  # fmt: skip
def test_names_that_a_user_gives_outputs_win(name, inputs, outputs, inside, notes):
    x, t, y, z = (Value(n, F32, (2,)) for n in "xtyz")
    nodes = Node("Exp", (x,), (t,)), Node("Neg", (t,), (y,)), Node("Abs", (t,), (z,))
    done = name_outputs(Graph("g", (x,), (y, z), nodes), [y], [name])
    assert [v.name for v in done.inputs] == inputs
    assert [v.name for v in done.outputs] == outputs
    assert [n.outputs[0].name for n in done.nodes] == [*inside, *outputs]
    assert len(done.notes) == notes
