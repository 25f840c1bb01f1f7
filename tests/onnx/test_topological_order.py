"""Nodes in any order, as ONNX Runtime takes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import serde
from serde.errors import MalformedFile
from serde.formats.onnx.reader import decode
from testing import directions

X = np.array([-1, 2, 3], np.float32)


def node(op: str, reads: str, makes: str, **attrs) -> onnx.NodeProto:
    return helper.make_node(op, reads.split(), makes.split(), name=f"{op}_{makes}", **attrs)


def value(name: str, kind: int = TensorProto.FLOAT, shape=(3,)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def branch(name: str, *nodes: onnx.NodeProto) -> onnx.GraphProto:
    """A branch that gives what its first node makes."""
    return helper.make_graph(nodes, name, [], [value(nodes[0].output[0])])


def model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "g", [value("x"), value("go", TensorProto.BOOL, ())], [value("y")]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def choose(*then: onnx.NodeProto) -> onnx.NodeProto:
    """A branch that reads values of the graph around it."""
    other = branch("else", node("Neg", "b", "e"))
    return node("If", "go", "y", then_branch=branch("then", *then), else_branch=other)


A, B, Y = node("Relu", "x", "a"), node("Exp", "a", "b"), node("Add", "b a", "y")
MODELS = {
    "backwards": (Y, B, A),
    "one late": (B, A, Y),
    "read by a branch": (choose(node("Abs", "b", "t")), B, A),
    "read by a branch in a branch": (
        node("If", "go", "y",
             then_branch=branch("outer", node("If", "go", "o",
                                              then_branch=branch("inner", node("Abs", "b", "t")),
                                              else_branch=branch("i", node("Neg", "a", "n")))),
             else_branch=branch("other", node("Neg", "x", "m"))),
        B, A),
}  # fmt: skip


def run(proto: onnx.ModelProto) -> np.ndarray:
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), settings)
    feeds = {"x": X, "go": np.array(True)}
    return session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})[0]


@pytest.mark.parametrize("opset", [9, 11, 13, 17, 21])
@pytest.mark.parametrize("name", MODELS)
def test_nodes_are_sorted(name, opset, tmp_path):
    proto = model(*MODELS[name])
    expected = run(proto)
    onnx.save(proto, tmp_path / "source.onnx")
    serde.convert(tmp_path / "source.onnx", tmp_path / "m.onnx", opset=opset)
    done = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(done, full_check=True)
    np.testing.assert_array_equal(run(done), expected)


def test_a_branch_is_sorted(tmp_path):
    """ONNX Runtime takes no subgraph out of order."""
    then = node("Mul", "u b", "t"), node("Abs", "b", "u")
    onnx.save(model(A, B, choose(*then)), tmp_path / "source.onnx")
    serde.convert(tmp_path / "source.onnx", tmp_path / "m.onnx")
    np.testing.assert_allclose(
        run(onnx.load(tmp_path / "m.onnx")), np.exp(X.clip(0)) ** 2, rtol=1e-6
    )


@pytest.mark.parametrize("form", ["mxnet", "relay"])
@pytest.mark.parametrize("name", ["backwards", "one late", "read by a branch"])
def test_other_formats(name, form, tmp_path):
    proto = model(*MODELS[name])
    onnx.save(proto, tmp_path / "source.onnx")
    path = tmp_path / directions.FILES[form]
    serde.convert(tmp_path / "source.onnx", path)
    (y,) = directions.RUN[form](path, {"x": X, "go": np.array(True)}, 100)
    np.testing.assert_allclose(y, run(proto), rtol=1e-6)


def test_nodes_in_order_stay_where_they_are():
    names = [n.name for n in decode(model(A, node("Neg", "x", "z"), B, Y)).nodes]
    assert names == ["Relu_a", "Neg_z", "Exp_b", "Add_y"]


def test_sorting_moves_as_little_as_it_can():
    free = [node("Neg", "x", f"z{i}") for i in range(3)]
    names = [n.name for n in decode(model(free[0], B, free[1], A, free[2], Y)).nodes]
    assert names == ["Neg_z0", "Neg_z1", "Relu_a", "Exp_b", "Neg_z2", "Add_y"]


def test_a_function_is_sorted(tmp_path):
    proto = model(helper.make_node("f", ["x"], ["y"], domain="own"))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    opsets = [helper.make_opsetid("", 17)]
    proto.functions.append(helper.make_function("own", "f", ["x"], ["y"], [Y, B, A], opsets))
    onnx.save(proto, tmp_path / "source.onnx")
    serde.convert(tmp_path / "source.onnx", tmp_path / "m.onnx", opset=17)
    done = onnx.load(tmp_path / "m.onnx")
    np.testing.assert_allclose(run(done), np.exp(X.clip(0)) + X.clip(0), rtol=1e-6)


CYCLES: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "two": (
        lambda: model(node("Add", "x b", "a"), node("Exp", "a", "b"), Y), "'Add_a' → 'Exp_b'"),
    "itself": (lambda: model(A, node("Add", "a y", "y")), "'Add_y'"),
    "behind a chain": (
        lambda: model(Y, node("Exp", "c", "b"), node("Neg", "d", "c"), node("Abs", "c", "d"), A),
        "'Neg_c' → 'Abs_d'"),
    "through a branch": (
        lambda: model(choose(node("Abs", "b", "t")), node("Neg", "y", "b")), "'If_y' → 'Neg_b'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CYCLES)
def test_cycles_are_refused(name):
    make, names = CYCLES[name]
    with pytest.raises(MalformedFile, match=f"the nodes {names} form a cycle"):
        decode(make())


def test_a_name_that_nothing_computes():
    with pytest.raises(MalformedFile, match="'Add_y' reads? 'b', which nothing"):
        decode(model(Y, A))
