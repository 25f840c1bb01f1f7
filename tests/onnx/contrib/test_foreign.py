"""Operators of domains that serde does not know: carried along, typed by the file, named in full."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from serde import api
from serde.errors import Unconvertible
from serde.formats.onnx import contrib
from tests.onnx.contrib.cases import Case, compare, run

ACME = "com.acme"
TARGETS = {"symbol": "m-symbol.json", "relay": "m.relay"}


def foreign(op="Foo", domain=ACME, declared=("N", 4), behind="Softmax", opset=11):
    """An operator of another domain, in front of one that opset 13 changed."""
    nodes = [
        helper.make_node(op, ["x"], ["h"], name="layer", domain=domain, depth=3),
        helper.make_node(behind, ["h"], ["y"], name="last"),
    ]
    x = helper.make_tensor_value_info("x", 1, ["N", 4])
    types = [] if declared is None else [helper.make_tensor_value_info("h", 1, declared)]
    y = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph(nodes, "g", [x], [y], value_info=types)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(domain, 7)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def convert(model, folder, target="m.onnx", **options):
    onnx.save(model, folder / "source.onnx")
    report = api.convert(folder / "source.onnx", folder / target, **options)
    return report, folder / target


@pytest.mark.parametrize("op", ["Foo", "Relu"])
def test_a_node_is_carried_along_and_its_neighbours_convert(op, tmp_path):
    report, path = convert(foreign(op), tmp_path, opset=17)
    model = onnx.load(path)
    node = model.graph.node[0]
    assert (node.domain, node.op_type, node.attribute[0].i) == (ACME, op, 3)
    assert {o.domain: o.version for o in model.opset_import} == {"": 17, ACME: 7}
    assert model.graph.node[1].op_type == "Softmax" and model.graph.node[1].attribute[0].i == 1
    assert report.operators[f"{ACME}:{op}"] == 1


@pytest.mark.parametrize("op", ["Foo", "Relu"])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_other_formats_refuse_it_by_its_full_name(op, target, tmp_path):
    """Relu of another domain is not the standard's."""
    with pytest.raises(Unconvertible) as caught:
        convert(foreign(op), tmp_path, target)
    (problem,) = caught.value.problems
    assert (problem.op, problem.names) == (f"{ACME}:{op}", ("layer",))
    assert "no operators of the domain 'com.acme'" in problem.reason


def test_relax_refuses_it(tmp_path):
    with pytest.raises(Unconvertible, match="com.acme:Foo ×1"):
        convert(foreign(declared=(2, 4)), tmp_path, profile="relax", inputs={"x": (2, 4)})


def test_without_a_type_the_file_is_said_to_lack_it(tmp_path):
    op = "MeanVarianceNormalization"  # before opset 9 its axes depended on the rank
    with pytest.raises(Unconvertible) as caught:
        convert(foreign(declared=None, behind=op, opset=7), tmp_path)
    ops = {p.op: p.reason for p in caught.value.problems}
    assert "value_info" in ops["com.acme:Foo"] and op in ops


def test_a_type_is_not_needed_where_nothing_changes(tmp_path):
    _, path = convert(foreign(declared=None, behind="Relu", opset=17), tmp_path, opset=21)
    assert [n.op_type for n in onnx.load(path).graph.node] == ["Foo", "Relu"]


@pytest.mark.parametrize(("sizes", "shape"), [((5, 4), (5, 4)), (("N", 4), ("N", 4)),
                                              (("N", 6), (None, None))])  # fmt: skip
def test_declared_sizes_follow_those_of_the_inputs(sizes, shape, tmp_path):
    onnx.save(foreign(opset=17), tmp_path / "m.onnx")
    graph = api.load(tmp_path / "m.onnx", inputs={"x": sizes})
    assert graph.nodes[0].outputs[0].shape == shape


GELU = Case("BiasGelu", [np.ones((2, 3), np.float32), np.ones(3, np.float32)])


def test_a_domain_can_be_kept(tmp_path):
    _, path = convert(GELU.model(), tmp_path, keep_domain=["com.microsoft"], opset=19)
    model = onnx.load(path)
    assert [(n.domain, n.op_type) for n in model.graph.node] == [("com.microsoft", "BiasGelu")]
    assert [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == [2, 3]
    compare(run(str(path), GELU.feeds), run(GELU.model(), GELU.feeds), 0)


def test_an_operator_without_a_rule_is_carried_along(tmp_path):
    keys = np.array([[1, 2]], np.int32)
    case = Case("MurmurHash3", [keys], {"seed": 3})
    _, path = convert(case.model(), tmp_path)
    compare(run(str(path), case.feeds), run(case.model(), case.feeds), 0)


@pytest.mark.parametrize("domain", ["com.microsoft.nchwc", "com.ms.internal.nhwc"])
def test_layouts_of_one_machine_are_refused(domain, tmp_path):
    with pytest.raises(Unconvertible, match="ORT_ENABLE_EXTENDED"):
        convert(foreign("Conv", domain), tmp_path)
    _, path = convert(foreign("Conv", domain), tmp_path, keep_domain=[domain])
    assert onnx.load(path).graph.node[0].domain == domain


def test_a_function_of_the_model_is_not_the_runtimes(tmp_path):
    """A model may define com.microsoft:Gelu itself, as anything; so says the standard."""
    body = [helper.make_node("Neg", ["a"], ["b"])]
    own = helper.make_function(
        "com.microsoft", "Gelu", ["a"], ["b"], body, [helper.make_opsetid("", 17)]
    )
    x = helper.make_tensor_value_info("x", 1, [3])
    y = helper.make_tensor_value_info("y", 1, [3])
    node = helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")
    graph = helper.make_graph([node], "g", [x], [y])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, functions=[own], opset_imports=imports, ir_version=8)
    _, path = convert(model, tmp_path, functions="inline")
    (output,) = run(str(path), {"x": np.float32([1, 2, 3])})
    assert output.tolist() == [-1, -2, -3]
    _, path = convert(model, tmp_path, functions="keep")
    kept = onnx.load(path)
    assert [n.op_type for n in (*kept.graph.node, *kept.functions[0].node)] == ["Gelu", "Neg"]


def test_inside_a_function_and_a_subgraph_it_is_read_too(tmp_path):
    branch = helper.make_graph(
        [helper.make_node("BiasGelu", ["x0", "x1"], ["b"], domain="com.microsoft")],
        "b", [], [onnx.ValueInfoProto(name="b")],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Twice", ["x0"], ["d"], domain="own")],
        "d", [], [onnx.ValueInfoProto(name="d")],
    )  # fmt: skip
    body = [helper.make_node("QuickGelu", ["a"], ["h"], domain="com.microsoft"),
            helper.make_node("Add", ["h", "h"], ["r"])]  # fmt: skip
    imports = [helper.make_opsetid(d, v) for d, v in (("", 17), ("com.microsoft", 1), ("own", 1))]
    twice = helper.make_function("own", "Twice", ["a"], ["r"], body, imports[:2])
    ends = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x0", ["N", 3]), ("x1", [3]))]
    inputs = [*ends, helper.make_tensor_value_info("c", 9, [])]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, functions=[twice], opset_imports=imports, ir_version=8)
    feeds = {"x0": np.float32([[1, -2, 3]]), "x1": np.float32([1, 2, 3])}
    for way in ("keep", "inline"):
        _, path = convert(model, tmp_path, functions=way)
        for condition in (True, False):
            arrays = {**feeds, "c": np.array(condition)}
            compare(run(str(path), arrays), run(model, arrays), 1e-6)
        assert b"com.microsoft" not in path.read_bytes()


def declarations():
    """What ONNX Runtime declares of every operator: its attributes, with defaults."""
    state = onnxruntime.capi.onnxruntime_pybind11_state
    for schema in state.get_all_operator_schema():
        table = contrib.TABLES.get(schema.domain)
        if table is not None and schema.name in table:
            yield pytest.param(schema, id=f"{schema.domain}:{schema.name}-{schema.since_version}")


@pytest.mark.parametrize("schema", list(declarations()))
def test_attributes_are_those_that_onnx_runtime_declares(schema):
    rule = contrib.TABLES[schema.domain].rules[schema.name]
    known = rule.attributes.keys() | rule.ignore | rule.only.keys()
    if not rule.takes_all and schema.domain:
        assert known <= schema.attributes.keys()
        assert schema.attributes.keys() <= known
    for name, attribute in rule.attributes.items():
        if name in schema.attributes and schema.attributes[name].required:
            assert attribute.is_required, name


def test_every_rule_is_of_an_operator_that_onnx_runtime_declares():
    declared = {(p.values[0].domain, p.values[0].name) for p in declarations()}
    rules = {(d, op) for d, table in contrib.TABLES.items() for op in table.rules}
    # Both domains of a normalization, as files of several ages have it.
    assert rules - declared <= {
        ("com.microsoft", "SimplifiedLayerNormalization"), ("com.microsoft", "LayerNormalization")
    }  # fmt: skip
