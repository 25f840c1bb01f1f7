"""What is read from the bytes of a graph is what protobuf reads."""

from __future__ import annotations

import random

import onnx
import pytest
from onnx import TensorProto, helper

import serde
from serde.errors import SerdeError
from serde.formats.onnx import graph_fields
from serde.formats.onnx.parse import parse_file
from serde.formats.onnx.reader import decode, read_model
from serde.spec.inference import from_proto
from testing.node_cases import all_cases

SIZES = (0, 1, 5, 127, 128, 300, 16_383, 16_384, 1 << 20, 1 << 40, -1, "N", "", "?", "é" * 70, None)
ELEMENTS = (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BFLOAT16, TensorProto.INT4)


def test_nodes_of_all_node_tests_are_read_as_protobuf_reads_them():
    counts = {True: 0, False: 0}
    for case in all_cases():
        for proto in case.model.graph.node:
            fields = graph_fields.read_node(proto.SerializeToString())
            counts[fields is not None] += 1
            if fields is None:
                continue
            known = graph_fields.describe_node(proto)
            attributes = onnx.NodeProto.FromString(fields.attributes).attribute
            assert list(attributes) == list(proto.attribute)
            assert not any(a.HasField("g") for a in attributes)
            for name in ("op", "name", "domain", "doc", "overload", "properties", "has_devices"):
                assert getattr(fields, name) == getattr(known, name)
            assert tuple(fields.inputs) == known.inputs and tuple(fields.outputs) == known.outputs
    assert counts[True] > 5 * counts[False] > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda n: n.metadata_props.add(key="serde.source", value="mxnet Activation relu0"),
        lambda n: n.metadata_props.add(key="k" * 200, value="v" * 300),
        lambda n: setattr(n, "doc_string", "é" * 500),
        lambda n: setattr(n, "overload", "other"),
        lambda n: setattr(n, "name", "x" * 20_000),
        lambda n: n.attribute.append(helper.make_attribute("to", [2, 50] * 40)),
        lambda n: n.device_configurations.add(),
    ],
)
def test_rare_fields_of_nodes(change):
    node = helper.make_node("Relu", ["x", ""], ["y"], name="relu")
    change(node)
    data = node.SerializeToString()
    fields, known = graph_fields.read_node(data), graph_fields.describe_node(node)
    if fields is not None:
        assert fields.properties == known.properties and fields.doc == known.doc
        assert onnx.NodeProto.FromString(fields.attributes).attribute == node.attribute
        assert (fields.overload, fields.has_devices) == (known.overload, known.has_devices)
    assert graph_fields.read_node(data[:-1]) is None or not data[:-1]


def test_texts_that_are_not_utf8_are_left_to_protobuf():
    data = helper.make_node("Relu", ["ab"], ["y"]).SerializeToString().replace(b"ab", b"\xff\xfe")
    assert graph_fields.read_node(data) is None


def test_types_are_those_that_protobuf_reads():
    draw, counts = random.Random(0), {True: 0, False: 0}
    for _ in range(3000):
        shape = [draw.choice(SIZES) for _ in range(draw.choice((0, 1, 2, 4)))]
        proto = helper.make_tensor_type_proto(draw.choice(ELEMENTS), shape)
        data = proto.SerializeToString()
        known = graph_fields.read_type(data)
        counts[known is not None] += 1
        assert known is None or known == from_proto(proto), shape
    assert min(counts.values()) > 100
    for proto in (
        onnx.TypeProto(), helper.make_tensor_type_proto(1, None),
        helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2])),
    ):  # fmt: skip
        assert graph_fields.read_type(proto.SerializeToString()) is None


def test_denotations_are_noticed():
    proto = helper.make_tensor_type_proto(1, [2, 3])
    assert not graph_fields.may_have_denotations(proto.SerializeToString())
    proto.denotation = "IMAGE"
    assert graph_fields.may_have_denotations(proto.SerializeToString())
    assert graph_fields.read_type(proto.SerializeToString()) is None
    proto = helper.make_tensor_type_proto(1, [2, 3], ["DATA_BATCH", "DATA_CHANNEL"])
    assert graph_fields.may_have_denotations(proto.SerializeToString())
    assert graph_fields.read_type(proto.SerializeToString()) is None


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (300,), (1, 128)])
@pytest.mark.parametrize("element", ELEMENTS)
def test_small_tensors(element, shape):
    size = 1
    for d in shape:
        size *= d
    bits = {TensorProto.FLOAT: 32, TensorProto.INT64: 64, TensorProto.BFLOAT16: 16}.get(element, 4)
    data = bytes(i % 251 for i in range((size * bits + 7) // 8))
    proto = onnx.TensorProto(name="w", data_type=element, dims=shape, raw_data=data)
    known = graph_fields.read_tensor(proto.SerializeToString())
    assert known is not None and known.name == "w" and known.tensor.shape == shape
    assert known.tensor.load.data == data
    proto.raw_data = data + b"\0"
    assert graph_fields.read_tensor(proto.SerializeToString()) is None
    proto.raw_data, proto.doc_string = data, "about it"
    assert graph_fields.read_tensor(proto.SerializeToString()) is None


def test_damaged_bytes_are_left_to_protobuf():
    draw = random.Random(0)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="c", strides=[1, 2])
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[2], raw_data=bytes(8))
    info = helper.make_tensor_value_info("y", 1, [1, 300, "N"])
    readers = (
        (node, graph_fields.read_node), (tensor, graph_fields.read_tensor),
        (info, graph_fields.read_info), (info.type, graph_fields.read_type),
    )  # fmt: skip
    for proto, read in readers:
        for _ in range(2000):
            data = bytearray(proto.SerializeToString())
            for _ in range(draw.choice((1, 2))):
                data[draw.randrange(len(data))] = draw.randrange(256)
            read(bytes(data[: draw.randrange(len(data) + 1)]))


def test_a_file_is_read_as_the_model_is(tmp_path):
    for case in list(all_cases())[::40]:
        path = tmp_path / "m.onnx"
        onnx.save(case.model, path)
        try:
            known = decode(onnx.load(path))
        except SerdeError as error:
            with pytest.raises(type(error)):
                read_model(path)
            continue
        assert str(read_model(path)) == str(known)
    assert isinstance(serde.load(path), serde.Graph) and parse_file(str(path)).nodes
