"""Graphs that are written by hand are the bytes that protobuf writes."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from serde.errors import SerdeError
from serde.formats.onnx.graph_bytes import ModuleNames, encode_graph
from serde.formats.onnx.reader import decode
from serde.ir.graph import DType, Graph, Node, Source, Value
from serde.spec.inference import type_proto
from testing.node_cases import all_cases


def serialize(body: bytes) -> bytes:
    """What protobuf writes of the same graph."""
    return onnx.GraphProto.FromString(body).SerializeToString(deterministic=True)


@pytest.mark.parametrize("part", range(4))
def test_graphs_of_all_node_tests(part):
    count = 0
    for case in list(all_cases())[part::4]:
        try:
            graph = decode(case.model)
        except SerdeError:
            continue
        names = ModuleNames(graph, case.model.ir_version)
        body = encode_graph(graph, names, {}, names.outer if case.model.ir_version < 4 else ())
        assert serialize(body) == body, case.name
        count += 1
    assert count > 100


@pytest.mark.parametrize("container", [(), ("sequence",), ("optional", "sequence"), ("sparse",)])
@pytest.mark.parametrize("shape", [None, (), (0, 300), ("N", None, 1 << 40), (1 << 63, 2)])
def test_types_of_values(shape, container):
    x, y = Value("x", DType.FLOAT32, (2,)), Value("y", DType.INT64, shape, container=container)
    z = Value("z", DType.BFLOAT16, (2,))
    nodes = (Node("A", (x, None), (y,), name="a"), Node("B", (y,), (z,), name="b"))
    graph = Graph("g", (x,), (z,), nodes)
    body = encode_graph(graph, ModuleNames(graph, 8))
    assert serialize(body) == body
    (info,) = onnx.GraphProto.FromString(body).value_info
    assert info.type == type_proto(DType.INT64, shape, container)


def test_origins_and_documentation_of_nodes():
    x, y = Value("x", DType.FLOAT32, (2,)), Value("y" * 200, DType.FLOAT32, (2,))
    sources = (
        Source("mxnet", "Activation", "relu0", "about it"), Source("onnx", "Relu", "r", "more"),
        Source("relay", "nn.relu", "é" * 100),
    )  # fmt: skip
    attrs = {"axis": 1, "names": (), "scale": -0.0, "text": "é"}
    graph = Graph("g", (x,), (y,), (Node("Relu", (x,), (y,), attrs, "", "layer", sources),))
    body = encode_graph(graph, ModuleNames(graph, 8), {"onnx.graph.doc_string": "of the graph"})
    assert serialize(body) == body
    proto = onnx.GraphProto.FromString(body)
    (node,) = proto.node
    assert proto.doc_string == "of the graph" and node.doc_string == "about it\nmore"
    assert [(p.key, p.value[:10]) for p in node.metadata_props] == [
        ("serde.source", "mxnet Acti"), ("serde.source.1", "relay nn.r"),
    ]  # fmt: skip
    assert helper.get_node_attr_value(node, "axis") == 1
