"""Operators MXNet does not define itself, and what the report says of those that only train."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import serde
from serde import plugins
from serde.cli.commands import main
from serde.errors import SerdeError, Unconvertible, UsageError
from tests.test_plugins import Entry

INPUT = {"data": ("N", 3)}


def node(op, name, *inputs, **attrs):
    links = [[i, 0, 0] if isinstance(i, int) else [*i, 0] for i in inputs]
    return {"op": op, "name": name, "inputs": links, "attrs": attrs}


@pytest.fixture
def model(tmp_path):
    """A ``Custom`` layer between two others, one MXNet's registry has not, and a head."""

    def write(*nodes, heads):
        path = tmp_path / "m-symbol.json"
        path.write_text(json.dumps({"nodes": nodes, "heads": [[*h, 0] for h in heads]}))
        return path

    return write


def custom(model, **attrs):
    return model(
        node("null", "data"),
        node("Activation", "before", 0, act_type="relu"),
        node("Custom", "mine", 1, op_type="twice", by="2", **attrs),
        node("Activation", "after", 2, act_type="tanh"),
        heads=[(3, 0)],
    )


def test_an_operator_is_told_before_shapes_that_depend_on_it(model):
    """Its rule may tell them; a table of many models counts it among the operators in the way."""
    path = model(
        node("null", "data"), node("Custom", "a", 0, op_type="twice"),
        node("Custom", "b", 1, op_type="twice"), heads=[(2, 0)],
    )  # fmt: skip
    with pytest.raises(Unconvertible) as caught:
        serde.load(path)
    (problem,) = caught.value.problems
    assert (problem.op, problem.names) == ("Custom", ("a", "b"))
    with pytest.raises(UsageError, match="the shape of 'data' cannot be inferred"):
        serde.load(path, rules={"Custom:twice": lambda g, x: g.Mul(x, 2.0)})


def read_twice(g, x, *, by: float):
    return g.Mul(x, by)


def ops(graph):
    return [n.op for n in graph.nodes]


def test_listed(model):
    report = serde.check(custom(model), inputs=INPUT)
    (problem,) = report.problems
    assert (problem.op, problem.attrs) == ("Custom", {"op_type": "twice", "by": "2"})
    assert problem.names == ("mine",)


@pytest.mark.parametrize("wrap", [dict, lambda rules: serde_table().extend(rules)])
def test_a_rule_for_its_kind(model, wrap):
    rules = wrap({"Custom:twice": read_twice})
    graph = serde.load(custom(model, __lr_mult__="2"), inputs=INPUT, rules=rules)
    assert ops(graph) == ["Relu", "Mul", "Tanh"]
    assert [s.name for s in graph.nodes[1].sources] == ["mine"]


def serde_table():
    from serde.formats.mxnet.to_ir import reads

    return reads


def test_a_rule_for_all_kinds(model):
    def read_custom(g, x, *, op_type: str, by: int):
        return g.Mul(x, float(by * len(op_type)))

    assert ops(serde.load(custom(model), inputs=INPUT, rules={"Custom": read_custom}))[1] == "Mul"


def test_a_rule_by_another_name(model):
    """Rules are looked for under the name that stands first, whichever the caller writes."""
    path = model(node("null", "data"), node("identity", "x", 0), heads=[(1, 0)])
    assert ops(serde.load(path, inputs=INPUT, rules={"identity": lambda g, x: g.Sin(x)})) == ["Sin"]


def test_a_rule_of_a_plugin(model, monkeypatch):
    entries = {"Custom:twice": Entry("Custom:twice", read_twice), "other": Entry("other", None)}
    own, load = plugins._entries, plugins._load

    def get_entries(group):
        return entries if group == "serde.rules.mxnet" else own(group)

    def load_rule(group, name):
        return entries[name].load() if group == "serde.rules.mxnet" else load(group, name)

    monkeypatch.setattr(plugins, "_entries", get_entries)
    monkeypatch.setattr(plugins, "_load", load_rule)
    assert ops(serde.load(custom(model), inputs=INPUT)) == ["Relu", "Mul", "Tanh"]


def test_kept_in_a_domain(model, tmp_path):
    serde.convert(
        custom(model),
        tmp_path / "m.onnx",
        inputs=INPUT,
        custom_domain="my.ops",
        custom_outputs={"mine_output": ("N", 3)},
    )
    written = onnx.load(tmp_path / "m.onnx")
    kept = written.graph.node[1]
    assert (kept.domain, kept.op_type, list(kept.output)) == ("my.ops", "twice", ["mine_output"])
    assert [(a.name, onnx.helper.get_attribute_value(a)) for a in kept.attribute] == [("by", b"2")]
    assert {o.domain: o.version for o in written.opset_import}["my.ops"] == 1


def test_an_unregistered_operator_of_two_outputs(model):
    path = model(
        node("null", "data"),
        node("_my_split", "mine", 0, parts="(1, 2)"),
        node("relu", "a", (1, 0)),
        node("relu", "b", (1, 1)),
        heads=[(2, 0), (3, 0)],
    )
    with pytest.raises(Unconvertible, match="_my_split ×1"):
        serde.load(path, inputs=INPUT)
    with pytest.raises(Unconvertible, match="needs the element type of 'mine_output1'"):
        serde.load(path, inputs=INPUT, custom_domain="my.ops")
    outputs = {"mine_output0": ("N", 1), "mine_output1": (("N", 2), "float64")}
    graph = serde.load(path, inputs=INPUT, custom_domain="my.ops", custom_outputs=outputs)
    assert [(v.dtype.value, v.shape) for v in graph.outputs] == [
        ("float32", ("N", 1)),
        ("float64", ("N", 2)),
    ]
    kept = graph.nodes[0]
    assert (kept.domain, kept.op, len(kept.outputs)) == ("my.ops", "_my_split", 2)
    assert dict(graph.imports) == {"my.ops": 1}


def test_a_shape_of_what_no_custom_operator_computes(model):
    with pytest.raises(UsageError, match="'before_output': no custom operator computes that"):
        serde.load(
            custom(model), inputs=INPUT, custom_domain="d", custom_outputs={"before_output": (1,)}
        )


def test_on_the_command_line(model, tmp_path):
    options = ["--custom-domain", "my.ops", "--custom-output", "mine_output=N,3"]
    target = str(tmp_path / "m.onnx")
    arguments = ["convert", str(custom(model)), "-o", target, "--input", "data=N,3", *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert [n.op_type for n in onnx.load(target).graph.node] == ["Relu", "twice", "Tanh"]


def test_what_is_refused_with_a_reason_is_not_kept(model):
    path = model(node("null", "data"), node("sgd_update", "mine", 0, 0, lr="1"), heads=[(1, 0)])
    with pytest.raises(Unconvertible, match="a step of training"):
        serde.load(path, inputs=INPUT, custom_domain="my.ops")


def test_in_a_loop(model):
    """A rule for a custom operator also reads those in subgraphs."""
    body = {
        "nodes": [
            node("null", "item"),
            node("Custom", "mine", 0, op_type="twice", by="3"),
            node("null", "state"),
            node("elemwise_add", "sum", 1, 2),
        ],
        "heads": [[3, 0, 0], [3, 0, 0]],
    }
    loop = node(
        "_foreach", "loop", 0, 1, num_args="3", num_outputs="2", num_out_data="1",
        in_state_locs="[1]", in_data_locs="[0]", remain_locs="[]",
    )  # fmt: skip
    path = model(
        node("null", "data"), node("null", "begin"), {**loop, "subgraphs": [body]}, heads=[(2, 0)]
    )
    inputs = {"data": (4, 3), "begin": (3,)}
    graph = serde.load(path, inputs=inputs, rules={"Custom:twice": read_twice})
    (scan,) = graph.nodes
    assert ops(scan.attrs["body"])[:2] == ["Mul", "Add"]


def test_one_name_for_several_nodes(model, tmp_path):
    """A block that is called several times gives nodes of one name, with values of one name."""
    calls = [node("_plus_scalar", "block", i, scalar=str(10**i)) for i in range(4)]
    path = model(
        node("null", "data"), *calls, node("elemwise_add", "block", 2, 4), heads=[(5, 0), (3, 0)]
    )
    graph = serde.load(path, inputs=INPUT)
    names = [v.name for n in graph.nodes for v in n.outputs]
    assert len(set(names)) == 5 and [n.sources[0].name for n in graph.nodes] == ["block"] * 5
    x = np.float32([[0, 1, 2]])
    got = run(path, tmp_path, x)
    np.testing.assert_array_equal(got, [x + 11 + x + 1111, x + 111])


def run(path, folder, x, **options):
    import onnxruntime

    serde.convert(path, folder / "run.onnx", inputs=INPUT, **options)
    return onnxruntime.InferenceSession(folder / "run.onnx").run(None, {"data": x})


def test_one_name_for_a_variable_and_a_node(model, tmp_path):
    path = model(
        node("null", "data"), node("relu", "data", 0), node("negative", "data_output", 1),
        node("elemwise_add", "data", 1, 2), heads=[(3, 0), (1, 0)],
    )  # fmt: skip
    x = np.float32([[-1, 1, 2]])
    got = run(path, tmp_path, x)
    np.testing.assert_array_equal(got, [x * 0, np.maximum(x, 0)])


def test_one_name_in_a_loop_and_around_it(model):
    """What a body calls like something outside is its own."""
    body = {
        "nodes": [node("null", "data"), node("null", "x"), node("elemwise_add", "x", 0, 1)],
        "heads": [[2, 0, 0], [2, 0, 0]],
    }
    loop = node(
        "_foreach", "x", 1, 2, num_args="3", num_outputs="2", num_out_data="1",
        in_state_locs="[1]", in_data_locs="[0]", remain_locs="[]",
    )  # fmt: skip
    path = model(
        node("null", "data"), node("relu", "x", 0), node("null", "state"),
        {**loop, "subgraphs": [body]}, heads=[(3, 0), (3, 1), (1, 0)],
    )  # fmt: skip
    graph = serde.load(path, inputs={"data": (4, 3), "state": (3,)})
    inner = graph.nodes[1].attrs["body"]
    names = [v.name for g in (graph, inner) for v in g.inputs]
    names += [v.name for g in (graph, inner) for n in g.nodes for v in n.outputs]
    assert len(set(names)) == len(names)


def test_the_report_names_what_only_trains(model, tmp_path):
    path = model(
        node("null", "data"),
        node("Dropout", "drop", 0, p="0.5"),
        node("null", "label"),
        node("SVMOutput", "svm", 1, 2),
        heads=[(3, 0)],
    )
    report = serde.convert(path, tmp_path / "m.onnx", inputs=INPUT)
    assert report.notes == [
        "left out: input 'label', read only to train",
        "Dropout ×1 ('drop') passes its operand on",
        "SVMOutput ×1 ('svm') passes its operand on, without the label",
    ]
    assert serde.check(path, inputs=INPUT).notes == report.notes
    metadata = {p.key for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert not any("notes" in key for key in metadata)


def test_a_training_form_tells_where_gradients_are_stopped(model, tmp_path):
    path = model(
        node("null", "data"), node("BlockGrad", "stop", 0), node("tanh", "y", 1), heads=[(2, 0)]
    )
    for options, says in (({}, "passes its operand on"), ({"training": True}, "detach()")):
        report = serde.convert(path, tmp_path / "m.onnx", inputs=INPUT, **options)
        note = report.notes[0]
        assert note.startswith("BlockGrad ×1 ('stop')") and says in note


def test_a_rule_cannot_write_into_the_parameters(model):
    """They may be arrays of the caller."""

    def read_scaled(g, x, w, b, *, num_hidden=0):
        w.array()[:] = 0
        return g.Gemm(x, w, b)

    path = model(
        node("null", "data"), node("null", "fc_weight"), node("null", "fc_bias"),
        node("FullyConnected", "fc", 0, 1, 2, num_hidden="3"), heads=[[3, 0]],
    )  # fmt: skip
    weight, bias = np.ones((3, 4), np.float32), np.zeros(3, np.float32)
    options = {"params": {"fc_weight": weight, "fc_bias": bias}, "inputs": {"data": (1, 4)}}
    with pytest.raises(SerdeError, match="read-only"):
        serde.load(path, rules={"FullyConnected": read_scaled}, **options)
    assert weight.min() == 1
