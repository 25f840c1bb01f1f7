"""Constants that rules make bear the names of their layer and operand."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

import serde


def convert_text(text, folder, **options):
    """The constants of each node, by the names of the nodes, of a converted model."""
    onnx.save(parser.parse_model(text), folder / "a.onnx")
    serde.convert(folder / "a.onnx", folder / "b.onnx", **options)
    graph = onnx.load(folder / "b.onnx").graph
    onnx.checker.check_model(onnx.load(folder / "b.onnx"), full_check=True)
    stored = {i.name for i in graph.initializer}
    stack, read = [graph], {}
    while stack:
        for node in stack.pop().node:
            read[node.name] = [i for i in node.input if i in stored]
            stack += [a.g for a in node.attribute if a.HasField("g")]
    return read


@pytest.mark.parametrize("taken", [False, True])
def test_axes_are_named_after_the_first_layer(taken, tmp_path):
    name = "first/axes" if taken else "z"
    text = f"""<ir_version: 8, opset_import: ["": 11]>
    g (float[1,3,1] x) => (float[3,1] y, float[3,1] "{name}") {{
        [first] y = Squeeze<axes = [0]>(x)
        a = Relu(x)
        [second] "{name}" = Squeeze<axes = [0]>(a)
    }}"""
    read = convert_text(text, tmp_path, opset=17)
    expected = ["first/axes_1" if taken else "first/axes"]
    assert read["first"] == read["second"] == expected


def test_names_of_the_source_stay(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[1,3,1] x) => (float[3,1] y) <int64[1] const_3 = {0}> {
        [squeeze] y = Squeeze(x, const_3)
    }"""
    assert convert_text(text, tmp_path)["squeeze"] == ["const_3"]


def test_constants_of_branches(tmp_path):
    text = """<ir_version: 8, opset_import: ["": 11]>
    g (float[1,3,1] x, bool c) => (float[3,1] y) {
        [pick] y = If(c) <
            then_branch = t () => (float[3,1] p) { [inner] p = Squeeze<axes = [0]>(x) },
            else_branch = e () => (float[3,1] q) {
                r = Neg(x) [other] q = Squeeze<axes = [0]>(r)
            }
        >
    }"""
    read = convert_text(text, tmp_path, opset=17)
    assert read["inner"] == read["other"]
    assert read["inner"] in (["inner/axes"], ["other/axes"])


def test_the_example_has_no_numbered_constants(tmp_path):
    serde.convert("examples/digits", tmp_path / "digits.onnx")
    graph = onnx.load(tmp_path / "digits.onnx").graph
    assert "bn1/scale" in {i.name for i in graph.initializer}
