"""Outputs that are inputs, constants or another output again keep their names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import serde
from serde.errors import SerdeError
from testing import directions
from testing.onnx_live import model_of

X = np.array([-1, 2], np.float32)
# The graph, the names of its outputs, and what they are.
MODELS = {
    "an input": ("g (float[2] x) => (float[2] x) {}", {"x": X}),
    "an input, and more": (
        "g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }", {"x": X, "y": [0, 2]}),
    "an input, last": (
        "g (float[2] x) => (float[2] y, float[2] x) { y = Relu(x) }", {"y": [0, 2], "x": X}),
    "an input that a node passes on": (
        "g (float[2] x) => (float[2] y) { y = Identity(x) }", {"y": X}),
    "an initializer": (
        "g (float[2] x) => (float[2] y, float[2] c) <float[2] c = {5, 6}> { y = Add(x, c) }",
        {"y": [4, 8], "c": [5, 6]}),
    "a constant": (
        "g (float[2] x) => (float[2] y, float[2] k) { y = Relu(x)"
        " k = Constant<value = float[2] {5, 6}>() }", {"y": [0, 2], "k": [5, 6]}),
    "what folds to a constant": (
        "g (float[2] x) => (float[2] y, float[2] k) <float[2] c = {5, 6}>"
        "{ y = Relu(x) k = Neg(c) }", {"y": [0, 2], "k": [-5, -6]}),
    "branches that pass on": (
        "g (float[2] x, bool c) => (float[2] y) { y = If(c) <"
        "then_branch = t () => (float[2] a) { a = Identity(x) },"
        "else_branch = e () => (float[2] b) { b = Neg(x) }> }", {"y": X}),
}  # fmt: skip
TWICE = {
    "an output": (
        "g (float[2] x) => (float[2] y, float[2] y) { y = Relu(x) }", ["y", "y"], [0, 2]),
    "an input": ("g (float[2] x) => (float[2] x, float[2] x) {}", ["x", "x"], X),
}  # fmt: skip
TARGETS = {
    **{f"opset {v}": {"opset": v} for v in (9, 11, 13, 17, 21)}, "relax": {"profile": "relax"},
}  # fmt: skip
LEVELS = (
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
)
FEEDS = {"x": X, "c": np.array(True)}


def write(body: str, folder: Path) -> Path:
    onnx.save(model_of(body, 13, 8), folder / "source.onnx")
    return folder / "source.onnx"


def check_onnx(path: Path, names: list[str], results: list[np.ndarray]) -> None:
    """ONNX Runtime gives these outputs by these names, optimised and not."""
    onnx.checker.check_model(str(path), full_check=True)
    for level in LEVELS:
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level, settings.graph_optimization_level = 4, level
        session = onnxruntime.InferenceSession(str(path), settings)
        assert [o.name for o in session.get_outputs()] == names
        outputs = session.run(None, {i.name: FEEDS[i.name] for i in session.get_inputs()})
        for a, b in zip(outputs, results, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_names_in_onnx(name, target, tmp_path):
    body, results = MODELS[name]
    source = write(body, tmp_path)
    check_onnx(source, list(results), list(results.values()))
    done = serde.convert(source, tmp_path / "m.onnx", verify=True, **TARGETS[target])
    assert done.ok and done.verification.done
    check_onnx(tmp_path / "m.onnx", list(results), list(results.values()))


@pytest.mark.parametrize("form", ["mxnet", "relay"])
@pytest.mark.parametrize("name", MODELS)
def test_other_formats_and_back(name, form, tmp_path):
    body, results = MODELS[name]
    path = tmp_path / directions.FILES[form]
    serde.convert(write(body, tmp_path), path)
    outputs = directions.RUN[form](path, FEEDS, 100)
    for a, b in zip(outputs, results.values(), strict=True):
        np.testing.assert_array_equal(a, b)
    inputs = {"x": (2,)} if form == "mxnet" else None
    if form == "mxnet" and "branch" in name:
        inputs["c"] = (1,)
    serde.convert(path, tmp_path / "back.onnx", inputs=inputs)
    back = [o.name.removesuffix("_output") for o in onnx.load(tmp_path / "back.onnx").graph.output]
    assert back == list(results)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TWICE)
def test_an_output_twice(name, target, tmp_path):
    body, names, result = TWICE[name]
    serde.convert(write(body, tmp_path), tmp_path / "m.onnx", **TARGETS[target])
    check_onnx(tmp_path / "m.onnx", names, [result, result])


@pytest.mark.parametrize("form", ["mxnet", "relay"])
@pytest.mark.parametrize("name", TWICE)
def test_an_output_twice_in_other_formats(name, form, tmp_path):
    body, names, result = TWICE[name]
    path = tmp_path / directions.FILES[form]
    serde.convert(write(body, tmp_path), path)
    for output in directions.RUN[form](path, FEEDS, 100):
        np.testing.assert_array_equal(output, result)
    serde.convert(path, tmp_path / "back.onnx", inputs={"x": (2,)} if form == "mxnet" else None)
    back = [o.name.removesuffix("_output") for o in onnx.load(tmp_path / "back.onnx").graph.output]
    assert back == names


def test_an_mxnet_variable_is_an_output_of_its_name(tmp_path):
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "relu", "name": "act", "inputs": [[0, 0, 0]]},
    ]
    symbol = {
        "nodes": nodes, "arg_nodes": [0], "heads": [[0, 0, 0], [1, 0, 0], [0, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }  # fmt: skip
    (tmp_path / "m-symbol.json").write_text(json.dumps(symbol))
    serde.convert(tmp_path / "m-symbol.json", tmp_path / "m.onnx", inputs={"data": (2,)})
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    assert [o.name for o in session.get_outputs()] == ["data", "act_output", "data"]
    for output, result in zip(session.run(None, {"data": X}), (X, [0, 2], X), strict=True):
        np.testing.assert_array_equal(output, result)


@pytest.mark.parametrize(
    ("attrs", "names"),
    [(', output_tensor_names=["x", "y"]', ["x", "y"]), ("", ["output_0", "output_1"])],
)
def test_a_relay_parameter_is_an_output(attrs, names, tmp_path):
    text = (
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]'
        f"{attrs}) {{\n  %0 = nn.relu(%x);\n  (%x, %0)\n}}\n"
    )
    (tmp_path / "m.relay").write_text(text)
    serde.convert(tmp_path / "m.relay", tmp_path / "m.onnx")
    assert [o.name for o in onnx.load(tmp_path / "m.onnx").graph.output] == names


def test_a_function_computes_its_outputs(tmp_path):
    """ONNX Runtime takes no function that returns an input as it is."""
    body = """g (float[2] x) => (float[2] a, float[2] b) { a, b = l.f(x) }
    <domain: "l", opset_import: ["": 17]> f (x) => (x, y) { y = Relu(x) }"""
    text = f'<ir_version: 8, opset_import: ["": 17, "l": 1]>\n{body}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "f.onnx")
    serde.convert(tmp_path / "f.onnx", tmp_path / "m.onnx", opset=17)
    check_onnx(tmp_path / "m.onnx", ["a", "b"], [X, np.array([0, 2], np.float32)])


def test_renaming_an_input_that_is_an_output(tmp_path):
    source = write(MODELS["an input, and more"][0], tmp_path)
    serde.convert(source, tmp_path / "m.onnx", rename={"x": "z"})
    graph = onnx.load(tmp_path / "m.onnx").graph
    assert [v.name for v in graph.input] == ["z"]
    assert [v.name for v in graph.output] == ["z", "y"]
    with pytest.raises(SerdeError, match="another input or output"):
        serde.convert(source, tmp_path / "m.onnx", rename={"x": "y"})


def test_nodes_are_named_as_their_values(tmp_path):
    """A constant takes a name that a node had before; tract has one space of names for both."""
    body = """g (float[2,2] x) => (float[2,2] y) <float[2,2] c = {1, 2, 3, 4}> {
        a = Mish(x) y = Mish(a) }"""
    path = tmp_path / "m.onnx"
    onnx.save(model_of(body, 18, 8), tmp_path / "source.onnx")
    serde.convert(tmp_path / "source.onnx", path, opset=13)
    graph = onnx.load(path).graph
    inner = [n for n in graph.node if "/" in n.name]
    assert inner and all(n.name == n.output[0] for n in inner)
    assert {n.name for n in graph.node}.isdisjoint(t.name for t in graph.initializer)


# Names that rules make

ADAPTED = {  # models whose operators become many at older opsets
    "boxes": """g (float[1,6,4] x, float[1,2,6] s) => (int64[K,3] y)
        <int64 n = {3}, float t = {0.5}> { y = NonMaxSuppression(x, s, n, t, t) }""",
    "range": "g (int64 x) => (int64[K] y) <int64 a = {0}, int64 d = {2}> { y = Range(a, x, d) }",
    "shrink": "g (float[3,4] x) => (float[3,4] y) { a = Shrink(x) y = Mish(a) }",
    "sums": "g (float[3,4] x) => (float[3,4] y) <int64 a = {1}> { y = CumSum(x, a) }",
    "determinant": "g (float[2,3,3] x) => (float[2] y) { y = Det(x) }",
    "loop": """g (float[2] x, int64 n) => (float[2] y) <bool t = {1}> {
        y = Loop(n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool k, float[2] v) {
            k = Identity(c) v = Add(s, x) }> }""",
    "grid": "g (float[1,2,4,4] x, float[1,3,3,2] s) => (float[1,2,3,3] y) { y = GridSample(x, s) }",
    "layer": "g (float[3,4] x, float[4] s) => (float[3,4] y) { y = LayerNormalization(x, s) }",
}


def list_inner_names(graph: onnx.GraphProto, is_inner: bool = False) -> set[str]:
    """All names in a model but those of its inputs and outputs."""
    ends = set() if is_inner else {v.name for v in (*graph.input, *graph.output)}
    names = {t.name for t in graph.initializer} | {v.name for v in graph.input}
    for node in graph.node:
        names |= {node.name, *node.output}
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                names |= list_inner_names(attribute.g, True)
    return names - ends - {""}


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, 21, 25])
@pytest.mark.parametrize("name", ADAPTED)
def test_names_of_ends_win_over_names_inside(name, opset, tmp_path):
    """What conversion calls values inside, an input or output may be called as well."""
    source, target = tmp_path / "source.onnx", tmp_path / "target.onnx"
    onnx.save(model_of(ADAPTED[name], 18, 8), source)
    try:
        serde.convert(source, target, opset=opset)
    except SerdeError:
        pytest.skip("cannot be written at that opset")
    own = list_inner_names(onnx.load(source).graph)
    inner = sorted(list_inner_names(onnx.load(target).graph) - own)
    for made in inner[:: max(1, len(inner) // 12)]:
        for end in "xy":
            model = onnx.load(source)
            ends = (*model.graph.input, *model.graph.output)
            for value in ends:
                value.name = made if value.name == end else value.name
            rename_reads(model.graph, end, made)
            onnx.save(model, source.with_name("other.onnx"))
            serde.convert(source.with_name("other.onnx"), target, opset=opset)
            done = onnx.load(target).graph
            weights = {t.name for t in done.initializer}
            names = [v.name for v in done.input if v.name not in weights]
            assert names + [v.name for v in done.output] == [v.name for v in ends]


def rename_reads(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for names in (node.input, node.output):
            for at, name in enumerate(names):
                names[at] = new if name == old else name
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                rename_reads(attribute.g, old, new)
