"""What a model says beside its graph: kept where there is a place for it, told where there is none."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import serde
from serde.errors import MalformedFile
from serde.formats.onnx.reader import decode
from testing.onnx_live import model_of, run_model


def model():
    return model_of(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}>"
        " { h = Add(x, w) y = Selu(h) }"
    )  # fmt: skip


def convert(proto, tmp_path, **options):
    """The model written from ``proto``, and the notes of the conversion."""
    onnx.save(proto, tmp_path / "a.onnx")
    report = serde.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", **options)
    return onnx.load(tmp_path / "b.onnx"), report.notes


class TestDocumentation:
    def document(self):
        proto = model()
        proto.doc_string, proto.graph.doc_string = "of the model", "of the graph"
        for node in proto.graph.node:
            node.doc_string = f"of {node.op_type}\nline 2"
        return proto

    @pytest.mark.parametrize("opset", [7, 17, 28])
    def test_that_of_model_graph_and_nodes_stays(self, tmp_path, opset):
        result, notes = convert(self.document(), tmp_path, opset=opset)
        assert (result.doc_string, result.graph.doc_string) == ("of the model", "of the graph")
        assert [n.doc_string for n in result.graph.node] == ["of Add\nline 2", "of Selu\nline 2"]
        assert notes == [] and not result.metadata_props

    def test_every_node_that_one_becomes_has_it(self, tmp_path):
        proto = model()
        node = proto.graph.node[1]
        node.op_type, node.doc_string = "HardSwish", "of a layer"
        result, _ = convert(proto, tmp_path, opset=13)
        docs = [n.doc_string for n in result.graph.node]
        assert docs[0] == "" and set(docs[1:]) == {"of a layer"} and len(docs) > 2

    def test_it_is_read_back_with_the_sources_of_another_format(self):
        proto = model()
        node = proto.graph.node[0]
        node.doc_string = "of a layer"
        node.metadata_props.add(key="serde.source", value="mxnet relu layer0")
        (source,) = decode(proto).nodes[0].sources
        assert (source.format, source.name, source.doc) == ("mxnet", "layer0", "of a layer")

    @pytest.mark.parametrize("opset", [7, 17, 28])
    @pytest.mark.parametrize("names", [{}, {"x": "image"}, {"x": "y", "y": "x"}])
    def test_that_of_inputs_and_outputs_stays(self, tmp_path, opset, names):
        proto = model()
        proto.graph.input[0].doc_string, proto.graph.output[0].doc_string = "pixels", "scores"
        result, notes = convert(proto, tmp_path, opset=opset, rename=names)
        ends = (*result.graph.input, *result.graph.output)
        assert notes == [] and not result.metadata_props
        assert {i.name: i.doc_string for i in ends if i.name != "w"} == {
            names.get("x", "x"): "pixels", names.get("y", "y"): "scores"
        }  # fmt: skip

    @pytest.mark.parametrize("external_data", ["never", "always"])
    @pytest.mark.parametrize("count", [2, 2000])
    def test_that_of_initializers_stays(self, tmp_path, count, external_data):
        proto = model_of(f"g (float[{count}] x) => (float[{count}] y) {{ y = Add(x, w) }}", 17, 8)
        weight = onnx.numpy_helper.from_array(np.ones(count, np.float32), "w")
        weight.doc_string = "a bias"
        proto.graph.initializer.append(weight)
        result, notes = convert(proto, tmp_path, external_data=external_data, opset=13)
        (kept,) = result.graph.initializer
        assert (kept.doc_string, notes) == ("a bias", []) and not result.metadata_props
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(kept, str(tmp_path)), 1)

    @pytest.mark.parametrize("names", [{}, {"x": "image"}, {"x": "y", "y": "x"}])
    def test_metadata_and_denotations_of_inputs_and_outputs_stay(self, tmp_path, names):
        proto = model()
        ends = {"x": proto.graph.input[0], "y": proto.graph.output[0]}
        for name, info in ends.items():
            info.metadata_props.add(key="unit", value=f"of {name}")
            info.metadata_props.add(key="scale", value="")
            info.type.denotation = f"TENSOR of {name}"
            info.type.tensor_type.shape.dim[0].denotation = "DATA_FEATURE"
        result, notes = convert(proto, tmp_path, rename=names)
        assert notes == [] and not result.metadata_props
        again = {i.name: i for i in (*result.graph.input, *result.graph.output)}
        for name in ends:
            info = again[names.get(name, name)]
            assert [(p.key, p.value) for p in info.metadata_props] == [
                ("unit", f"of {name}"), ("scale", "")
            ]  # fmt: skip
            assert info.type.denotation == f"TENSOR of {name}"
            assert info.type.tensor_type.shape.dim[0].denotation == "DATA_FEATURE"

    def test_that_of_connected_values_is_not_that_of_what_takes_their_names(self):
        first = model_of("g (float[2] x) => (float[2] h) { h = Relu(x) }", 18, 8)
        second = model_of("g (float[2] x) => (float[2] y) { y = Abs(x) }", 18, 8)
        first.graph.input[0].doc_string, second.graph.input[0].doc_string = "", "features"
        joined = serde.compose(serde.load(first), serde.load(second), {"h": "x"})
        assert [v.name for v in joined.inputs] == ["x"]
        assert "features" not in joined.metadata.values()

    def test_that_of_values_inside_stays(self, tmp_path):
        proto = model()
        info = helper.make_tensor_value_info("h", TensorProto.FLOAT, [2], doc_string="hidden")
        proto.graph.value_info.append(info)
        info.metadata_props.add(key="unit", value="")
        proto.graph.value_info[0].CopyFrom(info)
        result, notes = convert(proto, tmp_path)
        again = {i.name: i for i in result.graph.value_info}["h"]
        assert notes == [] and again.doc_string == "hidden" and not result.metadata_props
        assert [(p.key, p.value) for p in again.metadata_props] == [("unit", "")]
        onnx.checker.check_model(result, full_check=True)
        (end,) = convert(proto, tmp_path, outputs=["h"])[0].graph.output
        assert (end.name, end.doc_string, end.metadata_props[0].key) == ("h", "hidden", "unit")

    @pytest.mark.parametrize("body", [
        "{ h = Identity(x) y = Relu(x) }", "{ k = Neg(x) h = Identity(k) y = Relu(h) }",
    ])  # fmt: skip
    def test_that_of_values_that_are_gone_is_told(self, tmp_path, body):
        """Also where a value of the result has the name."""
        proto = model_of(f"g (float[2] x) => (float[2] y) {body}", 18, 8)
        info = helper.make_tensor_value_info("h", TensorProto.FLOAT, [2], doc_string="hidden")
        proto.graph.value_info.append(info)
        result, notes = convert(proto, tmp_path)
        lost = "not kept: what the file says of values inside that the result has not: 'h'"
        assert notes == [lost] and not any(i.doc_string for i in result.graph.value_info)
        assert not result.metadata_props

    def test_that_of_values_stays_through_rewrites_of_their_layer(self, tmp_path):
        body = "{ h = Softmax(x) y = Relu(h) }"  # of another meaning before opset 13
        proto = model_of(f"g (float[2,3,4] x) => (float[2,3,4] y) {body}", 11, 6)
        info = helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, 3, 4], doc_string="hidden")
        proto.graph.value_info.append(info)
        result, notes = convert(proto, tmp_path, opset=17)
        assert {i.name: i.doc_string for i in result.graph.value_info}["h"] == "hidden"
        assert notes == []


def test_what_the_graph_says_is_not_taken_for_that_of_a_subgraph(tmp_path):
    """Functions are read before the graph, and their subgraphs with them."""
    proto = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "f" : 1]>
        g (bool b, float[2] x) => (float[2] y) { y = f.Either(b, x) }
        <domain: "f", opset_import: ["" : 18]> Either (b, x) => (y) {
            y = If(b) <then_branch = t () => (float[2] u) { u = Relu(x) },
                       else_branch = e () => (float[2] v) { v = Neg(x) }> }"""
    )
    proto.graph.metadata_props.add(key="pkg.torch", value="graph")
    proto.graph.input[1].doc_string = "pixels"
    result, notes = convert(proto, tmp_path)
    assert notes == [] and result.graph.metadata_props[0].value == "graph"
    assert result.graph.input[1].doc_string == "pixels"


class TestWhatExportersWrite:
    """Who wrote a model, its version, and metadata of the model, its graph and its nodes."""

    def write(self):
        proto = model()
        proto.producer_name, proto.producer_version = "py torch", "2.7.1"
        proto.model_version, proto.domain = 7, "org.example"
        proto.metadata_props.add(key="author", value="me")
        proto.graph.metadata_props.add(key="pkg.torch", value="graph")
        for node in proto.graph.node:
            node.metadata_props.add(key="namespace", value=f"net/{node.op_type}")
        return proto

    def check(self, result):
        assert (result.producer_name, result.producer_version) == ("py torch", "2.7.1")
        assert (result.model_version, result.domain) == (7, "org.example")
        assert [(p.key, p.value) for p in result.metadata_props] == [("author", "me")]
        assert [(p.key, p.value) for p in result.graph.metadata_props] == [("pkg.torch", "graph")]

    @pytest.mark.parametrize("opset", [7, 17, 28])
    def test_it_stays(self, tmp_path, opset):
        result, notes = convert(self.write(), tmp_path, opset=opset)
        assert notes == []
        self.check(result)
        values = [{p.key: p.value for p in n.metadata_props} for n in result.graph.node]
        assert values == [{"namespace": "net/Add"}, {"namespace": "net/Selu"}]

    def test_every_node_that_one_becomes_has_it(self, tmp_path):
        proto = self.write()
        proto.graph.node[1].op_type = "HardSwish"
        result, _ = convert(proto, tmp_path, opset=13)
        self.check(result)
        held = [{p.key: p.value for p in n.metadata_props} for n in result.graph.node]
        assert len(held) > 2 and all(h["namespace"] == "net/Selu" for h in held[1:])

    def test_it_stays_beside_a_recorded_source(self, tmp_path):
        proto = self.write()
        proto.graph.node[0].metadata_props.add(key="serde.source", value="mxnet add layer0")
        result, _ = convert(proto, tmp_path)
        props = {p.key: p.value for p in result.graph.node[0].metadata_props}
        assert props == {"serde.source": "mxnet add layer0", "namespace": "net/Add"}

    def test_a_model_without_a_producer_is_of_serde(self, tmp_path):
        result, _ = convert(model(), tmp_path)
        assert (result.producer_name, result.producer_version) == ("serde", serde.__version__)

    @pytest.mark.parametrize(
        "options", [{"fp16": True}, {"weights": "int8"}, {"profile": "tensorrt"}]
    )
    def test_it_stays_through_options(self, tmp_path, options):
        self.check(convert(self.write(), tmp_path, **options)[0])


def annotate(proto):
    for name in ("h", "x", "y", "w"):
        proto.graph.quantization_annotation.add(tensor_name=name)


def with_denotation(proto):
    proto.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [2]))
    proto.graph.value_info[0].type.denotation = "IMAGE"


NOTES = {
    "training information": (
        lambda m: m.training_info.add(),
        "training information is not kept: the result is for inference",
    ),
    "quantization annotations": (
        annotate, "quantization annotations are not kept: of 'h', 'x', 'y' and 1 more"
    ),
    "inputs with defaults": (
        lambda m: m.graph.input.append(helper.make_tensor_value_info("w", 1, [2])),
        "inputs that have a default value become constants: 'w'",
    ),
    "denotations": (
        with_denotation, "not kept: denotations of values inside"
    ),
    "device configurations": (
        lambda m: m.configuration.add(name="c", num_devices=2), "not kept: device configurations"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "note"), NOTES.values(), ids=NOTES)
def test_what_is_not_kept_is_told(tmp_path, change, note):
    proto = model()
    change(proto)
    result, notes = convert(proto, tmp_path)
    assert notes == [note]
    x = np.float32([-1, 3])
    np.testing.assert_array_equal(run_model(result, {"x": x})[0], run_model(model(), {"x": x})[0])
    assert serde.check(tmp_path / "a.onnx").notes == [note]


def test_before_ir_version_4_every_initializer_is_an_input_and_nothing_is_told(tmp_path):
    proto = model_of("g (float[2] x) => (float[2] y) { y = Add(x, w) }", 8, 3)
    proto.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2]))
    proto.graph.input.append(helper.make_tensor_value_info("w", 1, [2]))
    assert convert(proto, tmp_path)[1] == []


class TestOverloadsOfFunctions:
    def name_is_original(self):
        proto = model_of("g (float[2] x) => (float[2] y) { h = Relu(x) y = Relu(h) }")
        for node, overload in zip(proto.graph.node, ("", "twice"), strict=True):
            node.op_type, node.domain, node.overload = "F", "local", overload
        proto.opset_import.add(domain="local", version=1)
        opset = [helper.make_opsetid("", 21)]
        for overload, op in (("", "Exp"), ("twice", "Neg")):
            body = [helper.make_node(op, ["a"], ["b"])]
            proto.functions.append(helper.make_function("local", "F", ["a"], ["b"], body, opset))
            proto.functions[-1].overload = overload
        return proto

    @pytest.mark.parametrize("opset", [17, 7])
    def test_each_is_called_where_it_is_meant(self, tmp_path, opset):
        result, _ = convert(self.name_is_original(), tmp_path, opset=opset)
        x = np.float32([0.5, 2])
        np.testing.assert_allclose(run_model(result, {"x": x})[0], -np.exp(x), rtol=1e-6)
        assert len(result.functions) == (2 if opset == 17 else 0)

    def test_a_name_that_is_taken_is_left_alone(self, tmp_path):
        proto = self.name_is_original()
        body = [helper.make_node("Abs", ["a"], ["b"])]
        other = helper.make_function(
            "local", "F_twice", ["a"], ["b"], body, [helper.make_opsetid("", 21)]
        )
        proto.functions.append(other)
        result, _ = convert(proto, tmp_path)
        x = np.float32([0.5, 2])
        np.testing.assert_allclose(run_model(result, {"x": x})[0], -np.exp(x), rtol=1e-6)

    def test_two_of_one_name_are_refused(self):
        proto = self.name_is_original()
        proto.functions[1].overload = ""
        with pytest.raises(MalformedFile, match="function 'F' is defined twice"):
            decode(proto)
