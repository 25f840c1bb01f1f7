"""What is decided once for nodes of a signature is what each of them would become alone."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from serde.formats.onnx.from_ir import from_ir
from serde.formats.onnx.reader import decode
from serde.formats.onnx.writer import to_proto
from serde.ir.graph import IR_OPSET, DType, Graph, Node, Value
from serde.legalize import decisions
from serde.legalize.convert import lower_to, raise_to_ir
from serde.legalize.decisions import decider, is_legal_graph
from serde.legalize.legalizer import Legalizer
from serde.legalize.target import IR, opset_target
from testing.onnx_live import run_model

SIZES = (8, 9, 10, 11)
FORMS = [  # operators whose older form, or whose canonical one, depends on sizes
    ("MaxPool", {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
    ("MaxPool", {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_LOWER"}),
    ("MaxPool", {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
    ("AveragePool", {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
    ("AveragePool", {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}),
    ("AveragePool", {"kernel_shape": [2], "strides": [3], "pads": [1, 0]}),
    ("MaxPool", {"kernel_shape": [2], "dilations": [2]}),
    ("LpPool", {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
    ("Softmax", {"axis": 1}),
    ("Softmax", {"axis": -1}),
    ("Relu", {}),
    ("HardSwish", {}),
]
TYPES = (TensorProto.FLOAT, TensorProto.FLOAT16)


def model_of(nodes, sizes, element=TensorProto.FLOAT, opset=21) -> onnx.ModelProto:
    """One node of each size, side by side."""
    info = helper.make_tensor_value_info
    inputs = [info(f"x{i}", element, (1, 2, size)) for i, size in enumerate(sizes)]
    outputs = [info(f"y{i}", element, None) for i in range(len(sizes))]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def nodes_of(op, attrs, count):
    return [helper.make_node(op, [f"x{i}"], [f"y{i}"], **attrs) for i in range(count)]


@pytest.mark.parametrize("opset", [7, 9, 13, 17])
@pytest.mark.parametrize("op, attrs", FORMS)
def test_nodes_of_other_sizes_compute_what_they_did(op, attrs, opset):
    """One model of several sizes: the first node's older form does not hold for the others."""
    source = model_of(nodes_of(op, attrs, len(SIZES)), SIZES)
    draws = np.random.default_rng(0)
    feeds = {f"x{i}": draws.standard_normal((1, 2, n)).astype("f") for i, n in enumerate(SIZES)}
    expected = run_model(source, feeds)
    older = to_proto(from_ir(raise_to_ir(decode(source)), opset))
    for y, truth in zip(run_model(older, feeds), expected, strict=True):
        np.testing.assert_allclose(y, truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset", [7, 11, 17])
@pytest.mark.parametrize("op, attrs", FORMS)
def test_a_node_becomes_what_it_becomes_alone(op, attrs, opset):
    together = lower(model_of(nodes_of(op, attrs, len(SIZES)), SIZES), opset)
    for i, size in enumerate(SIZES):
        alone = lower(model_of(nodes_of(op, attrs, 1), [size]), opset)
        part = [n for n in together.nodes if n.name == f"y{i}" or n.name.startswith(f"y{i}/")]
        assert [(n.op, {**n.attrs}) for n in part] == [(n.op, {**n.attrs}) for n in alone.nodes]


def lower(model, opset):
    return from_ir(raise_to_ir(decode(model)), opset)


def test_signatures_tell_types_apart():
    """Element types, and a constant from what is computed."""
    nodes = [helper.make_node("Relu", ["x0"], ["y0"]), helper.make_node("Relu", ["x1"], ["y1"])]
    model = model_of(nodes, (4, 4))
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT32
    model.graph.output[1].type.tensor_type.elem_type = TensorProto.INT32
    operators = [n.op for n in lower(model, 13).nodes]
    assert operators[0] == "Relu"
    assert operators[1:] == [
        n.op for n in lower(model_of(nodes[:1], (4,), TensorProto.INT32), 13).nodes
    ]


@pytest.mark.parametrize(
    "target, op, adapters, is_decided",
    [
        (opset_target(17), "Conv", 0, True),
        (opset_target(11), "Softmax", 1, True),
        (opset_target(9), "AveragePool", 2, True),
        (opset_target(11), "Resize", 0, False),  # its adapters look at sizes
        (IR, "Relu", 0, True),
        (IR, "Resize", 0, False),  # no rule for its shape
    ],
)
def test_deciders(target, op, adapters, is_decided):
    found = decider(target, op, IR_OPSET)
    assert (found is not None) == is_decided
    if found is not None:
        assert len(found.adapters) == adapters


def test_a_declaration_speaks_of_attributes():
    pool = decider(opset_target(9), "MaxPool", IR_OPSET)
    assert pool is not None
    assert not pool.looks_at_sizes({"ceil_mode": 0, "dilations": (1, 1)})
    assert pool.looks_at_sizes({"ceil_mode": 1})
    assert pool.looks_at_sizes({"dilations": (2, 1)})


@pytest.mark.parametrize(
    "opset, op, is_kept",
    [
        (17, "Relu", True),
        (21, "Softmax", True),
        (17, "HardSwish", True),
        (13, "HardSwish", False),  # which that opset lacks
        (11, "Softmax", False),  # which has an adapter
        (17, "RegexFullMatch", False),  # which nothing stands for
    ],
)
def test_a_graph_of_nodes_that_stay_is_taken_as_it_is(opset, op, is_kept):
    value = Value("x", DType.STRING if op == "RegexFullMatch" else DType.FLOAT32, (2, 3))
    result = Value("y", DType.BOOL if op == "RegexFullMatch" else DType.FLOAT32, (2, 3))
    attrs = {"axis": 1} if op == "Softmax" else {}
    graph = Graph("g", (value,), (result,), (Node(op, (value,), (result,), attrs),))
    assert is_legal_graph(Legalizer("g", opset_target(opset)), graph) is is_kept
    if is_kept:
        assert lower_to(graph, opset).nodes is graph.nodes


def test_names_and_ends_that_change_make_a_graph_another():
    x, y, z = (Value(name, DType.FLOAT32, (2,)) for name in "xyy")
    one, other = Node("Relu", (x,), (y,)), Node("Neg", (x,), (z,))
    legalizer = Legalizer("g", opset_target(17))
    assert is_legal_graph(legalizer, Graph("g", (x,), (y,), (one,)))
    assert not is_legal_graph(legalizer, Graph("g", (x,), (y,), (one, other)))
    assert not is_legal_graph(legalizer, Graph("g", (x,), (y, y), (one,)))
    assert not is_legal_graph(legalizer, Graph("g", (x,), (x,), (one,)))


def test_most_layers_of_a_chain_are_not_emitted(monkeypatch):
    emitted = []
    ask = decisions.learn
    monkeypatch.setattr(
        decisions,
        "learn",
        lambda g, pending, node, *rest: emitted.append(node.op) or ask(g, pending, node, *rest),
    )
    sizes = range(4, 40)
    lower(model_of(nodes_of("Softmax", {"axis": -1}, len(sizes)), sizes), 11)
    assert emitted == ["Softmax"] * 2  # once as the file is raised, once as it is lowered
